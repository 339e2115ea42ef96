"""Recurrent layers: any cell, any depth and widths, one way or both, and where they start."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from .base import Entries, Layer, Memory, Modules, Pointwise, Stack
from .cells import Cell, MakeCell
from .description import BACKWARDS, BOTH, EACH, FORWARDS, POINTWISE, RECURRENCE, Child, Description, count_parameters
from .fast import cell_steps, native_decoder, steps
from .fast.dropout import Dropout
from .padding import zero_padding
from .state import State

FinalStateSizes = tuple[tuple[int, ...], ...]  # the sizes of an encoder's final states, level by level


# --- where a recurrence starts ----------------------------------------------------------------------------------


class ZeroState(nn.Module):
    """Start from nothing."""

    def forward(self, zeros: Entries, memory: Memory | None) -> Entries:
        return zeros


class LearnedState(nn.Module):
    """Start from what training found best: the same for every sequence."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.first = nn.ParameterList(torch.zeros(size) for size in sizes)

    def forward(self, zeros: Entries, memory: Memory | None) -> Entries:
        return tuple(zero + first for zero, first in zip(zeros, self.first, strict=True))


class CopiedState(nn.Module):
    """Start where the encoder's recurrence of the same level arrived."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    def forward(self, zeros: Entries, memory: Memory) -> Entries:
        return memory.final_states[self.level]


class BridgedState(nn.Module):
    """Start from the memory's summary, through a learned map."""

    def __init__(self, memory: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes, self.linear = list(sizes), nn.Linear(memory, sum(sizes))

    def forward(self, zeros: Entries, memory: Memory) -> Entries:
        return self.linear(memory.summary).tanh().split(self.sizes, 1)


def build_initial_state(cell: Cell, initial_state: str) -> nn.Module:
    """Where a recurrence starts that has nobody to take over from: "zero" or "learned"."""
    return LearnedState(cell.sizes) if initial_state == "learned" else ZeroState()


def build_decoder_initial_state(
    cell: Cell, level: int, memory: int, final_state_sizes: FinalStateSizes, initial_state: str = "zero"
) -> nn.Module:
    """The encoder's own state where the sizes agree, else a bridge; without an encoder, zero or learned."""
    if not memory:
        return build_initial_state(cell, initial_state)
    if level < len(final_state_sizes) and final_state_sizes[level] == cell.sizes:
        return CopiedState(level)
    return BridgedState(memory, cell.sizes)


# --- layers -----------------------------------------------------------------------------------------------------


class Recurrent(Layer):
    """A cell walked over time."""

    def __init__(self, cell: Cell, begin: nn.Module) -> None:
        super().__init__()
        self.cell, self.begin, self.final_state_sizes = cell, begin, (cell.sizes,)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.begin(zero_entries(self.cell, batch), memory)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return (state,)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.cell.scan(x, state, mask)

    def describe(self) -> Description:
        return replace(self.cell.describe(), parameters=count_parameters(self))

    def fast_step(self) -> steps.Step:
        advance = self.cell.fast_step()
        if advance is None:
            return super().fast_step()
        return cell_steps.step_recurrence(advance, steps.change_of(self.cell.W))

    def decoder_parts(self) -> native_decoder.Parts | None:
        block = self.cell.block()
        return None if block is None else [(block, ())]


def zero_entries(cell: Cell, batch: int) -> Entries:
    weight = next(cell.parameters())
    return tuple(weight.new_zeros(batch, size) for size in cell.sizes)


class Concatenate(nn.Module):
    """What either way says, side by side."""

    def forward(self, there: Tensor, back: Tensor) -> Tensor:
        return torch.cat([there, back], -1)


class Mean(nn.Module):
    def forward(self, there: Tensor, back: Tensor) -> Tensor:
        return (there + back) / 2


class Sum(nn.Module):
    def forward(self, there: Tensor, back: Tensor) -> Tensor:
        return there + back


class Project(nn.Module):
    """A learned map of both, to the size of one."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * size, size)

    def forward(self, there: Tensor, back: Tensor) -> Tensor:
        return self.linear(torch.cat([there, back], -1))


class Bidirectional(Layer):
    """One cell reads forwards, one backwards; for sequences known to their end."""

    causal = False

    def __init__(self, forwards: Recurrent, backwards: Recurrent, merge: nn.Module) -> None:
        super().__init__()
        self.ways, self.merge = Modules([forwards, backwards]), merge
        self.final_state_sizes = (tuple(map(sum, zip(forwards.cell.sizes, backwards.cell.sizes, strict=True))),)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return tuple(way.initial_state(batch) for way in self.ways)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return (tuple(torch.cat(pair, 1) for pair in zip(*state, strict=True)),)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        forwards, backwards = self.ways
        there, end = forwards(x, state[0], mask)
        back, begin = backwards(x.flip(1), state[1], None if mask is None else mask.flip(1))
        return zero_padding(self.merge(there, back.flip(1)), mask), (end, begin)

    def children_in_order(self) -> list[Child]:
        directions = zip(self.ways, (FORWARDS, BACKWARDS), strict=True)
        return [Child(f"ways.{number}", way, words) for number, (way, words) in enumerate(directions)]

    def describe(self) -> Description:
        [forwards, _] = self.ways
        name = f"bidirectional {forwards.describe().name}"
        return Description(name, BOTH, count_parameters(self), RECURRENCE)


class SeparateDirections(Layer):
    """One stack reads forwards, one backwards, and only what comes out of them is joined: neither has seen what the
    other reads first, so each can be taught to predict what comes next in its direction (Peters et al., 2018)."""

    causal = False

    def __init__(self, forwards: Layer, backwards: Layer) -> None:
        super().__init__()
        self.ways = Modules([forwards, backwards])
        sizes = zip(forwards.final_state_sizes, backwards.final_state_sizes, strict=True)
        self.final_state_sizes = tuple(tuple(map(sum, zip(*pair, strict=True))) for pair in sizes)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return tuple(way.initial_state(batch) for way in self.ways)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        each = (way.final_states(part) for way, part in zip(self.ways, state, strict=True))
        return tuple(
            tuple(torch.cat(pair, 1) for pair in zip(*level, strict=True)) for level in zip(*each, strict=True)
        )

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        forwards, backwards = self.ways
        there, end = forwards(x, state[0], mask)
        back, begin = backwards(x.flip(1), state[1], None if mask is None else mask.flip(1))
        return zero_padding(torch.cat([there, back.flip(1)], -1), mask), (end, begin)

    def read_states(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        """Both directions side by side at every level; what goes in is the same for both."""
        forwards, backwards = self.ways
        there, back = forwards.read_states(x, mask), backwards.read_states(x.flip(1), mask.flip(1))
        joined = [torch.cat([one, other.flip(1)], -1) for one, other in zip(there, back, strict=True)]
        return [x, *joined[1:]]

    def children_in_order(self) -> list[Child]:
        directions = zip(self.ways, (FORWARDS, BACKWARDS), strict=True)
        return [Child(f"ways.{number}", way, words) for number, (way, words) in enumerate(directions)]


class VariationalDropout(Layer):
    """Dropout that leaves out the same features at every step of a sequence (Gal and Ghahramani, 2016)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if not self.training or not self.share:
            return x, state
        scale = torch.empty_like(x[:, :1]).bernoulli_(1 - self.share) / (1 - self.share)
        return x * scale, state

    def describe(self) -> Description:
        return Description("dropout", EACH, 0, POINTWISE)

    def fast_step(self) -> steps.Step:
        return steps.keep


# --- stacks -----------------------------------------------------------------------------------------------------


def stack_levels(levels: Sequence[Layer], dropout: float = 0.0, variational_dropout: bool = False) -> Stack:
    """Levels one on another; what passes between them, and only that, is dropped out."""
    if not dropout:
        return Stack(*levels)
    layers: list[Layer] = []
    for level in levels[:-1]:
        layers += [level, VariationalDropout(dropout) if variational_dropout else Pointwise(Dropout(dropout))]
    return Stack(*layers, levels[-1])


def build_bidirectional(cell: MakeCell, inputs: int, size: int, merge: str, initial_state: str) -> Layer:
    """Concatenated, each way has half of the size; merged otherwise, each has all of it."""
    width = size // 2 if merge == "concatenate" else size
    merges = {"concatenate": Concatenate, "mean": Mean, "sum": Sum}
    cells = [cell(inputs, width) for _ in range(2)]
    ways = [Recurrent(cell, build_initial_state(cell, initial_state)) for cell in cells]
    return Bidirectional(ways[0], ways[1], Project(size) if merge == "project" else merges[merge]())


def recurrent_encoder(
    cell: MakeCell,
    inputs: int,
    sizes: Sequence[int],
    *,
    merge: str = "concatenate",
    initial_state: str = "zero",
    dropout: float = 0.0,
    variational_dropout: bool = False,
) -> Layer:
    """One level for each of the sizes. `merge` is how the two ways are joined: "none" reads forwards only."""
    if merge == "separate":
        halves = [size // 2 for size in sizes]
        one_way = {"merge": "none", "initial_state": initial_state, "dropout": dropout}
        ways = [
            recurrent_encoder(cell, inputs, halves, variational_dropout=variational_dropout, **one_way)  # type: ignore[arg-type]
            for _ in range(2)
        ]
        return SeparateDirections(*ways)

    def layer(inputs: int, size: int) -> Layer:
        if merge == "none":
            built = cell(inputs, size)
            return Recurrent(built, build_initial_state(built, initial_state))
        return build_bidirectional(cell, inputs, size, merge, initial_state)

    return stack_levels(
        [layer(*widths) for widths in zip([inputs, *sizes], sizes, strict=False)], dropout, variational_dropout
    )


def recurrent_decoder(
    cell: MakeCell,
    inputs: int,
    sizes: Sequence[int],
    memory: int = 0,
    final_state_sizes: FinalStateSizes = (),
    *,
    initial_state: str = "zero",
    dropout: float = 0.0,
    variational_dropout: bool = False,
) -> Layer:
    """`memory` is the size of the encoder's values, `hands` what it hands over; without them, it starts by itself."""
    cells = [cell(*widths) for widths in zip([inputs, *sizes], sizes, strict=False)]
    levels = [
        Recurrent(cell, build_decoder_initial_state(cell, level, memory, final_state_sizes, initial_state))
        for level, cell in enumerate(cells)
    ]
    return stack_levels(levels, dropout, variational_dropout)
