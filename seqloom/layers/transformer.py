"""Transformer layers. Their state is the keys and values of all that was read, and those of the memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import MultiHeadAttention
from .base import Layer, Memory, Pointwise, Stack
from .cache import Cache, find_visible
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
from .fast.steps import Change, Step, change_of
from .padding import is_right_padded, take_steps, to_front, zero_padding
from .positions import LearnedPositions, NoRotation, Rotary, Rotation, SinusoidalPositions
from .quantization import eight_bits
from .residual import NORMS, RESIDUALS, Residual
from .state import SharedLeaf, State
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

    def make_block(self, kind: int) -> native_stack.Block | None:
        if not self.turn.native or self.attend.hard:
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
        return None if self.window else self.make_block(native_stack.WHOLE)


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
        cache = cache.append(join_keys_values(keys, values), mask)
        if whole and self.window:
            y = attend_window(self.attend, query, keys, values, self.window - 1, 0, None)
        elif whole:
            y = self.attend(query, keys, values, causal=True)
        else:
            mask_of_cache = find_visible(cache, x.shape[1], self.window)
            y = self.attend(query, *self.attend.split_keys_values(cache.read()[0]), mask_of_cache)
        return zero_padding(y, mask), (cache.trim(self.window) if self.window else cache, count)

    def fast_step(self) -> Step:
        return super().fast_step() if self.attend.hard else attention_steps.step_causal(self)

    def block(self) -> native_stack.Block | None:
        return self.make_block(native_stack.OWN)


def heads_of(projected: Tensor, attend: MultiHeadAttention) -> tuple[Tensor, Tensor, Tensor]:
    """Query, keys and values of each head from one product (B, T, …)."""
    query, keys_values = projected.split([attend.query_size, attend.key_value_size], -1)
    return attend.split(query), *attend.split_keys_values(keys_values)


def join_keys_values(keys: Tensor, values: Tensor) -> Tensor:
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
        if eight_bits.get() and not torch.is_grad_enabled():
            rows = change_of(self.key_value)(memory.values.flatten(0, 1))
            return SharedLeaf((rows.unflatten(0, memory.values.shape[:2]), memory.mask))
        return SharedLeaf((self.key_value(memory.values), memory.mask))

    def look(self, x: Tensor, keys_values: Tensor, mask: Tensor) -> Tensor:
        return self.attend(self.attend.split(self.query(x)), *self.attend.split_keys_values(keys_values), mask)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return zero_padding(state.ask(self.look, zero_padding(x, mask)), mask), state

    def describe(self) -> Description:
        name = f"source attention ({self.attend.heads} heads)"
        return Description(name, EACH, count_parameters(self), SOURCE_ATTENTION, looks=True)

    def fast_step(self) -> Step:
        return super().fast_step() if self.attend.hard else attention_steps.step_cross(self)

    def block(self) -> native_stack.Block | None:
        if self.attend.hard:
            return None
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


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU("tanh"),  # as GPT-2 approximates it
    "silu": nn.SiLU,  # as in Marian
    "swiglu": SwiGLU,
}


def position_wise(size: int, hidden: int, activation: str, dropout: float, bias: bool = True) -> Layer:
    """The same small net on every element."""
    width = 2 * hidden if activation == "swiglu" else hidden
    return Pointwise(
        nn.Linear(size, width, bias), ACTIVATIONS[activation](), Dropout(dropout), nn.Linear(hidden, size, bias)
    )


@dataclass(frozen=True)
class TransformerConfig:
    """The settings of a Transformer, whatever it reads and whether it may read ahead."""

    size: int
    depth: int = 2
    heads: int = 4
    key_size: int = 0  # of a query and a key in each head; 0: the size divided by the heads
    value_size: int = 0  # of a value in each head; 0: as a key
    feed_forward: int = 0  # features inside the position-wise nets; 0: four times the size
    norm: str = "pre"  # of RESIDUALS
    rezero_shared: bool = False  # one factor for all residuals of a layer; else one each
    norm_type: str = "layer"  # of NORMS
    norm_epsilon: float = 1e-5  # what layer norms add to the variance
    activation: str = "gelu"  # of ACTIVATIONS
    positions: str = "sinusoidal"  # or "learned", "rotary", "none"
    max_positions: int = 512  # of learned ones
    embedding_norm: bool = False  # of what the first layer reads, positions included
    window: int = 0  # elements that the self-attention sees; 0: all
    dropout: float = 0.0
    attention_dropout: float = 0.0
    hard_attention: bool = False  # each head looks at a single place
    bias: bool = True

    def attention(self) -> MultiHeadAttention:
        widths, hard = (self.key_size, self.value_size), self.hard_attention
        return MultiHeadAttention(self.size, self.heads, *widths, self.bias, self.attention_dropout, hard)

    def rotation(self) -> Rotation:
        return Rotary(self.key_size or self.size // self.heads) if self.positions == "rotary" else NoRotation()

    def position_layers(self) -> list[Layer]:
        """What adds positions to the elements, if anything does."""
        if self.positions == "sinusoidal":
            return [SinusoidalPositions(self.size)]
        return [LearnedPositions(self.size, self.max_positions)] if self.positions == "learned" else []

    def residuals(self, layers: Sequence[Layer]) -> list[Residual]:
        """The parts of one layer, each with the way around it."""
        residuals: list[Residual] = [
            RESIDUALS[self.norm](self.size, layer, self.dropout, self.norm_type, self.bias) for layer in layers
        ]
        if self.norm == "rezero" and self.rezero_shared:
            for other in residuals[1:]:
                other.share = residuals[0].share
        return residuals


def transformer(inputs: int, config: TransformerConfig, *, causal: bool, memory: int = 0) -> Layer:
    """An encoder if not causal, a decoder if causal, looking at a memory if it has a size."""
    size, bias = config.size, config.bias
    attention = CausalAttention if causal else SelfAttention
    layers: list[Layer] = [] if inputs == size else [Pointwise(nn.Linear(inputs, size, bias))]
    layers += config.position_layers()
    if config.embedding_norm:
        layers.append(Pointwise(NORMS[config.norm_type](size, bias)))
    layers.append(Pointwise(Dropout(config.dropout)))
    for _ in range(config.depth):
        inner: list[Layer] = [attention(size, config.attention(), config.rotation(), config.window, bias)]
        if memory:
            inner.append(CrossAttention(size, memory, config.attention(), bias))
        inner.append(position_wise(size, config.feed_forward or 4 * size, config.activation, config.dropout, bias))
        layers += config.residuals(inner)
    if config.norm == "pre":
        layers.append(Pointwise(NORMS[config.norm_type](size, bias)))
    return set_epsilon(Stack(*layers), config.norm_epsilon)


def set_epsilon(stack: Stack, epsilon: float) -> Stack:
    """What its layer norms add to the variance."""
    for part in stack.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = epsilon
    return stack
