"""What a graph reads and gives back beside its elements: lengths of rows, and the state of its layers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from .graph import Graph, Shape, Value


class Reading(NamedTuple):
    """Which elements of a batch are there."""

    lengths: Value  # (B,)
    mask: Value  # (B, T)
    some: Value  # (B,), whether a row has any

    @classmethod
    def of(cls, graph: Graph, lengths: Value, time: Value) -> "Reading":
        mask = graph.add("Less", graph.arange(time).unsqueeze(0), lengths.unsqueeze(1))
        return cls(lengths, mask, graph.add("Greater", lengths, graph.integer(0)))


class Leaf(NamedTuple):
    """A tensor of a state."""

    value: Value
    shape: Shape


class FixedState(NamedTuple):
    """Tensors that a state holds and no step changes: what is known of the source."""

    leaves: tuple[Leaf, ...]


State = Any  # Leaf | Fixed | tuple[State, ...]


def map_leaves(change: Callable[[Leaf, bool], Leaf], state: State, fixed: bool = False) -> State:
    """`change(leaf, whether it is fixed)` of every tensor, in order."""
    if isinstance(state, Leaf):
        return change(state, fixed)
    if isinstance(state, FixedState):
        return FixedState(tuple(map_leaves(change, leaf, True) for leaf in state.leaves))
    return tuple(map_leaves(change, part, fixed) for part in state)


class Source(NamedTuple):
    """An encoded source, as `Memory`."""

    values: Value
    mask: Value
    summary: Value
    final_states: tuple[tuple[Value, ...], ...]


def zero_padding(graph: Graph, x: Value, reading: Reading | None) -> Value:
    return x if reading is None else graph.where(reading.mask.unsqueeze(-1), x, 0.0)
