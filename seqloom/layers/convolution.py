"""Reading through a window that slides over the sequence: what the first neural language models did."""

import torch
from torch import Tensor, nn

from .base import Layer, Memory, Pointwise, Stack
from .description import AROUND, CONVOLUTION, PAST, Description, count_parameters
from .padding import is_right_padded, take_steps, to_front, zero_padding
from .residual import PreNorm
from .state import State


class Convolution(Layer):
    """Each output is a product of `window` inputs: the last ones up to here or, if not causal, those around."""

    def __init__(self, inputs: int, size: int, window: int, causal: bool = True) -> None:
        super().__init__()
        if not causal and window % 2 == 0:
            raise ValueError(f"a window that looks to both sides has a middle, but {window} is an even number")
        self.causal, self.window, self.inputs = causal, window, inputs
        self.product = nn.Linear(window * inputs, size)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        """The elements that the next window still sees: none, so far."""
        return self.product.weight.new_zeros(batch, self.window - 1 if self.causal else 0, self.inputs)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if mask is not None and not is_right_padded(mask):
            order, back = to_front(mask)
            y, state = self.forward(take_steps(x, order), state, take_steps(mask, order))
            return take_steps(y, back), state
        x = zero_padding(x, mask)
        side = self.window // 2 * (not self.causal)
        padded = nn.functional.pad(torch.cat([state, x], 1), (0, 0, side, side))
        if not x.shape[1]:
            return x.new_zeros(len(x), 0, self.product.out_features), state
        y = self.product(padded.unfold(1, self.window, 1).mT.flatten(2))
        if self.causal:
            ends = x.new_full((len(x),), x.shape[1], dtype=torch.long) if mask is None else mask.sum(1)
            state = take_steps(padded, ends[:, None] + torch.arange(self.window - 1, device=x.device))
        return zero_padding(y, mask), state

    def describe(self) -> Description:
        shape = PAST if self.causal else AROUND
        return Description(f"window of {self.window}", shape, count_parameters(self), CONVOLUTION)


def convolution(
    inputs: int, size: int, depth: int, window: int, *, causal: bool, dropout: float = 0.0, act: bool = True
) -> Layer:
    """Windows upon windows: each level sees further. Without `act` it is one linear filter."""
    first = Convolution(inputs, size, window, causal)
    if not act:
        return Stack(first)

    def level() -> Layer:
        return PreNorm(size, Stack(Convolution(size, size, window, causal), Pointwise(nn.GELU())), dropout)

    levels = [level() for _ in range(depth - 1)]
    return Stack(first, Pointwise(nn.GELU()), *levels, Pointwise(nn.LayerNorm(size)))
