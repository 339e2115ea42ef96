"""Cells: the scan against the equations, the fast path against the slow one, and against finite differences."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ..layers import CELLS, Cell
from ..layers.cells import (
    CoupledLSTMCell,
    DecayGRUCell,
    GRUCell,
    LSTMCell,
    NormedGRUCell,
    NormedLSTMCell,
    ProjectedLSTMCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from .certificate import Case, Check, check_case, draw_leaf, stir
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
    step_projected_lstm,
)
from .reference_maths import Parameters

INPUTS, SIZE = 3, 4
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()

# Draws what a cell reads over a mask: the tensors to differentiate by, and how they make x (B, T, inputs).
Draw = Callable[[Cell, Tensor], tuple[list[Tensor], Callable[[], Tensor]]]


def draw_vectors(cell: Cell, mask: Tensor) -> tuple[list[Tensor], Callable[[], Tensor]]:
    x = draw_leaf(*mask.shape, cell.inputs)
    return [x], lambda: x


def draw_observations(cell: Cell, mask: Tensor) -> tuple[list[Tensor], Callable[[], Tensor]]:
    """For GRU-D. What was observed is not a number to differentiate by."""
    shape = (*mask.shape, cell.inputs // 3)
    values, gaps, observed = draw_leaf(*shape), torch.rand(shape).requires_grad_(), (torch.rand(shape) < 0.5).double()
    return [values, gaps], lambda: torch.cat([values, observed, gaps], -1)


class Subject(NamedTuple):
    """A cell and the equations it is held to."""

    make: Callable[..., Cell]
    step: Step
    draw: Draw = draw_vectors


# What has a reference but no name of its own in `CELLS`, and what papers leave as options.
WITH_BIASES: dict[str, Subject] = {
    "rnn": Subject(RNNCell, elman),
    "lstm": Subject(LSTMCell, lstm),
    "lstm, projected": Subject(partial(ProjectedLSTMCell, memory=6), step_projected_lstm),
    "lstm-normed": Subject(NormedLSTMCell, normed_lstm),
    "coupled": Subject(CoupledLSTMCell, coupled),
    "gru": Subject(GRUCell, gru_after),
    "gru-before": Subject(ResetBeforeGRUCell, gru_before),
    "gru-normed": Subject(NormedGRUCell, normed_gru),
    "gru-d": Subject(DecayGRUCell, gru_d, draw_observations),
}
# Every cell that has a reference. That this is every cell there is, a test says.
SUBJECTS: dict[str, Subject] = {
    **{name: Subject(CELLS[name], step) for name, step in STEPS.items() if name in CELLS},
    **{name: subject for name, subject in WITH_BIASES.items() if name not in CELLS},
    **{
        f"{name}, no biases": Subject(partial(make, bias=False), step, draw)
        for name, (make, step, draw) in WITH_BIASES.items()
    },
}


def make_cell_case(subject: Subject, mask: Tensor = MASK) -> Case:
    """All outputs over a batch and the last entries, from any first entries."""
    cell: Cell = stir(subject.make(INPUTS, SIZE))
    inputs, x = subject.draw(cell, mask)
    first = tuple(draw_leaf(len(mask), size) for size in cell.sizes)

    def product() -> list[Tensor]:
        y, last = cell.scan(x(), first, mask)
        return [y.masked_fill(~mask[..., None], 0), *last]

    def equations() -> list[Tensor]:
        y, last = read(subject.step, Parameters.of(cell), x(), first, mask)
        return [y, *last]

    return Case(cell, [*inputs, *first], product, equations)


def checks() -> Iterator[Check]:
    for name, subject in SUBJECTS.items():
        fast = subject.make(INPUTS, SIZE).kernel() is not None
        yield from check_case("cells", name, partial(make_cell_case, subject), fast=fast)
