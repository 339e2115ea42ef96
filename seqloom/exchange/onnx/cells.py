"""Recurrences: by ONNX's own operators where these have the same equations, otherwise by a loop over the step.

ONNX orders gates otherwise than we do, and has its own words: an LSTM's gates are i, o, f and c (our g), a GRU's are z
(our u), r and h (our n). Its operators read W, R (our U) and both biases, one after the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...layers.cells import (
    Cell,
    CoupledLSTMCell,
    DecayGRUCell,
    GRUCell,
    LSTMCell,
    MinGRUCell,
    MinLSTMCell,
    NormedGRUCell,
    NormedLSTMCell,
    Nothing,
    PeepholeLSTMCell,
    ProjectedLSTMCell,
    ResetBeforeGRUCell,
    RNNCell,
    Scale,
    Zoneout,
)
from .graph import Graph, Value
from .modules import refuse, write_linear, write_module

# --- operators --------------------------------------------------------------------------------------------------

ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}


class Operator(NamedTuple):
    """One of ONNX's recurrences, with all that it needs to be this cell."""

    name: str
    weights: tuple[Tensor | None, ...]  # W, R, B and, of an LSTM, P
    attributes: dict[str, Any]


def reorder(weight: Tensor, blocks: str, order: str) -> Tensor:
    """The gates of a weight, which stand in the order of `blocks`, in another order."""
    parts = dict(zip(blocks, weight.chunk(len(blocks)), strict=True))
    return torch.cat([parts[name] for name in order])


def bias_of(product: nn.Linear) -> Tensor:
    return product.weight.new_zeros(product.out_features) if product.bias is None else product.bias


def rnn_operator(cell: RNNCell) -> Operator | None:
    if cell.activation not in ACTIVATIONS:
        return None
    bias = torch.cat([bias_of(cell.W), bias_of(cell.U)])
    return Operator("RNN", (cell.W.weight, cell.U.weight, bias), {"activations": [ACTIVATIONS[cell.activation]]})


def lstm_operator(cell: LSTMCell) -> Operator | None:
    if cell.candidate not in ACTIVATIONS:
        return None
    tensors = [reorder(one, "ifgo", "iofg") for one in (cell.W.weight, cell.U.weight, bias_of(cell.W), bias_of(cell.U))]
    W, R, input_bias, state_bias = tensors
    activations = ["Sigmoid", ACTIVATIONS[cell.candidate], "Tanh"]
    return Operator("LSTM", (W, R, torch.cat([input_bias, state_bias]), None), {"activations": activations})


def peephole_operator(cell: PeepholeLSTMCell) -> Operator | None:
    """Each unit may see its own c, and the output gate the new one."""
    looks = {gate: cell.V[gate] for gate in "iof"}
    if any(not isinstance(look, Scale | Nothing) for look in looks.values()):
        return None
    if not cell.late and not isinstance(looks["o"], Nothing):
        return None
    zeros = cell.U.weight.new_zeros(cell.size)
    peepholes = torch.cat([look.weight if isinstance(look, Scale) else zeros for look in looks.values()])
    W, R, input_bias = (reorder(one, "ifgo", "iofg") for one in (cell.W.weight, cell.U.weight, bias_of(cell.W)))
    bias = torch.cat([input_bias, torch.zeros_like(input_bias)])
    return Operator("LSTM", (W, R, bias, peepholes), {})


def coupled_operator(cell: CoupledLSTMCell) -> Operator:
    """ONNX opens the forget gate as far as the input gate is closed; we say it of the input gate, 1 − σ(x) = σ(−x)."""

    def to_onnx_gates(weight: Tensor) -> Tensor:
        f, g, o = weight.chunk(3)
        return torch.cat([-f, o, f, g])

    bias = to_onnx_gates(bias_of(cell.W))
    weights = (
        to_onnx_gates(cell.W.weight),
        to_onnx_gates(cell.U.weight),
        torch.cat([bias, torch.zeros_like(bias)]),
        None,
    )
    return Operator("LSTM", weights, {"input_forget": 1})


def gru_operator(cell: GRUCell) -> Operator:
    W, R, input_bias, state_bias = (
        reorder(one, "run", "urn") for one in (cell.W.weight, cell.U.weight, bias_of(cell.W), bias_of(cell.U))
    )
    return Operator("GRU", (W, R, torch.cat([input_bias, state_bias])), {"linear_before_reset": 1})


def reset_before_operator(cell: ResetBeforeGRUCell) -> Operator:
    R = torch.cat([reorder(cell.U.weight, "ru", "ur"), cell.U_n.weight])
    W, bias = (reorder(one, "run", "urn") for one in (cell.W.weight, bias_of(cell.W)))
    return Operator("GRU", (W, R, torch.cat([bias, torch.zeros_like(bias)])), {"linear_before_reset": 0})


OPERATORS: dict[type[Cell], Callable[[Any], Operator | None]] = {
    RNNCell: rnn_operator,
    LSTMCell: lstm_operator,
    PeepholeLSTMCell: peephole_operator,
    CoupledLSTMCell: coupled_operator,
    GRUCell: gru_operator,
    ResetBeforeGRUCell: reset_before_operator,
}


def operator_of(cell: Cell) -> Operator | None:
    """The operator with the same equations, if there is one."""
    find = OPERATORS.get(type(cell))
    return None if find is None else find(cell)


# --- steps ------------------------------------------------------------------------------------------------------

Entries = Sequence[Value]
Step = Callable[[Graph, Any, Value, Entries], list[Value]]
APPLIED: dict[str, Callable[[Value], Value]] = {
    "tanh": Value.tanh,
    "relu": Value.relu,
    "sigmoid": Value.sigmoid,
    "identity": lambda x: x,
}


def gates_of(x: Value, cell: Cell, count: int) -> list[Value]:
    return x.split(*[cell.sizes[-1] if cell.entries[-1] == "c" else cell.size] * count)


def rnn_step(graph: Graph, cell: RNNCell, x: Value, entries: Entries) -> list[Value]:
    return [APPLIED[cell.activation](x + write_linear(graph, cell.U, entries[0]))]


def lstm_gates(graph: Graph, cell: Cell, x: Value, entries: Entries, activation: str = "tanh") -> tuple[Value, Value]:
    """The open output gate and the new c."""
    h, c = entries
    i, f, g, o = gates_of(x + write_linear(graph, cell.U, h), cell, 4)
    return o.sigmoid(), f.sigmoid() * c + i.sigmoid() * APPLIED[activation](g)


def lstm_step(graph: Graph, cell: LSTMCell, x: Value, entries: Entries) -> list[Value]:
    o, c = lstm_gates(graph, cell, x, entries, cell.candidate)
    return [o * c.tanh(), c]


def projected_step(graph: Graph, cell: ProjectedLSTMCell, x: Value, entries: Entries) -> list[Value]:
    o, c = lstm_gates(graph, cell, x, entries)
    return [write_linear(graph, cell.P, o * c.tanh()), c]


def peephole_step(graph: Graph, cell: PeepholeLSTMCell, x: Value, entries: Entries) -> list[Value]:
    def look(gate: str, value: Value, c: Value) -> Value:
        match cell.V[gate]:
            case Nothing():
                return value
            case Scale(weight=weight):
                return value + c * graph.weight(weight)
        return value + write_linear(graph, cell.V[gate], c)  # type: ignore[arg-type]

    h, old = entries
    i, f, g, o = gates_of(x + write_linear(graph, cell.U, h), cell, 4)
    c = look("f", f, old).sigmoid() * old + look("i", i, old).sigmoid() * g.tanh()
    return [look("o", o, c if cell.late else old).sigmoid() * c.tanh(), c]


def coupled_step(graph: Graph, cell: CoupledLSTMCell, x: Value, entries: Entries) -> list[Value]:
    h, c = entries
    f, g, o = gates_of(x + write_linear(graph, cell.U, h), cell, 3)
    f = f.sigmoid()
    c = f * c + (1.0 - f) * g.tanh()
    return [o.sigmoid() * c.tanh(), c]


def normed_lstm_step(graph: Graph, cell: NormedLSTMCell, x: Value, entries: Entries) -> list[Value]:
    h, c = entries
    state = write_module(graph, cell.norm_h, write_linear(graph, cell.U, h))
    i, f, g, o = gates_of(x + state, cell, 4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return [o.sigmoid() * write_module(graph, cell.norm_c, c).tanh(), c]


def keep_share(u: Value, h: Value, n: Value) -> list[Value]:
    return [u * h + (1.0 - u) * n]


def gru_step(graph: Graph, cell: GRUCell | NormedGRUCell, x: Value, entries: Entries) -> list[Value]:
    [h] = entries
    state = write_linear(graph, cell.U, h)
    if isinstance(cell, NormedGRUCell):
        state = write_module(graph, cell.norm_h, state)
    (x_r, x_u, x_n), (h_r, h_u, h_n) = gates_of(x, cell, 3), gates_of(state, cell, 3)
    n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return keep_share((x_u + h_u).sigmoid(), h, n)


def reset_before_step(graph: Graph, cell: ResetBeforeGRUCell, x: Value, entries: Entries) -> list[Value]:
    [h] = entries
    (x_r, x_u, x_n), (h_r, h_u) = gates_of(x, cell, 3), gates_of(write_linear(graph, cell.U, h), cell, 2)
    n = (x_n + write_linear(graph, cell.U_n, (x_r + h_r).sigmoid() * h)).tanh()
    return keep_share((x_u + h_u).sigmoid(), h, n)


def decay_step(graph: Graph, cell: DecayGRUCell, x: Value, entries: Entries) -> list[Value]:
    h, last = entries
    values, observed, gaps = x.split(*[cell.channels] * 3)
    known = graph.add("Greater", observed, 0.0)
    weight, bias = graph.weight(cell.fade_x[0]), graph.weight(cell.fade_x[1:].sum(0))
    fading = (-(gaps * weight + bias).relu()).exp()
    imputed = graph.where(known, values, fading * last + (1.0 - fading) * graph.weight(cell.mean))
    h = (-write_linear(graph, cell.fade_h, gaps).relu()).exp() * h
    read = write_linear(graph, cell.V, graph.concat(imputed, observed))
    (x_r, x_u, x_n), (h_r, h_u) = gates_of(read, cell, 3), gates_of(write_linear(graph, cell.U, h), cell, 2)
    n = (x_n + write_linear(graph, cell.U_n, (x_r + h_r).sigmoid() * h)).tanh()
    return [*keep_share((x_u + h_u).sigmoid(), h, n), graph.where(known, values, last)]


def min_gru_step(graph: Graph, cell: MinGRUCell, x: Value, entries: Entries) -> list[Value]:
    u, n = gates_of(x, cell, 2)
    return keep_share(u.sigmoid(), entries[0], n)


def min_lstm_step(graph: Graph, cell: MinLSTMCell, x: Value, entries: Entries) -> list[Value]:
    i, f, n = gates_of(x, cell, 3)
    return keep_share(((-i).softplus() - (-f).softplus()).sigmoid(), entries[0], n)


def zoneout_step(graph: Graph, cell: Zoneout, x: Value, entries: Entries) -> list[Value]:
    after = write_step(graph, cell.cell, write_module(graph, cell.cell.W, x), entries)
    share = cell.share
    return [share * old + (1.0 - share) * new for old, new in zip(entries, after, strict=True)]


STEPS: dict[type[Cell], Step] = {
    RNNCell: rnn_step,
    LSTMCell: lstm_step,
    ProjectedLSTMCell: projected_step,
    PeepholeLSTMCell: peephole_step,
    CoupledLSTMCell: coupled_step,
    NormedLSTMCell: normed_lstm_step,
    GRUCell: gru_step,
    NormedGRUCell: gru_step,
    ResetBeforeGRUCell: reset_before_step,
    DecayGRUCell: decay_step,
    MinGRUCell: min_gru_step,
    MinLSTMCell: min_lstm_step,
    Zoneout: zoneout_step,
}


def write_step(graph: Graph, cell: Cell, x: Value, entries: Entries) -> list[Value]:
    """The entries after one step; x is what W made of the input, as for the cell itself."""
    write = STEPS.get(type(cell))
    if write is None:
        raise refuse(cell, "a recurrence")
    return write(graph, cell, x, entries)
