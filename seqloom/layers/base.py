"""The one shape all layers have, and the layers made of layers.

B rows in the batch, T steps, S steps of a source, D features.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from .padding import first_step, full_mask, gather_steps, last_step, zero_padding
from .state import State
from .tap import Tap

Entries = tuple[Tensor, ...]  # the state of one recurrence, each (B, size)


class Memory(NamedTuple):
    """An encoded source: what a layer may start from and look at."""

    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, S), true where there is something to see
    summary: Tensor  # (B, D), the whole source in one vector
    final_states: tuple[Entries, ...]  # where each recurrence of the encoder arrived, the lowest first


class Layer(nn.Module):
    """Reads a sequence, all at once or, if `causal`, piece by piece: the state says what was read before."""

    causal: bool = True
    final_state_sizes: tuple[tuple[int, ...], ...] = ()  # the sizes of what `handed` gives

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        """The state before the first step; whatever the layer needs of the memory goes into it."""
        return ()

    def final_states(self, state: State) -> tuple[Entries, ...]:
        """What of the state an encoder hands to a decoder: one entry per recurrence."""
        return ()

    @abstractmethod
    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Read x (B, T, D). Where the mask (B, T) is false, the state passes and the output is zero."""

    def __call__(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        result: tuple[Tensor, State] = super().__call__(x, state, mask)
        return result


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
        self.out = Modules(Tap() for _ in layers)  # what each layer says
        self.causal = all(layer.causal for layer in layers)
        self.final_state_sizes = sum((layer.final_state_sizes for layer in layers), ())

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return tuple(layer.initial_state(batch, memory) for layer in self.layers)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return sum((layer.final_states(part) for layer, part in zip(self.layers, state, strict=True)), ())

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        after = []
        for layer, out, before in zip(self.layers, self.out, state, strict=True):
            x, passed = layer(x, before, mask)
            x = out(x)
            after.append(passed)
        return x, tuple(after)


class Pointwise(Layer):
    """The same module on every element: a projection, a norm, a feed-forward net."""

    def __init__(self, *modules: nn.Module) -> None:
        super().__init__()
        self.module = nn.Sequential(*modules)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return zero_padding(self.module(zero_padding(x, mask)), mask), state


Pool = Callable[[Tensor, Tensor], Tensor]  # values (B, T, D) and their mask to a summary (B, D)


class Encoder(nn.Module):
    """Reads whole sequences into a memory; `pool` makes the summary."""

    def __init__(self, layer: Layer, pool: Pool) -> None:
        super().__init__()
        self.layer, self.pool = layer, pool

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        values, state = self.layer(x, self.layer.initial_state(len(x)), mask)
        seen = full_mask(x) if mask is None else mask
        return Memory(values, seen, self.pool(values, seen), self.layer.final_states(state))


def mean_pool(values: Tensor, mask: Tensor) -> Tensor:
    return values.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)  # padding is zero


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
