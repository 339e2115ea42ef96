"""Whole models as graphs. A labeler is one; a generator is two: what is known before the first element, and a step.

The step reads one element a row or many, so it serves a prompt and all that is written after it. What it gives back as
`next.N` is what it reads as `state.N` the next time; `memory.N` stays as the first graph gave it.
"""

from typing import Any

from onnx import TensorProto
from torch import nn

from ...layers.base import Encoder
from ...layers.embeddings import describe_inputs
from ...layers.materialize import materialize
from ...models import Generator, Labeler
from ..check import DECODER, ENCODER, INPUTS, LABELER, LENGTHS, ROWS, START
from .graph import Graph, Shape, Value
from .layers import final_states, write_layer, write_start
from .modules import write_embedding, write_head
from .pools import write_pool
from .state import Leaf, Reading, Source, State, map_leaves

Graphs = dict[str, bytes]  # by name


def write_model(model: Labeler | Generator) -> Graphs:
    """The graphs of a model, as bytes."""
    model = materialize(model)
    return write_generator(model) if model.generates else write_labeler(model)


def shape_of_inputs(embed: nn.Module) -> Shape:
    about = describe_inputs(embed)
    if about.symbols:
        return Shape(("batch", "time", *(["letters"] if about.letters else [])), TensorProto.INT64)
    if about.side:
        return Shape(("batch", about.features, "height", "width"))
    return Shape(("batch", "time", about.features or "features"))


def read_inputs(graph: Graph, embed: nn.Module) -> tuple[Value, Reading]:
    """The vectors of what a graph reads, and which of them are there. Of an image all are."""
    x = write_embedding(graph, embed, graph.input(INPUTS, shape_of_inputs(embed)))
    if describe_inputs(embed).side:
        lengths = graph.add("Expand", x.length(1), x.length(0))
    else:
        lengths = graph.input(LENGTHS, Shape(("batch",), TensorProto.INT64))
    return x, Reading.of(graph, lengths, x.length(1))


def encode(graph: Graph, encoder: Encoder, x: Value, reading: Reading, summary: bool = True) -> Source:
    values, state = write_layer(graph, encoder.layer, x, None, reading)
    pooled = write_pool(graph, encoder.pool, values, reading) if summary else values
    return Source(values, reading.mask, pooled, final_states(graph, encoder.layer, state))


def write_labeler(model: Labeler) -> Graphs:
    graph = Graph()
    x, reading = read_inputs(graph, model.embed)
    memory = encode(graph, model.encoder, x, reading, not model.per_element)
    features, axes = (memory.values, ("batch", "time")) if model.per_element else (memory.summary, ("batch",))
    for name, (value, sizes) in write_head(graph, model.head, features).items():
        graph.output(name, value, Shape((*axes, *sizes)))
    return {LABELER: graph.model("labeler")}


def write_generator(model: Generator) -> Graphs:
    before = Graph()
    if model.source is None:
        memory, batch = None, before.input(ROWS, Shape((1,), TensorProto.INT64))
    else:
        x, reading = read_inputs(before, model.source.embed)
        memory, batch = encode(before, model.source.encoder, x, reading), x.length(0)
    state = write_start(before, model.decoder, batch, memory)
    name_leaves(state, lambda name, leaf: before.output(name, leaf.value, leaf.shape))
    if not before.outputs:  # nothing is carried, but a graph has to say something
        before.output("state.none", batch, Shape((1,), TensorProto.INT64))
    return {
        ENCODER if model.source is not None else START: before.model("encoder"),
        DECODER: write_decoder(model, state),
    }


def write_decoder(model: Generator, state: State) -> bytes:
    """What comes after each element, and the state then. `state` says what tensors it is made of."""
    graph = Graph()
    x = write_embedding(graph, model.embed, graph.input(INPUTS, shape_of_inputs(model.embed)))
    before = name_leaves(state, lambda name, leaf: graph.input(name, leaf.shape))
    y, after = write_layer(graph, model.decoder, x, before, None)
    for name, (value, sizes) in write_head(graph, model.head, y).items():
        graph.output(name, value, Shape(("batch", "time", *sizes)))

    def give_back(name: str, leaf: Leaf) -> None:
        if name.startswith("state"):
            # An axis that grows has another length than it had before.
            axes = tuple("past and time" if axis == "past" else axis for axis in leaf.shape.axes)
            graph.output(name.replace("state", "next"), leaf.value, Shape(axes, leaf.shape.kind))

    name_leaves(after, give_back)
    return graph.model("decoder")


def name_leaves(state: State, use: Any) -> State:
    """`use(name, leaf)` of each tensor of a state; where that gives a value, it takes the tensor's place."""
    count = {"state": 0, "memory": 0}

    def change(leaf: Leaf, fixed: bool) -> Leaf:
        kind = "memory" if fixed else "state"
        value = use(f"{kind}.{count[kind]}", leaf)
        count[kind] += 1
        return Leaf(value, leaf.shape) if isinstance(value, Value) else leaf

    return map_leaves(change, state)
