"""A learned mix of what every layer knows (ELMo, Peters et al., 2018): the lower ones of words, the upper of texts."""

import torch
from torch import Tensor, nn

from .base import Layer, WrappedLayer
from .description import EACH, POINTWISE, Child, DescribedModule, Description, count_parameters
from .padding import full_mask
from .state import State


class Mix(DescribedModule):
    """A weighted mean of states of one width, times a factor; at first all count alike."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.shares, self.scale = nn.Parameter(torch.zeros(count)), nn.Parameter(torch.ones(()))

    def forward(self, states: list[Tensor]) -> Tensor:
        return self.scale * torch.einsum("n,nbtd->btd", self.shares.softmax(0), torch.stack(states))

    def describe(self) -> Description:
        return Description("mix of layers", EACH, count_parameters(self), POINTWISE)


class MixedLayers(WrappedLayer):
    """A stack that gives the mix of all its layers in place of the last one. It reads whole sequences only."""

    inside = "layer."

    def __init__(self, layer: Layer, count: int) -> None:
        super().__init__(layer)
        self.mix = Mix(count)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        states = self.read_states(x, full_mask(x) if mask is None else mask)
        return self.mix(states[1:]), state

    def read_states(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        return self.layer.read_states(x, mask)

    def children_in_order(self) -> list[Child]:
        return [Child("layer", self.layer), Child("mix", self.mix)]
