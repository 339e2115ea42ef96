"""Layers: for each class how it reads, where it starts, and what it hands over. As in `Layer`, the state is explicit.

In a graph all padding is on the right: a batch comes with the lengths of its rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from onnx import TensorProto
from torch import nn

from ...layers.attention import Attention
from ...layers.attention_decoders import Bahdanau, Luong
from ...layers.base import (
    Layer,
    Pointwise,
    Stack,
)
from ...layers.convolution import Convolution
from ...layers.lexicon import SkipConcatenation
from ...layers.local_attention import MonotonicAttention
from ...layers.non_local import NonLocalLayer
from ...layers.positions import LearnedPositions, SinusoidalPositions
from ...layers.recurrent import (
    Bidirectional,
    Recurrent,
    SeparateDirections,
    VariationalDropout,
)
from ...layers.residual import PostNorm, PreNorm, ReZero
from ...layers.transformer import CausalAttention, CrossAttention, SelfAttention
from .attention import look, prepare, see_memory, see_others, see_past, see_sequence
from .graph import Graph, Shape, Value
from .modules import refuse, write_linear, write_module, write_sinusoids
from .recurrences import join_states, read_both_ways, read_recurrence, scan_cell, start_entries
from .state import FixedState, Leaf, Reading, Source, State, zero_padding


class Writer(NamedTuple):
    """The functions that export a class of layers."""

    read: Callable[[Graph, Any, Value, State, Reading | None], tuple[Value, State]]
    start: Callable[[Graph, Any, Value, Source | None], State] = lambda graph, layer, batch, memory: ()
    hand_over: Callable[[Any, State, Graph], tuple[tuple[Value, ...], ...]] = lambda layer, state, graph: ()


def writer_of(layer: nn.Module) -> Writer:
    writer = LAYERS.get(type(layer))
    if writer is None:
        raise refuse(layer, "a layer")
    return writer


def write_layer(
    graph: Graph, layer: Layer, x: Value, state: State | None, reading: Reading | None
) -> tuple[Value, State]:
    """Read x (B, T, D); without a state, from the beginning."""
    if state is None:
        state = write_start(graph, layer, x.length(0), None)
    return writer_of(layer).read(graph, layer, x, state, reading)


def write_start(graph: Graph, layer: Layer, batch: Value, memory: Source | None) -> State:
    """The state before the first step of so many rows (an array of one number)."""
    return writer_of(layer).start(graph, layer, batch, memory)


def final_states(graph: Graph, layer: Layer, state: State) -> tuple[tuple[Value, ...], ...]:
    return writer_of(layer).hand_over(layer, state, graph)


# --- stacks and what is done to each element ----------------------------------------------------------------------


def read_stack(graph: Graph, layer: Stack, x: Value, state: State, reading: Reading | None) -> tuple[Value, State]:
    after = []
    for part, before in zip(layer.layers, state, strict=True):
        x, passed = write_layer(graph, part, x, before, reading)
        after.append(passed)
    return x, tuple(after)


def start_stack(graph: Graph, layer: Stack, batch: Value, memory: Source | None) -> State:
    return tuple(write_start(graph, part, batch, memory) for part in layer.layers)


def stack_states(layer: Stack, state: State, graph: Graph) -> tuple[tuple[Value, ...], ...]:
    parts = zip(layer.layers, state, strict=True)
    return sum((final_states(graph, part, one) for part, one in parts), ())


def read_each(graph: Graph, layer: Pointwise, x: Value, state: State, reading: Reading | None) -> tuple[Value, State]:
    return zero_padding(graph, write_module(graph, layer.module, x), reading), state


def read_residual(graph: Graph, layer: Any, x: Value, state: State, reading: Reading | None) -> tuple[Value, State]:
    x = zero_padding(graph, x, reading)
    inner = write_module(graph, layer.norm, x) if isinstance(layer, PreNorm) else x
    change, state = write_layer(graph, layer.layer, inner, state, reading)
    match layer:
        case PostNorm():
            y = write_module(graph, layer.norm, x + change)
        case ReZero():
            y = x + graph.weight(layer.share) * change
        case _:
            y = x + change
    return zero_padding(graph, y, reading), state


def read_handed_on(
    graph: Graph, layer: SkipConcatenation, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    y, state = write_layer(graph, layer.layer, x, state, reading)
    return graph.concat(y, zero_padding(graph, x.slice(-1, -layer.features), reading)), state


AROUND = Writer(
    read_residual,
    lambda graph, layer, batch, memory: write_start(graph, layer.layer, batch, memory),
    lambda layer, state, graph: final_states(graph, layer.layer, state),
)


def read_convolution(
    graph: Graph, layer: Convolution, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    product, window = layer.product, layer.window
    padded = graph.concat(state.value, zero_padding(graph, x, reading), axis=1)
    side = 0 if layer.causal else window // 2
    kernel = product.weight.view(product.out_features, window, layer.inputs).transpose(1, 2)
    bias = None if product.bias is None else graph.weight(product.bias)
    y = graph.add("Conv", padded.transpose(0, 2, 1), graph.weight(kernel.contiguous()), bias, pads=[side, side])
    after = Leaf(padded.slice(1, x.length(1)) if layer.causal else state.value, state.shape)
    return zero_padding(graph, y.transpose(0, 2, 1), reading), after


def start_convolution(graph: Graph, layer: Convolution, batch: Value, memory: Source | None) -> State:
    before = layer.window - 1 if layer.causal else 0
    return Leaf(graph.fill(0.0, batch, before, layer.inputs), Shape(("batch", before, layer.inputs)))


# --- positions ----------------------------------------------------------------------------------------------------


def start_count(graph: Graph, layer: nn.Module, batch: Value, memory: Source | None) -> State:
    return Leaf(graph.fill(0, batch, kind="int64"), Shape(("batch",), TensorProto.INT64))


def count_positions(graph: Graph, x: Value, state: Leaf) -> tuple[Value, Leaf]:
    """Positions (B, T), and how many there are then."""
    time = x.length(1)
    return state.value.unsqueeze(1) + graph.arange(time).unsqueeze(0), Leaf(state.value + time, state.shape)


def read_sinusoids(
    graph: Graph, layer: SinusoidalPositions, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    positions, state = count_positions(graph, x, state)
    size = 2 * len(layer.rate)
    waves = write_sinusoids(graph, positions, layer.rate, size)
    return zero_padding(graph, x + waves.slice(-1, 0, x.length(2)), reading), state


def read_learned_positions(
    graph: Graph, layer: LearnedPositions, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    positions, state = count_positions(graph, x, state)
    vectors = graph.add("Gather", graph.weight(layer.table), positions + graph.integer(layer.offset))
    return zero_padding(graph, x + vectors, reading), state


# --- recurrences --------------------------------------------------------------------------------------------------


def reverse_rows(graph: Graph, x: Value, reading: Reading | None) -> Value:
    """The elements of each row from its last to its first; padding stays behind them."""
    whole = graph.add("Expand", x.length(1), x.length(0))
    lengths = whole if reading is None else graph.add("Max", reading.lengths, graph.integer(1))
    return graph.add("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)


def read_separately(
    graph: Graph, layer: SeparateDirections, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    forwards, backwards = layer.ways
    there, end = write_layer(graph, forwards, x, state[0], reading)
    back, begin = write_layer(graph, backwards, reverse_rows(graph, x, reading), state[1], reading)
    y = graph.concat(there, reverse_rows(graph, back, reading))
    return zero_padding(graph, y, reading), (end, begin)


def separate_states(layer: SeparateDirections, state: State, graph: Graph) -> tuple[tuple[Value, ...], ...]:
    each = [final_states(graph, way, part) for way, part in zip(layer.ways, state, strict=True)]
    return tuple(tuple(graph.concat(*pair) for pair in zip(*level, strict=True)) for level in zip(*each, strict=True))


# --- decoders that look at a memory ---------------------------------------------------------------------------------


def start_attention(graph: Graph, attention: Attention, batch: Value, memory: Source | None) -> State:
    """What is known of the source; for a monotonic attention, which looks around it, also the number of steps."""
    if memory is None:
        raise refuse(attention, "attention without a source")
    source = prepare(graph, attention, memory.values, memory.mask)
    counts = isinstance(attention, MonotonicAttention)
    return (source, start_count(graph, attention, batch, memory)) if counts else source


def count_steps(graph: Graph, attention: Attention, x: Value, state: State) -> tuple[FixedState, Value | None, State]:
    """The source, the place of each step, if the attention asks for it, and the state afterwards."""
    if not isinstance(attention, MonotonicAttention):
        return state, None, state
    source, count = state
    places, count = count_positions(graph, x, count)
    return source, places.cast(TensorProto.FLOAT), (source, count)


def read_bahdanau(
    graph: Graph, layer: Bahdanau, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    entries, known = state
    source, places, known = count_steps(graph, layer.attention, x, known)

    def join(x_t: Value, entries: list[Value]) -> Value:
        place = None
        if places is not None:
            x_t, place = x_t.slice(-1, 0, -1), x_t.slice(-1, -1)
        context = look(graph, layer.attention, entries[0].unsqueeze(1), source, place).squeeze(1)
        return write_module(graph, layer.cell.W, graph.concat(x_t, context))

    x = zero_padding(graph, x, reading)
    if places is not None:  # each step is handed its place behind what it reads
        x = graph.concat(x, places.unsqueeze(2))
    y, entries = scan_cell(graph, layer.cell, x, entries, reading, join=join)
    return y, (entries, known)


def start_bahdanau(graph: Graph, layer: Bahdanau, batch: Value, memory: Source | None) -> State:
    known = start_attention(graph, layer.attention, batch, memory)
    return start_entries(graph, layer.begin, layer.cell, batch, memory), known


def read_luong(graph: Graph, layer: Luong, x: Value, state: State, reading: Reading | None) -> tuple[Value, State]:
    source, places, state = count_steps(graph, layer.attention, x, state)
    context = look(graph, layer.attention, x, source, places)
    y = write_linear(graph, layer.join, graph.concat(x, context)).tanh()
    return zero_padding(graph, y, reading), state


# --- Transformers -------------------------------------------------------------------------------------------------


def start_past(graph: Graph, layer: CausalAttention, batch: Value, memory: Source | None) -> State:
    """An empty cache."""
    attend = layer.attend
    empty = [
        Leaf(graph.fill(0.0, batch, attend.heads, 0, width), Shape(("batch", attend.heads, axis, width)))
        for width, axis in ((attend.width, "past"), (attend.value_width, "past"))
    ]
    return (*empty, start_count(graph, layer, batch, memory))


def read_past(
    graph: Graph, layer: CausalAttention, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    keys, values, count = state
    positions, count = count_positions(graph, x, count)
    y, past = see_past(graph, layer, zero_padding(graph, x, reading), positions, (keys.value, values.value))
    after = (Leaf(past[0], keys.shape), Leaf(past[1], values.shape), count)
    return zero_padding(graph, y, reading), after


def read_sequence(
    graph: Graph, layer: SelfAttention, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    positions = graph.arange(x.length(1)).unsqueeze(0)
    y = see_sequence(graph, layer, zero_padding(graph, x, reading), positions, reading)
    return zero_padding(graph, y, reading), state


def read_others(
    graph: Graph, layer: NonLocalLayer, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    x = zero_padding(graph, x, reading)
    return zero_padding(graph, x + see_others(graph, layer, x, reading), reading), state


def start_memory(graph: Graph, layer: CrossAttention, batch: Value, memory: Source | None) -> State:
    if memory is None:
        raise refuse(layer, "attention without a source")
    shape = Shape(("batch", "source", layer.attend.key_value_size))
    keys_values = write_linear(graph, layer.key_value, memory.values)
    return FixedState((Leaf(keys_values, shape), Leaf(memory.mask, Shape(("batch", "source"), TensorProto.BOOL))))


def read_memory(
    graph: Graph, layer: CrossAttention, x: Value, state: State, reading: Reading | None
) -> tuple[Value, State]:
    return zero_padding(graph, see_memory(graph, layer, x, state), reading), state


LAYERS: dict[type[nn.Module], Writer] = {
    Stack: Writer(read_stack, start_stack, stack_states),
    Pointwise: Writer(read_each),
    SkipConcatenation: AROUND._replace(read=read_handed_on),
    VariationalDropout: Writer(lambda graph, layer, x, state, reading: (x, state)),
    PostNorm: AROUND,
    PreNorm: AROUND,
    ReZero: AROUND,
    Convolution: Writer(read_convolution, start_convolution),
    SinusoidalPositions: Writer(read_sinusoids, start_count),
    LearnedPositions: Writer(read_learned_positions, start_count),
    Recurrent: Writer(
        read_recurrence,
        lambda graph, layer, batch, memory: start_entries(graph, layer.begin, layer.cell, batch, memory),
        lambda layer, state, graph: (tuple(leaf.value for leaf in state),),
    ),
    Bidirectional: Writer(
        read_both_ways,
        lambda graph, layer, batch, memory: tuple(write_start(graph, way, batch, None) for way in layer.ways),
        join_states,
    ),
    SeparateDirections: Writer(
        read_separately,
        lambda graph, layer, batch, memory: tuple(write_start(graph, way, batch, None) for way in layer.ways),
        separate_states,
    ),
    Bahdanau: Writer(
        read_bahdanau, start_bahdanau, lambda layer, state, graph: (tuple(leaf.value for leaf in state[0]),)
    ),
    Luong: Writer(
        read_luong, lambda graph, layer, batch, memory: start_attention(graph, layer.attention, batch, memory)
    ),
    SelfAttention: Writer(read_sequence),
    NonLocalLayer: Writer(read_others),
    CausalAttention: Writer(read_past, start_past),
    CrossAttention: Writer(read_memory, start_memory),
}
