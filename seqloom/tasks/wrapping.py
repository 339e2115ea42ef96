"""What stands around a trained net so that something else has a say in what comes next.

The net stays as it is. Around it is a `Generator` like any other: its embedding hands the token itself on, its decoder
carries beside the net's state what the other one has to remember, and its head mixes.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.heads import Head, Loss, WrappedHead, select_valid, sum_and_count


class TokenBeside(nn.Module):
    """An embedding with one feature more: the token itself."""

    def __init__(self, embed: nn.Module) -> None:
        super().__init__()
        self.embed = embed

    def forward(self, y: Tensor) -> Tensor:
        vectors: Tensor = self.embed(y)
        return torch.cat([vectors, y[..., None].to(vectors.dtype)], -1)


class MixingHead(WrappedHead):
    """A head that mixes into what another one expects; the last `extra` features are for the mixing alone."""

    def __init__(self, head: Head, extra: int) -> None:
        super().__init__(head)
        self.extra = extra

    @abstractmethod
    def mix(self, logits: Tensor, extra: Tensor) -> Tensor:
        """The log-probabilities of the mixture (…, V)."""

    @abstractmethod
    def mix_losses(self, losses: Tensor, extra: Tensor, target: Tensor) -> Tensor:
        """The losses of the mixture (N,) at the targets, by those of the net."""

    def split(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """What the net has made of an element, and the rest."""
        return features[..., : -self.extra], features[..., -self.extra :]

    def forward(self, features: Tensor) -> Tensor:
        own, extra = self.split(features)
        return self.mix(self.head(own), extra)

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        own, extra = self.split(features)
        return self.mix_losses(self.head.negative_log_likelihood(own, target), extra, target)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        return sum_and_count(self.negative_log_likelihood(*select_valid(features, target, mask)))

    def fast_answer(self) -> Callable[[Tensor], Any]:
        answer = self.head.fast_answer()

        def mix(y: Tensor) -> Tensor:
            own, extra = self.split(y)
            return self.mix(answer(own), extra)

        return mix
