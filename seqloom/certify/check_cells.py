"""Cells: the product's scan against the equations, its fast path against its slow one, and against differences."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..layers import CELLS, Cell, recording
from ..layers.cells import (
    CoupledLSTMCell,
    DecayGRUCell,
    GRUCell,
    LSTMCell,
    MakeCell,
    NormedGRUCell,
    NormedLSTMCell,
    ProjectedLSTMCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from .certificate import EXACT, STENCIL, Check, Gaps, compare, differences, leaf, stirred
from .reference_cells import (
    STEPS,
    Step,
    coupled,
    elman,
    gru_after,
    gru_before,
    gru_d,
    lstm,
    normed_gru,
    normed_lstm,
    read,
)
from .reference_cells import projected as projected_step
from .reference_maths import Parameters

INPUTS, SIZE = 3, 4
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()


@dataclass(frozen=True)
class Subject:
    """A cell and the equations it is held to."""

    name: str
    make: MakeCell
    step: Step


# What has a reference but no name of its own in `CELLS`, and what papers leave as options.
OTHERS = (
    Subject("lstm, projected", partial(ProjectedLSTMCell, memory=6), projected_step),
    Subject("gru-d", DecayGRUCell, gru_d),
    *(
        Subject(f"{name}, no biases", partial(make, bias=False), step)
        for name, make, step in (
            ("rnn", RNNCell, elman),
            ("lstm", LSTMCell, lstm),
            ("lstm, projected", partial(ProjectedLSTMCell, memory=6), projected_step),
            ("lstm-normed", NormedLSTMCell, normed_lstm),
            ("coupled", CoupledLSTMCell, coupled),
            ("gru", GRUCell, gru_after),
            ("gru-before", ResetBeforeGRUCell, gru_before),
            ("gru-normed", NormedGRUCell, normed_gru),
            ("gru-d", DecayGRUCell, gru_d),
        )
    ),
)


def subjects() -> Iterator[Subject]:
    """Every cell that has a reference. That this is every cell there is, a test says."""
    yield from (Subject(name, CELLS[name], step) for name, step in STEPS.items() if name in CELLS)
    yield from (subject for subject in OTHERS if subject.name not in CELLS)


class Case:
    """A cell with random weights, something to read, and everything its outputs depend on."""

    def __init__(self, make: MakeCell, mask: Tensor = MASK) -> None:
        self.mask = mask
        self.cell: Cell = stirred(make(INPUTS, SIZE))
        rows, time = mask.shape
        self.inputs = [leaf(rows, time, INPUTS)]
        self.flags: Tensor | None = None
        if isinstance(self.cell, DecayGRUCell):  # what was observed is not a number to differentiate by
            channels = self.cell.channels
            self.inputs = [leaf(rows, time, channels), torch.rand(rows, time, channels).requires_grad_()]
            self.flags = (torch.rand(rows, time, channels) < 0.5).double()
        self.first = [leaf(rows, size) for size in self.cell.sizes]

    def x(self) -> Tensor:
        """(B, T, inputs)."""
        return self.inputs[0] if self.flags is None else torch.cat([self.inputs[0], self.flags, self.inputs[1]], -1)

    @property
    def leaves(self) -> list[Tensor]:
        return [*self.inputs, *self.first, *self.cell.parameters()]

    def product(self) -> list[Tensor]:
        """All outputs and the last entries."""
        y, last = self.cell.scan(self.x(), tuple(self.first), self.mask)
        return [y.masked_fill(~self.mask[..., None], 0), *last]

    def spelled_out(self) -> list[Tensor]:
        """The same with somebody watching, so that the equations in `cells.py` are walked step by step."""
        with recording(self.cell):
            return self.product()

    def reference(self, step: Step) -> list[Tensor]:
        y, last = read(step, Parameters.of(self.cell), self.x(), tuple(self.first), self.mask)
        return [y, *last]


def follows_its_equations(subject: Subject) -> Gaps:
    """The path that is taken unwatched, and the one that is taken watched."""
    case = Case(subject.make)
    expected = case.reference(subject.step)
    return compare([*case.product(), *case.spelled_out()], [*expected, *expected], case.leaves)


def is_fast_and_the_same(make: MakeCell) -> Gaps:
    case = Case(make)
    return compare(case.product(), case.spelled_out(), case.leaves)


def has_the_measured_slopes(make: MakeCell) -> Gaps:
    case = Case(make, MASK[:3])
    return differences(case.product, case.leaves)


def has_a_kernel(make: MakeCell) -> bool:
    return make(INPUTS, SIZE).kernel() is not None


def checks() -> Iterator[Check]:
    def check(subject: Subject, claim: str, limit: float, measure: Callable[[], Gaps]) -> Check:
        return Check("cells", subject.name, claim, limit, measure)

    for subject in subjects():
        yield check(subject, "the written equations", EXACT, partial(follows_its_equations, subject))
        if has_a_kernel(subject.make):
            yield check(subject, "fast path = slow path", EXACT, partial(is_fast_and_the_same, subject.make))
        yield check(subject, "finite differences", STENCIL, partial(has_the_measured_slopes, subject.make))
