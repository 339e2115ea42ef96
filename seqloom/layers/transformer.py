"""Transformer layers. Their state is the keys and values of all that was read, and those of the memory."""

import torch
from torch import Tensor, nn

from .attention import MultiHead
from .base import Each, Layer, Memory, Stack
from .cache import Cache
from .padding import at_the_end, blank, everywhere, take, to_front
from .residual import RESIDUALS
from .state import Shared, State


class Positions(Layer):
    """Adds sines and cosines of the position (Vaswani et al., 2017). The state counts the elements read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("rate", 10000.0 ** (-torch.arange(0, size, 2) / size), persistent=False)
        self.rate: Tensor

    def start(self, batch: int, memory: Memory | None = None) -> State:
        return self.rate.new_zeros(batch, dtype=torch.long)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        count = state[:, None] + (everywhere(x) if mask is None else mask).cumsum(1)
        angle = (count - 1)[..., None] * self.rate
        waves = torch.stack([angle.sin(), angle.cos()], -1).flatten(2)[..., : x.shape[2]]  # an odd size ends on a sine
        return blank(x + waves, mask), count[:, -1] if x.shape[1] else state


class SelfAttention(Layer):
    """Each element looks at all of its sequence."""

    causal = False

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.attend = MultiHead(size, size, heads)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        x = blank(x, mask)
        return blank(self.attend(x, self.attend.key_value(x), mask), mask), state


class CausalAttention(Layer):
    """Each element looks at itself and at what came before."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.attend = MultiHead(size, size, heads)

    def start(self, batch: int, memory: Memory | None = None) -> State:
        weight = self.attend.key_value.weight
        return Cache.of(weight.new_zeros(batch, 0, len(weight)), weight.new_zeros(batch, 0, dtype=torch.bool))

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if mask is not None and state.length == 0 and not at_the_end(mask):
            order, back = to_front(mask)  # so that no T × T mask is needed
            y, state = self.forward(take(x, order), state, take(mask, order))
            return take(y, back), state
        x = blank(x, mask)
        cache = state.append(self.attend.key_value(x), mask)
        if cache.length == x.shape[1]:  # all there is: padding stands at the end, where only padding sees it
            y = self.attend(x, cache.read()[0], causal=True)
        else:
            y = self.attend(x, cache.read()[0], visible(cache, x.shape[1]))
        return blank(y, mask), cache


def visible(cache: Cache, time: int) -> Tensor | None:
    """What each of the last `time` steps may see of all: (B, length) for one step, (B, time, length) for more."""
    _, valid = cache.read()
    if time == 1:
        return valid if cache.padded else None
    past = torch.ones(time, cache.length, dtype=torch.bool, device=valid.device).tril(cache.length - time)
    return past & valid[:, None] if cache.padded else past[None]


class CrossAttention(Layer):
    """Each element looks at the memory."""

    def __init__(self, size: int, heads: int, memory: int) -> None:
        super().__init__()
        self.attend = MultiHead(size, memory, heads)

    def start(self, batch: int, memory: Memory | None = None) -> State:
        if memory is None:
            raise ValueError("attention needs a memory to look at, but the layer was started without one")
        return Shared((self.attend.key_value(memory.values), memory.mask))

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return blank(state.ask(self.attend, blank(x, mask)), mask), state


def transformer(
    inputs: int,
    size: int,
    depth: int = 2,
    heads: int = 4,
    *,
    causal: bool,
    memory: int = 0,
    feed_forward: int = 0,
    norm: str = "pre",
    dropout: float = 0.0,
) -> Layer:
    """An encoder if not causal, a decoder if causal, looking at a memory if it has a size."""
    residual, attention = RESIDUALS[norm], CausalAttention if causal else SelfAttention
    layers: list[Layer] = [] if inputs == size else [Each(nn.Linear(inputs, size))]
    layers += [Positions(size), Each(nn.Dropout(dropout))]
    for _ in range(depth):
        layers.append(residual(size, attention(size, heads), dropout))
        if memory:
            layers.append(residual(size, CrossAttention(size, heads, memory), dropout))
        layers.append(residual(size, position_wise(size, feed_forward or 4 * size, dropout), dropout))
    if norm == "pre":
        layers.append(Each(nn.LayerNorm(size)))
    return Stack(*layers)


def position_wise(size: int, hidden: int, dropout: float) -> Layer:
    """The same small net on every element."""
    return Each(nn.Linear(size, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, size))
