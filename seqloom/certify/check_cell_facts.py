"""What can be derived about recurrences on paper, measured on the layers."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from ..layers import CELLS, Cell, recording
from ..layers.cells import (
    CoupledLSTMCell,
    GRUCell,
    LSTMCell,
    MakeCell,
    MinGRUCell,
    MinLSTMCell,
    ProjectedLSTMCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from .certificate import EXACT, Check, Gaps, compute_jacobian, draw_leaf, find_largest, measure_gap, stir

INPUTS, SIZE, TIME = 3, 4, 6
# The cell, which of its entries is the memory, and the gate that keeps it.
MEMORIES: dict[str, tuple[MakeCell, int, str]] = {
    "lstm": (LSTMCell, 1, "f"),
    "lstm, projected": (partial(ProjectedLSTMCell, memory=6), 1, "f"),
    "coupled": (CoupledLSTMCell, 1, "f"),
    "gru": (GRUCell, 0, "u"),
    "gru-before": (ResetBeforeGRUCell, 0, "u"),
    "mingru": (MinGRUCell, 0, "u"),
    "minlstm": (MinLSTMCell, 0, "f"),
}


# --- the memory path --------------------------------------------------------------------------------------------


def memory_path_without_feedback(name: str) -> Gaps:
    """U = 0, so that gates see the input alone: then the whole derivative is the product of the gates."""
    make, place, gate = MEMORIES[name]
    cell = stir(make(INPUTS, SIZE))
    with torch.no_grad():
        for path, parameter in cell.named_parameters():
            if path.startswith("U"):
                parameter.zero_()
    x, first = torch.randn(1, TIME, INPUTS), [draw_leaf(1, size) for size in cell.sizes]
    _, last = cell.scan(x, tuple(first))
    with recording(cell) as tape:
        cell.scan(x, tuple(first))
    kept = torch.stack(tape[f"taps.{gate}"])[:, 0].prod(0)
    return Gaps(None, measure_gap([compute_jacobian(last[place][0], first[place])[:, 0]], [torch.diag(kept)]))


def memory_path_with_h_held(name: str) -> Gaps:
    """Any U, but h enters each step as a constant: what is left is the path from c to c, from every t to the end."""
    make, _, gate = MEMORIES[name]
    cell = stir(make(INPUTS, SIZE))
    x, (h, c) = torch.randn(1, TIME, INPUTS), (draw_leaf(1, size) for size in cell.sizes)
    cells = [c]
    with recording(cell) as tape:
        for x_t in x.unbind(1):
            h, c = cell.step(cell.W(x_t), (h.detach(), cells[-1]))
            cells.append(c)
    gates = torch.stack(tape[f"taps.{gate}"])[:, 0]
    jacobians = [compute_jacobian(cells[-1][0], cells[t])[:, 0] for t in range(TIME)]
    return Gaps(None, measure_gap(jacobians, [torch.diag(gates[t:].prod(0)) for t in range(TIME)]))


def an_open_lstm_keeps_its_memory() -> Gaps:
    """f = 1 and i = 0 by their biases: c is the same after 500 steps, and so is its gradient."""
    cell, c = LSTMCell(INPUTS, SIZE), draw_leaf(1, SIZE)
    with torch.no_grad():
        cell.W.bias[:SIZE], cell.W.bias[SIZE : 2 * SIZE] = -1000, 1000
    _, (_, last) = cell.scan(torch.randn(1, 500, INPUTS), (torch.zeros(1, SIZE), c))
    return Gaps(measure_gap([last], [c]), measure_gap([compute_jacobian(last[0], c)[:, 0]], [torch.eye(SIZE)]))


# --- Elman's -----------------------------------------------------------------------------------------------------


def elman_jacobian() -> Gaps:
    """Of one step, and of all: the product of those of the steps, the last in front."""
    cell, x, first = stir(RNNCell(INPUTS, SIZE)), torch.randn(1, TIME, INPUTS), draw_leaf(1, SIZE)
    U = dict(cell.named_parameters())["U.weight"]
    y, _ = cell.scan(x, (first,))
    whole, gaps, before = torch.eye(SIZE), [], first
    for t in range(TIME):
        expected = torch.diag(1 - y[0, t] ** 2) @ U
        (h,) = cell.step(cell.W(x[:, t]), (before,))
        gaps.append(compute_jacobian(h[0], before)[:, 0] - expected)
        whole, before = expected @ whole, h
    return Gaps(None, find_largest([*gaps, compute_jacobian(y[0, -1], first)[:, 0] - whole]))


def linear_recurrence_sum() -> Gaps:
    """∂L/∂h_t = Σ_{i=t}^{T} (W_hhᵀ)^{T−i} W_qhᵀ ∂L/∂o_{T+t−i}, for L = 1/T Σ ½ (o_t − y_t)²."""
    cell, out = stir(CELLS["rnn-identity"](INPUTS, SIZE)), nn.Linear(SIZE, 2, bias=False)
    W_hh, W_qh = dict(cell.named_parameters())["U.weight"].detach(), out.weight.detach()
    with recording(cell, "taps.h") as tape:
        y, _ = cell.scan(torch.randn(1, TIME, INPUTS), (torch.zeros(1, SIZE),))
    o, target = out(y)[0], torch.randn(TIME, 2)
    ((o - target) ** 2 / 2).sum().div(TIME).backward()
    slope, T, gaps = (o - target).detach() / TIME, TIME, []
    for t in range(1, T + 1):
        terms = [
            torch.linalg.matrix_power(W_hh.T, T - i) @ W_qh.T @ slope[T + t - i - 1] for i in range(t, T + 1)
        ]  # slope[k − 1] is ∂L/∂o_k
        gradient = tape["taps.h"][t - 1].grad
        assert gradient is not None
        gaps.append(gradient[0] - torch.stack(terms).sum(0))
    return Gaps(None, find_largest(gaps))


# --- the two GRUs ------------------------------------------------------------------------------------------------


def gru_pair(reset_bias: float) -> tuple[Tensor, Tensor]:
    """The outputs of both forms on the same weights, b_r as given."""
    before, after = stir(ResetBeforeGRUCell(INPUTS, SIZE)), GRUCell(INPUTS, SIZE)
    ours, theirs = dict(before.named_parameters()), dict(after.named_parameters())
    with torch.no_grad():
        ours["W.bias"][:SIZE] = reset_bias
        for name in ("W.weight", "W.bias"):
            theirs[name].copy_(ours[name])
        theirs["U.weight"].copy_(torch.cat([ours["U.weight"], ours["U_n.weight"]]))
        theirs["U.bias"].zero_()
    x, first = torch.randn(2, TIME, INPUTS), torch.randn(2, SIZE)
    return before.scan(x, (first,))[0], after.scan(x, (first,))[0]


def grus_agree_when_nothing_is_reset() -> Gaps:
    before, after = gru_pair(1000.0)
    return Gaps(measure_gap([before], [after]))


def grus_differ_otherwise() -> Gaps:
    before, after = gru_pair(0.0)
    return Gaps(0.0 if measure_gap([before], [after]) > 1e-3 else 1.0)


# --- sizes -------------------------------------------------------------------------------------------------------


def times_as_many_weights(make: MakeCell, other: MakeCell, ratio: float) -> Gaps:
    ours, theirs = (sum(p.numel() for p in cell(INPUTS, SIZE).parameters()) for cell in (make, other))
    return Gaps(abs(ours / theirs - ratio))


# --- held singular values ----------------------------------------------------------------------------------------


def compute_singular_values(cell: Cell) -> Tensor:
    weight = cell.U.weight
    assert isinstance(weight, Tensor)
    return torch.linalg.svdvals(weight)


def orthogonal_keeps_lengths() -> Gaps:
    values = compute_singular_values(stir(CELLS["orthogonal"](INPUTS, SIZE)))
    return Gaps(find_largest([values - 1]))


def spectral_keeps_the_largest() -> Gaps:
    """Its estimate of the largest gets better with every use in training."""
    cell = stir(CELLS["spectral"](INPUTS, SIZE)).train()
    for _ in range(500):
        compute_singular_values(cell)
    return Gaps(find_largest([compute_singular_values(cell.eval())[0] - 1]))


def checks() -> Iterator[Check]:
    def fact(subject: str, claim: str, limit: float, measure: "partial[Gaps]") -> Check:
        return Check("cells", subject, claim, limit, measure)

    for name, (_, place, gate) in MEMORIES.items():
        entry = "hc"[place]
        claim = f"∂{entry}_T/∂{entry}_0 = ∏ {gate}_t (U = 0)"
        yield fact(name, claim, EXACT, partial(memory_path_without_feedback, name))
        if entry == "c":
            claim = f"∂c_T/∂c_t = ∏ {gate}_t (h held fixed)"
            yield fact(name, claim, EXACT, partial(memory_path_with_h_held, name))
    yield fact("lstm", "f = 1, i = 0: c stays forever", 0.0, partial(an_open_lstm_keeps_its_memory))
    yield fact("rnn", "∂h_t/∂h_{t−1} = diag(1 − h²) W_h", EXACT, partial(elman_jacobian))
    yield fact("rnn-identity", "∂L/∂h_t as a closed sum", EXACT, partial(linear_recurrence_sum))
    yield fact("gru", "r = 1: reset before = after", EXACT, partial(grus_agree_when_nothing_is_reset))
    yield fact("gru", "r ≠ 1: reset before ≠ after", 0.0, partial(grus_differ_otherwise))
    quarter = partial(times_as_many_weights, CoupledLSTMCell, LSTMCell, 0.75)
    yield fact("coupled", "25 % fewer parameters than lstm", 0.0, quarter)
    yield fact("lstm", "4 × the parameters of rnn", 0.0, partial(times_as_many_weights, LSTMCell, RNNCell, 4.0))
    three = partial(times_as_many_weights, ResetBeforeGRUCell, RNNCell, 3.0)
    yield fact("gru-before", "3 × the parameters of rnn", 0.0, three)
    if "orthogonal" in CELLS:
        yield fact("orthogonal", "all singular values of U are 1", EXACT, partial(orthogonal_keeps_lengths))
    if "spectral" in CELLS:
        yield fact("spectral", "the largest singular value of U is 1", EXACT, partial(spectral_keeps_the_largest))
