"""The exponential average of the weights over the steps: what is validated and kept instead of the last step's own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..errors import RunError
from .tensors import shard_like


class EMA:
    """A share of the average and the rest of the newest weights, step by step. A share of 0 averages nothing.

    At first the share is smaller, (1 + n) / (10 + n) after n steps: else the random beginning would stay in it.
    """

    def __init__(self, module: nn.Module, share: float) -> None:
        self.module, self.share = module, share
        self.weights = {name: tensor.clone() for name, tensor in self._trainable().items()}

    def _trainable(self) -> dict[str, Tensor]:
        if not self.share:
            return {}
        return {name: each.detach() for name, each in self.module.named_parameters() if each.requires_grad}

    @torch.no_grad()
    def add(self, steps: int) -> None:
        """Take in the weights of the module after so many steps."""
        share = min(self.share, (1 + steps) / (10 + steps))
        for name, tensor in self._trainable().items():
            self.weights[name].lerp_(tensor, 1 - share)

    @contextmanager
    def average_parameters(self) -> Iterator[None]:
        """Inside, the module has the averaged weights; afterwards its own."""
        own = {name: tensor.clone() for name, tensor in self._trainable().items()}
        self._copy(self.weights)
        try:
            yield
        finally:
            self._copy(own)

    @torch.no_grad()
    def _copy(self, weights: Mapping[str, Tensor]) -> None:
        for name, tensor in self._trainable().items():
            tensor.copy_(weights[name])

    def load(self, weights: Mapping[str, Tensor], place: str) -> None:
        """Go on from an average that a checkpoint holds."""
        own = {name: (tensor.shape, tensor.dtype) for name, tensor in self.weights.items()}
        if {name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()} != own:
            raise RunError(f"{place}: the averaged weights are not those of this model")
        for name, tensor in self.weights.items():
            tensor.copy_(shard_like(weights[name], tensor))
