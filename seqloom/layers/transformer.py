"""Transformer layers. Their state is the keys and values of all that was read, and those of the memory."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import MultiHeadAttention
from .base import Layer, Memory, Pointwise, Stack
from .cache import Cache, visible
from .description import (
    AROUND,
    EACH,
    ITSELF,
    PAST,
    SELF_ATTENTION,
    SOURCE,
    SOURCE_ATTENTION,
    Description,
    count_parameters,
)
from .fast import attention_steps, native_stack
from .fast.dropout import Dropout
from .fast.steps import Change, Step
from .padding import is_right_padded, take_steps, to_front, zero_padding
from .positions import LearnedPositions, NoRotation, Rotary, Rotation, SinusoidalPositions
from .residual import NORMS, RESIDUALS
from .state import Shared, State
from .windowed_attention import attend_window


class MultiHeadLayer(Layer):
    """Looks by queries, keys and values in several heads."""

    projections: tuple[str, ...] = ("project.weight",)

    def __init__(self, attend: MultiHeadAttention) -> None:
        super().__init__()
        self.attend, self.query_size = attend, attend.query_size


class OwnAttention(MultiHeadLayer):
    """A sequence looks at itself; with a window, only near by."""

    looks_at = {ITSELF: "attend.weights"}

    def __init__(
        self, size: int, attend: MultiHeadAttention, turn: Rotation, window: int = 0, bias: bool = True
    ) -> None:
        super().__init__(attend)
        self.turn, self.window = turn, window
        self.project = nn.Linear(size, attend.query_size + attend.key_value_size, bias)

    def describe(self) -> Description:
        window = f", window {self.window}" if self.window else ""
        name, shape = f"self-attention ({self.attend.heads} heads{window})", PAST if self.causal else AROUND
        return Description(name, shape, count_parameters(self), SELF_ATTENTION)

    def own_block(self, kind: int) -> native_stack.Block | None:
        if not self.turn.native:
            return None
        options = {"attend": self.attend, "rate": self.turn.rate, "window": self.window}
        return native_stack.make_block(kind, self.project, self.attend.out, **options)


class SelfAttention(OwnAttention):
    """Each element looks at all of its sequence or, with a window, at so many elements on each side."""

    causal = False

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if mask is not None and self.window and not is_right_padded(mask):
            order, back = to_front(mask)  # so that what is near in the sequence is near in the batch
            y, state = self.forward(take_steps(x, order), state, take_steps(mask, order))
            return take_steps(y, back), state
        x = zero_padding(x, mask)
        query, keys, values = heads_of(self.project(x), self.attend)
        positions, _ = self.turn.positions(x, self.turn.initial_state(x), mask)
        query, keys = self.turn(query, positions), self.turn(keys, positions)
        if self.window:
            y = attend_window(self.attend, query, keys, values, self.window, self.window, mask)
        else:
            y = self.attend(query, keys, values, mask)
        return zero_padding(y, mask), state

    def block(self) -> native_stack.Block | None:
        return None if self.window else self.own_block(native_stack.WHOLE)


class CausalAttention(OwnAttention):
    """Each element looks at itself and at what came before; with a window, at so many elements in all."""

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        weight = self.project.weight
        empty = weight.new_zeros(batch, 0, self.attend.key_value_size)
        return Cache.of(empty, empty.new_zeros(batch, 0, dtype=torch.bool)), self.turn.initial_state(empty)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        cache, count = state
        if mask is not None and cache.length == 0 and not is_right_padded(mask):
            order, back = to_front(mask)  # so that no T × T mask is needed
            y, state = self.forward(take_steps(x, order), state, take_steps(mask, order))
            return take_steps(y, back), state
        x = zero_padding(x, mask)
        query, keys, values = heads_of(self.project(x), self.attend)
        positions, count = self.turn.positions(x, count, mask)
        query, keys = self.turn(query, positions), self.turn(keys, positions)
        whole = cache.length == 0  # all there is: padding stands at the end, where only padding sees it
        cache = cache.append(joined(keys, values), mask)
        if whole and self.window:
            y = attend_window(self.attend, query, keys, values, self.window - 1, 0, None)
        elif whole:
            y = self.attend(query, keys, values, causal=True)
        else:
            seen = visible(cache, x.shape[1], self.window)
            y = self.attend(query, *self.attend.split_keys_values(cache.read()[0]), seen)
        return zero_padding(y, mask), (cache.trimmed(self.window) if self.window else cache, count)

    def fast_step(self) -> Step:
        return attention_steps.step_causal(self)

    def block(self) -> native_stack.Block | None:
        return self.own_block(native_stack.OWN)


def heads_of(projected: Tensor, attend: MultiHeadAttention) -> tuple[Tensor, Tensor, Tensor]:
    """Query, keys and values of each head from one product (B, T, …)."""
    query, keys_values = projected.split([attend.query_size, attend.key_value_size], -1)
    return attend.split(query), *attend.split_keys_values(keys_values)


def joined(keys: Tensor, values: Tensor) -> Tensor:
    """Keys and values of all heads side by side, as a cache holds them: (B, T, …)."""
    return torch.cat([keys.transpose(1, 2).flatten(2), values.transpose(1, 2).flatten(2)], -1)


class CrossAttention(MultiHeadLayer):
    """Each element looks at the memory."""

    looks_at, projections = {SOURCE: "attend.weights"}, ("query.weight", "key_value.weight")

    def __init__(self, size: int, memory: int, attend: MultiHeadAttention, bias: bool = True) -> None:
        super().__init__(attend)
        self.query = nn.Linear(size, attend.query_size, bias)
        self.key_value = nn.Linear(memory, attend.key_value_size, bias)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        if memory is None:
            raise ValueError("attention needs a memory to look at, but the layer was started without one")
        return Shared((self.key_value(memory.values), memory.mask))

    def look(self, x: Tensor, keys_values: Tensor, mask: Tensor) -> Tensor:
        seen: Tensor = self.attend(self.attend.split(self.query(x)), *self.attend.split_keys_values(keys_values), mask)
        return seen

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return zero_padding(state.ask(self.look, zero_padding(x, mask)), mask), state

    def describe(self) -> Description:
        name = f"source attention ({self.attend.heads} heads)"
        return Description(name, EACH, count_parameters(self), SOURCE_ATTENTION, looks=True)

    def fast_step(self) -> Step:
        return attention_steps.step_cross(self)

    def block(self) -> native_stack.Block | None:
        return native_stack.make_block(native_stack.MEMORY, self.query, self.attend.out, attend=self.attend)


class SwiGLU(nn.Module):
    """Half of the features gates the other half (Shazeer, 2020)."""

    native_activation = native_stack.SWIGLU

    def forward(self, x: Tensor) -> Tensor:
        gate, value = x.chunk(2, -1)
        return F.silu(gate) * value

    def fast_change(self) -> Change:
        def swiglu(x: Tensor) -> Tensor:
            half = x.shape[1] // 2
            return F.silu(x[:, :half]) * x[:, half:]

        return swiglu


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "swiglu": SwiGLU}


def position_wise(size: int, hidden: int, activation: str, dropout: float, bias: bool = True) -> Layer:
    """The same small net on every element."""
    width = 2 * hidden if activation == "swiglu" else hidden
    return Pointwise(
        nn.Linear(size, width, bias), ACTIVATIONS[activation](), Dropout(dropout), nn.Linear(hidden, size, bias)
    )


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
    norm_type: str = "layer",
    activation: str = "gelu",
    positions: str = "sinusoidal",
    max_positions: int = 512,
    window: int = 0,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    bias: bool = True,
) -> Layer:
    """An encoder if not causal, a decoder if causal, looking at a memory if it has a size."""
    residual, attention = RESIDUALS[norm], CausalAttention if causal else SelfAttention
    before: dict[str, list[Layer]] = {
        "sinusoidal": [SinusoidalPositions(size)],
        "learned": [LearnedPositions(size, max_positions)],
        "rotary": [],
        "none": [],
    }

    def turn() -> Rotation:
        return Rotary(size // heads) if positions == "rotary" else NoRotation()

    def looking() -> MultiHeadAttention:
        return MultiHeadAttention(size, heads, bias=bias, dropout=attention_dropout)

    layers: list[Layer] = [] if inputs == size else [Pointwise(nn.Linear(inputs, size, bias))]
    layers += [*before[positions], Pointwise(Dropout(dropout))]
    for _ in range(depth):
        own = attention(size, looking(), turn(), window, bias)
        layers.append(residual(size, own, dropout, norm_type))
        if memory:
            other = CrossAttention(size, memory, looking(), bias)
            layers.append(residual(size, other, dropout, norm_type))
        each = position_wise(size, feed_forward or 4 * size, activation, dropout, bias)
        layers.append(residual(size, each, dropout, norm_type))
    if norm == "pre":
        layers.append(Pointwise(NORMS[norm_type](size)))
    return Stack(*layers)
