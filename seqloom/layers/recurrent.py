"""Recurrent layers: any cell, any depth, one way or both, and where they start."""

import torch
from torch import Tensor, nn

from .base import Each, Entries, Layer, Memory, Modules, Stack
from .cells import Cell, MakeCell
from .padding import blank
from .state import State

Hands = tuple[tuple[int, ...], ...]  # the sizes of an encoder's final states, level by level


class Zeros(nn.Module):
    """Start from nothing."""

    def forward(self, zeros: Entries, memory: Memory | None) -> Entries:
        return zeros


class Handed(nn.Module):
    """Start where the encoder's recurrence of the same level arrived."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    def forward(self, zeros: Entries, memory: Memory) -> Entries:
        return memory.state[self.level]


class Bridge(nn.Module):
    """Start from the memory's summary, through a learnt map."""

    def __init__(self, memory: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes, self.linear = sizes, nn.Linear(memory, sum(sizes))

    def forward(self, zeros: Entries, memory: Memory) -> Entries:
        entries: Entries = self.linear(memory.summary).tanh().split(self.sizes, 1)
        return entries


class Recurrent(Layer):
    """A cell walked over time."""

    def __init__(self, cell: Cell, begin: nn.Module) -> None:
        super().__init__()
        self.cell, self.begin, self.hands = cell, begin, (cell.sizes,)

    def start(self, batch: int, memory: Memory | None = None) -> State:
        return self.begin(zeros(self.cell, batch), memory)

    def handed(self, state: State) -> tuple[Entries, ...]:
        return (state,)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        y, state = self.cell.scan(blank(x, mask), state, mask)
        return blank(y, mask), state


class BothWays(Layer):
    """One cell reads forwards, one backwards; for sequences known to their end."""

    causal = False

    def __init__(self, forwards: Cell, backwards: Cell) -> None:
        super().__init__()
        self.ways = Modules([Recurrent(forwards, Zeros()), Recurrent(backwards, Zeros())])
        self.hands = (tuple(map(sum, zip(forwards.sizes, backwards.sizes, strict=True))),)

    def start(self, batch: int, memory: Memory | None = None) -> State:
        return tuple(way.start(batch) for way in self.ways)

    def handed(self, state: State) -> tuple[Entries, ...]:
        return (tuple(torch.cat(pair, 1) for pair in zip(*state, strict=True)),)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        forwards, backwards = self.ways
        there, end = forwards(x, state[0], mask)
        back, begin = backwards(x.flip(1), state[1], None if mask is None else mask.flip(1))
        return torch.cat([there, back.flip(1)], -1), (end, begin)


def zeros(cell: Cell, batch: int) -> Entries:
    weight = next(cell.parameters())
    return tuple(weight.new_zeros(batch, size) for size in cell.sizes)


def stacked(levels: list[Layer], dropout: float) -> Stack:
    """Levels one on another; what passes between them, and only that, is dropped out."""
    between: list[Layer] = [level for layer in levels[:-1] for level in (layer, Each(nn.Dropout(dropout)))]
    return Stack(*(between if dropout else levels[:-1]), levels[-1])


def recurrent_encoder(
    cell: MakeCell, inputs: int, size: int, depth: int = 1, both_ways: bool = True, dropout: float = 0.0
) -> Layer:
    """Both ways, each has half of the size."""

    def layer(width: int) -> Layer:
        if both_ways:
            return BothWays(cell(width, size // 2), cell(width, size // 2))
        return Recurrent(cell(width, size), Zeros())

    return stacked([layer(size if level else inputs) for level in range(depth)], dropout)


def recurrent_decoder(
    cell: MakeCell,
    inputs: int,
    size: int,
    depth: int = 1,
    memory: int = 0,
    hands: Hands = (),
    dropout: float = 0.0,
) -> Layer:
    """`memory` is the size of the encoder's values, `hands` what it hands over; without them, it starts from zero."""
    cells = [cell(size if level else inputs, size) for level in range(depth)]
    return stacked([Recurrent(cell, begin(cell, level, memory, hands)) for level, cell in enumerate(cells)], dropout)


def begin(cell: Cell, level: int, memory: int, hands: Hands) -> nn.Module:
    """The encoder's own state where the sizes agree, else a bridge."""
    if not memory:
        return Zeros()
    if level < len(hands) and hands[level] == cell.sizes:
        return Handed(level)
    return Bridge(memory, cell.sizes)
