"""Recurrences as loops of a graph or as ONNX's own operators, in one direction or in both."""

from collections.abc import Callable

from onnx import TensorProto
from torch import nn

from ...layers.cells import Cell
from ...layers.recurrent import (
    Bidirectional,
    BridgedState,
    Concatenate,
    CopiedState,
    LearnedState,
    Mean,
    Project,
    Recurrent,
    Sum,
    ZeroState,
)
from .cells import Operator, operator_of, write_step
from .graph import Graph, Shape, Value
from .modules import refuse, write_linear, write_module
from .state import Leaf, Reading, Source, State, zero_padding


def start_entries(graph: Graph, begin: nn.Module, cell: Cell, batch: Value, memory: Source | None) -> State:
    match begin:
        case ZeroState():
            entries = [graph.fill(0.0, batch, size) for size in cell.sizes]
        case LearnedState():
            entries = [graph.fill(0.0, batch, 1) + graph.weight(first) for first in begin.first]
        case CopiedState() if memory is not None:
            entries = list(memory.final_states[begin.level])
        case BridgedState() if memory is not None:
            entries = write_linear(graph, begin.linear, memory.summary).tanh().split(*begin.sizes)
        case _:
            raise refuse(begin, "the start of a recurrence")
    return tuple(Leaf(one, Shape(("batch", size))) for one, size in zip(entries, cell.sizes, strict=True))


def read_recurrence(
    graph: Graph, layer: Recurrent, x: Value, state: State, reading: Reading | None, reverse: bool = False
) -> tuple[Value, State]:
    operator = operator_of(layer.cell)
    if operator is None:
        return scan_cell(graph, layer.cell, write_module(graph, layer.cell.W, x), state, reading, reverse)
    return run_operator(graph, operator, layer.cell, x, state, reading, reverse)


def run_operator(
    graph: Graph, operator: Operator, cell: Cell, x: Value, state: State, reading: Reading | None, reverse: bool
) -> tuple[Value, State]:
    W, R, B, *P = (None if one is None else graph.weight(one[None]) for one in operator.weights)
    lengths = None if reading is None else reading.lengths.cast(TensorProto.INT32)
    before = [leaf.value.unsqueeze(0) for leaf in state]
    y, *ends = graph.add_many(
        operator.name,
        1 + len(state),
        *(x.transpose(1, 0, 2), W, R, B, lengths, *before, *P),
        hidden_size=cell.size,
        direction="reverse" if reverse else "forward",
        **operator.attributes,
    )
    after = []
    for end, leaf in zip(ends, state, strict=True):
        value = end.squeeze(0)
        if reading is not None:  # a row without elements stays where it started
            value = graph.where(reading.some.unsqueeze(1), value, leaf.value)
        after.append(Leaf(value, leaf.shape))
    return zero_padding(graph, y.squeeze(1).transpose(1, 0, 2), reading), tuple(after)


def scan_cell(
    graph: Graph,
    cell: Cell,
    x: Value,
    state: State,
    reading: Reading | None,
    reverse: bool = False,
    join: Callable[[Value, list[Value]], Value] | None = None,
) -> tuple[Value, State]:
    """The step of a cell as the body of a loop; `join` may add to its input what the state asks for."""

    def step(entries: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        x_t, *valid = elements
        after = write_step(graph, cell, x_t if join is None else join(x_t, entries), entries)
        if valid:
            moved = valid[0].unsqueeze(1)
            after = [graph.where(moved, new, old) for new, old in zip(after, entries, strict=True)]
        return after, [after[0]]

    over = [(x, Shape(("batch", "features")))]
    if reading is not None:
        over.append((reading.mask, Shape(("batch",), TensorProto.BOOL)))
    shapes = [leaf.shape for leaf in state]
    ends, [y] = graph.scan(step, [(leaf.value, leaf.shape) for leaf in state], over, [shapes[0]], reverse)
    after = tuple(Leaf(end, shape) for end, shape in zip(ends, shapes, strict=True))
    return zero_padding(graph, y, reading), after


def read_both_ways(
    graph: Graph, layer: Bidirectional, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    forwards, backwards = layer.ways
    there, end = read_recurrence(graph, forwards, x, state[0], reading)
    back, begin = read_recurrence(graph, backwards, x, state[1], reading, reverse=True)
    match layer.merge:
        case Concatenate():
            y = graph.concat(there, back)
        case Mean():
            y = (there + back) / 2.0
        case Sum():
            y = there + back
        case Project(linear=linear):
            y = write_linear(graph, linear, graph.concat(there, back))
        case _:
            raise refuse(layer.merge, "the join of two directions")
    return zero_padding(graph, y, reading), (end, begin)


def join_states(layer: Bidirectional, state: State, graph: Graph) -> tuple[tuple[Value, ...], ...]:
    return (tuple(graph.concat(*[leaf.value for leaf in pair]) for pair in zip(*state, strict=True)),)
