"""The one shape all layers have, and the layers made of layers.

B rows in the batch, T steps, S steps of a source, D features.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from .description import EACH, FEED_FORWARD, POINTWISE, POSITIONS, Child, DescribedModule, Description, count_parameters
from .fast import native_decoder, native_stack, native_steps, steps
from .padding import first_step, full_mask, gather_steps, last_step, zero_padding
from .state import Entries as Entries
from .state import State
from .tap import Tap, is_watched


class Memory(NamedTuple):
    """An encoded source: what a layer may start from and look at."""

    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, S), true where there is something to see
    summary: Tensor  # (B, D), the whole source in one vector
    final_states: tuple[Entries, ...]  # where each recurrence of the encoder arrived, the lowest first


class Layer(DescribedModule):
    """Reads a sequence, all at once or, if `causal`, piece by piece: the state says what was read before.

    To write one, `forward` is enough, and `initial_state` if it has a state. What else it can say (`describe`,
    `children_in_order`, the fast ways) makes it nicer to look at and faster, and changes no number.
    """

    causal: bool = True
    final_state_sizes: tuple[tuple[int, ...], ...] = ()  # the sizes of what `final_states` gives
    output = "output_tap"
    inside = ""  # the beginning of the names of what it goes around, if it is only around something
    fast_ways = ("fast_step", "fast_read", "block", "decoder_parts")

    def __init__(self) -> None:
        super().__init__()
        self.output_tap = Tap()

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        """The state before the first step; whatever the layer needs of the memory goes into it."""
        return ()

    def final_states(self, state: State) -> tuple[Entries, ...]:
        """What of the state an encoder hands to a decoder: one entry per recurrence."""
        return ()

    @abstractmethod
    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Read x (B, T, D). Where the mask (B, T) is false, the state passes and the output is zero."""

    def __call__(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """`forward`; without a state from the beginning."""
        y, state = super().__call__(x, self.initial_state(len(x)) if state is None else state, mask)
        return self.output_tap(y), state

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """`forward` for whole sequences from their beginning: (B, T, D)."""
        y, _ = self(x, self.initial_state(len(x)), mask)
        return y

    def read_states(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        """What goes in, and what comes out of each layer of a stack: (B, T, D) each, the last is what `read` gives."""
        return [x, self.read(x, mask)]

    def fast_step(self) -> steps.Step:
        """`forward` for one element a row, prepared for many steps without gradient; by default `forward` itself."""
        return steps.plain_step(self)

    def fast_read(self, x: Tensor, mask: Tensor) -> tuple[Tensor, State]:
        """`forward` for whole sequences from their beginning, without gradient."""
        return self(x, self.initial_state(len(x)), mask)

    def block(self) -> native_stack.Block | None:
        """What native code has to know to compute this layer together with its neighbors, if it can."""
        return None

    def decoder_parts(self) -> native_decoder.Parts | None:
        """What native code has to know to step through this layer as part of a whole decoder, if it can; and where in
        its state each part has its own."""
        block = self.block()
        return None if block is None or block.join is None else [(block, ())]


class WrappedLayer(Layer):
    """Around another layer, whose state it has: it changes what that one reads, or what it gives."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer, self.causal, self.final_state_sizes = layer, layer.causal, layer.final_state_sizes

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.layer.initial_state(batch, memory)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return self.layer.final_states(state)


M = TypeVar("M", bound=nn.Module)


class Modules(nn.ModuleList, Generic[M]):
    """`nn.ModuleList` with a type."""

    def __init__(self, modules: Iterable[M]) -> None:
        super().__init__(modules)

    def __iter__(self) -> Iterator[M]:
        return iter(super().__iter__())  # type: ignore[arg-type]


class Stack(Layer):
    """Layers one after another."""

    def __init__(self, *layers: Layer) -> None:
        super().__init__()
        self.layers = Modules(layers)
        self.causal = all(layer.causal for layer in layers)
        self.final_state_sizes = sum((layer.final_state_sizes for layer in layers), ())

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return tuple(layer.initial_state(batch, memory) for layer in self.layers)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return sum((layer.final_states(part) for layer, part in zip(self.layers, state, strict=True)), ())

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        after = []
        for layer, before in zip(self.layers, state, strict=True):
            x, passed = layer(x, before, mask)
            after.append(passed)
        return x, tuple(after)

    def read_states(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        """What joins no steps (norms, positions, feed-forward nets) belongs to the layer before it."""
        states = [x]
        for layer in self.layers:
            beside = layer.describe().role in (FEED_FORWARD, POINTWISE, POSITIONS)
            states[-1 if beside else len(states) :] = [layer.read(states[-1], mask)]
        return states

    def children_in_order(self) -> list[Child]:
        return [Child(f"layers.{number}", layer) for number, layer in enumerate(self.layers)]

    def fast_step(self) -> steps.Step:
        return steps.step_through(self.layers)

    def fast_read(self, x: Tensor, mask: Tensor) -> tuple[Tensor, State]:
        return steps.read_through(self.layers, x, self.initial_state(len(x)), mask)

    def decoder_parts(self) -> native_decoder.Parts | None:
        parts: native_decoder.Parts = []
        for number, layer in enumerate(self.layers):
            inner = layer.decoder_parts()
            if inner is None:
                return None
            parts += [(part, (number, *path)) for part, path in inner]
        return parts


class Pointwise(Layer):
    """The same module on every element: a projection, a norm, a feed-forward net."""

    def __init__(self, *modules: nn.Module) -> None:
        super().__init__()
        self.module = nn.Sequential(*modules)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return zero_padding(self.module(zero_padding(x, mask)), mask), state

    def describe(self) -> Description:
        kinds, size = [type(part) for part in self.module.modules()], count_parameters(self)
        if kinds.count(nn.Linear) > 1:
            return Description("feed-forward", EACH, size, FEED_FORWARD)
        return Description(
            "norm" if nn.LayerNorm in kinds or nn.RMSNorm in kinds else "projection", EACH, size, POINTWISE
        )

    def fast_step(self) -> steps.Step:
        return steps.step_pointwise(self.module)

    def fast_read(self, x: Tensor, mask: Tensor) -> tuple[Tensor, State]:
        return super().fast_read(x, mask) if steps.active_modules(self.module) else (x, ())

    def block(self) -> native_stack.Block | None:
        return native_stack.feed_forward_block(steps.active_modules(self.module))

    def decoder_parts(self) -> native_decoder.Parts | None:
        norms = [native_steps.norm_of(module) for module in steps.active_modules(self.module)]
        return [(norm, ()) for norm in norms if norm is not None] if None not in norms else None


Pool = Callable[[Tensor, Tensor], Tensor]  # values (B, T, D) and their mask to a summary (B, D)


class Encoder(DescribedModule):
    """Reads whole sequences into a memory; `pool` makes the summary."""

    def __init__(self, layer: Layer, pool: Pool) -> None:
        super().__init__()
        self.layer, self.pool = layer, pool

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        return self._remember(
            *self.layer(x, self.layer.initial_state(len(x)), mask), full_mask(x) if mask is None else mask
        )

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """The values alone (B, T, D)."""
        memory: Memory = self(x, mask)
        return memory.values

    def encode(self, x: Tensor, mask: Tensor) -> Memory:
        """`forward`; without gradient, the fast way."""
        layer = self.layer
        if torch.is_grad_enabled() or layer.training or is_watched(layer):
            return self(x, mask)
        return self._remember(*layer.fast_read(x, mask), mask)

    def _remember(self, values: Tensor, state: State, mask: Tensor) -> Memory:
        return Memory(values, mask, self.pool(values, mask), self.layer.final_states(state))


def mean_pool(values: Tensor, mask: Tensor) -> Tensor:
    return values.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)  # padding is zero


def sqrtn_pool(values: Tensor, mask: Tensor) -> Tensor:
    """The sum divided by the square root of the number of elements: between sum and mean, as long texts say more."""
    return values.sum(1) / mask.sum(1, keepdim=True).clamp(min=1).sqrt()


def last_bidirectional_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Where each direction of a two-way layer arrives: half the features at the end, half at the beginning."""
    there, back = values.chunk(2, -1)
    return torch.cat([gather_steps(there, last_step(mask)), gather_steps(back, first_step(mask))], -1)


def max_pool(values: Tensor, mask: Tensor) -> Tensor:
    """The largest value of each feature; where there is nothing, zero."""
    shown = values.masked_fill(~mask[..., None], torch.finfo(values.dtype).min).amax(1)
    return torch.where(mask.any(1, keepdim=True), shown, 0)


def last_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Where a one-way layer arrives."""
    return gather_steps(values, last_step(mask))


def first_pool(values: Tensor, mask: Tensor) -> Tensor:
    """The first element, which may stand for all (BERT's [CLS])."""
    return gather_steps(values, first_step(mask))


def flatten_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Every element, side by side: for sequences of one length."""
    return values.flatten(1)
