"""Looking at a sequence, spelled out: scores, weights, and what they show."""

from collections.abc import Callable
from typing import Any

import torch
from onnx import TensorProto

from ...layers.attention import (
    AdditiveAttention,
    Attention,
    DotAttention,
    MultiHeadAttention,
    ProjectedAttention,
    ScaledDotAttention,
)
from ...layers.local_attention import LocalAttention, PredictiveAttention
from ...layers.non_local import NonLocalLayer
from ...layers.positions import NoRotation, Rotary, Rotation
from ...layers.transformer import CausalAttention, CrossAttention, OwnAttention, SelfAttention
from .graph import Graph, Shape, Value
from .modules import refuse, write_linear
from .state import FixedState, Leaf, Reading

LEAST = torch.finfo(torch.float32).min
SELF, PAST, SOURCE, POOL = "self", "past", "source", "pool"  # what is attended to, as nodes are named


def weigh(graph: Graph, scores: Value, mask: Value | None, name: str) -> Value:
    """Softmax over what the mask shows; where it shows nothing, no weight at all. Its node is `name` and a number."""
    name = f"{name}.{graph.count}"
    if mask is None:
        return graph.add("Softmax", scores, axis=-1, name=name)
    shown = graph.where(mask, scores, LEAST)
    return graph.add("Softmax", shown, axis=-1, name=name) * mask.cast(TensorProto.FLOAT)


# --- in one head --------------------------------------------------------------------------------------------------


def prepare(graph: Graph, attention: Attention, values: Value, mask: Value) -> FixedState:
    """Keys, values and mask of a source."""
    attention = score_of(attention)
    if type(attention) not in SCORES:
        raise refuse(attention, "attention")
    key = attention.key
    shown = write_linear(graph, attention.value, values) if isinstance(attention, ProjectedAttention) else values
    return FixedState(
        (
            Leaf(write_linear(graph, key, values), Shape(("batch", "source", key.out_features))),
            Leaf(shown, Shape(("batch", "source", key.in_features))),
            Leaf(mask, Shape(("batch", "source"), TensorProto.BOOL)),
        )
    )


def score_dot(graph: Graph, attention: DotAttention, query: Value, keys: Value) -> Value:
    return query @ keys.transpose(0, 2, 1)


def score_scaled(graph: Graph, attention: ScaledDotAttention, query: Value, keys: Value) -> Value:
    return score_dot(graph, attention, query, keys) / attention.key.out_features**0.5  # type: ignore[arg-type]


def score_projected(graph: Graph, attention: ProjectedAttention, query: Value, keys: Value) -> Value:
    return score_scaled(graph, attention, write_linear(graph, attention.query, query), keys)


def score_additive(graph: Graph, attention: AdditiveAttention, query: Value, keys: Value) -> Value:
    joined = keys.unsqueeze(1) + write_linear(graph, attention.shift, query).unsqueeze(2)
    return write_linear(graph, attention.judge, joined.tanh()).squeeze(-1)


SCORES: dict[type[Attention], Callable[[Graph, Any, Value, Value], Value]] = {
    DotAttention: score_dot,
    ScaledDotAttention: score_scaled,
    ProjectedAttention: score_projected,
    AdditiveAttention: score_additive,
}


def score_of(attention: Attention) -> Attention:
    """What scores: of a local attention, the one that it limits."""
    return attention.score if isinstance(attention, LocalAttention) else attention


def look(graph: Graph, attention: Attention, query: Value, source: FixedState, places: Value | None = None) -> Value:
    """What queries (B, T, Q) see of a source: (B, T, D). A monotonic attention is told the places (B, T) of steps."""
    keys, values, mask = (leaf.value for leaf in source.leaves)
    score, shown = score_of(attention), mask.unsqueeze(1)
    scores = SCORES[type(score)](graph, score, query, keys)
    if isinstance(attention, LocalAttention):
        center = predict_center(graph, attention, query, mask) if places is None else places.unsqueeze(2)
        distance = graph.arange(mask.length(1)).cast(TensorProto.FLOAT) - center
        near = graph.add("LessOrEqual", graph.add("Abs", distance), float(attention.window))
        weights = weigh(graph, scores, graph.add("And", shown, near), SOURCE)
        if places is None:
            share = distance / float(attention.window)
            weights = weights * graph.add("Exp", share * share * -2.0)
    else:
        weights = weigh(graph, scores, shown, SOURCE)
    if attention.hard:
        weights = harden(graph, weights, 2)
    return weights @ values


def predict_center(graph: Graph, attention: Any, query: Value, mask: Value) -> Value:
    """Where in the source each query of a predictive attention looks: (B, T, 1)."""
    if not isinstance(attention, PredictiveAttention):
        raise refuse(attention, "attention")
    lengths = graph.add("ReduceSum", mask.cast(TensorProto.FLOAT), graph.integers((1,)), keepdims=1)
    inner = write_linear(graph, attention.W, query).tanh()
    return graph.add("Sigmoid", write_linear(graph, attention.v, inner)) * lengths.unsqueeze(1)


def harden(graph: Graph, weights: Value, axis: int) -> Value:
    """All weight on the largest along the last axis, which has this number."""
    best = graph.add("ArgMax", weights, axis=-1, keepdims=1)
    there = graph.add("Equal", graph.arange(weights.length(axis)), best)
    return there.cast(TensorProto.FLOAT) * graph.add("Greater", weights, 0.0).cast(TensorProto.FLOAT)


# --- in several ---------------------------------------------------------------------------------------------------


def split_heads(x: Value, heads: int, width: int) -> Value:
    """(B, T, heads · w) -> (B, heads, T, w)."""
    return x.reshape(0, 0, heads, width).transpose(0, 2, 1, 3)


def attend(
    graph: Graph, heads: MultiHeadAttention, query: Value, keys: Value, values: Value, mask: Any, name: str
) -> Value:
    scores = query @ keys.transpose(0, 1, 3, 2) / heads.width**0.5
    weights = weigh(graph, scores, mask, name)
    if heads.hard:
        weights = harden(graph, weights, 3)
    context = (weights @ values).transpose(0, 2, 1, 3).reshape(0, 0, heads.heads * heads.value_width)
    return write_linear(graph, heads.out, context)


def project(graph: Graph, layer: OwnAttention, x: Value, positions: Value) -> tuple[Value, Value, Value]:
    """Query, keys and values, turned by their positions."""
    heads = layer.attend
    widths = heads.width, heads.width, heads.value_width
    parts = write_linear(graph, layer.project, x).split(*[heads.heads * width for width in widths])
    query, keys, values = (split_heads(part, heads.heads, width) for part, width in zip(parts, widths, strict=True))
    return turn(graph, layer.turn, query, positions), turn(graph, layer.turn, keys, positions), values


def turn(graph: Graph, rotation: Rotation, x: Value, positions: Value) -> Value:
    """x (B, heads, T, w), turned by positions (B, T)."""
    match rotation:
        case NoRotation():
            return x
        case Rotary():
            pass
        case _:
            raise refuse(rotation, "positions")
    angle = positions.cast(TensorProto.FLOAT).unsqueeze(1, 3) * graph.weight(rotation.rate)
    sin, cos = graph.add("Sin", angle), graph.add("Cos", angle)
    even, odd = x.slice(-1, 0, None, 2), x.slice(-1, 1, None, 2)
    pairs = graph.concat((even * cos - odd * sin).unsqueeze(-1), (even * sin + odd * cos).unsqueeze(-1))
    return pairs.reshape(0, 0, 0, 2 * len(rotation.rate))


def see_sequence(graph: Graph, layer: SelfAttention, x: Value, positions: Value, reading: Reading | None) -> Value:
    query, keys, values = project(graph, layer, x, positions)
    mask = None if reading is None else reading.mask.unsqueeze(1, 2)
    if layer.window:
        place = graph.arange(x.length(1))
        distance = graph.add("Abs", place.unsqueeze(1) - place.unsqueeze(0))
        near = graph.add("LessOrEqual", distance, graph.integer(layer.window)).unsqueeze(0, 1)
        mask = near if mask is None else graph.add("And", near, mask)
    return attend(graph, layer.attend, query, keys, values, mask, SELF)


def see_others(graph: Graph, layer: NonLocalLayer, x: Value, reading: Reading | None) -> Value:
    block = layer.look
    query, keys, values = write_linear(graph, block.project, x).split(*[block.inner] * 3)
    mask = None if reading is None else reading.mask.unsqueeze(1)
    weights = weigh(graph, query @ keys.transpose(0, 2, 1) / block.inner**0.5, mask, SELF)
    return write_linear(graph, block.out, weights @ values)


def see_past(
    graph: Graph, layer: CausalAttention, x: Value, positions: Value, past: tuple[Value, Value]
) -> tuple[Value, tuple[Value, Value]]:
    """What each element sees of itself and of what was read before; and what will have been read then."""
    query, keys, values = project(graph, layer, x, positions)
    keys, values = (graph.concat(old, new, axis=2) for old, new in zip(past, (keys, values), strict=True))
    time, length = x.length(1), keys.length(2)
    here = graph.arange(time) + (length - time)
    distance = here.unsqueeze(1) - graph.arange(length).unsqueeze(0)
    mask = graph.add("GreaterOrEqual", distance, graph.integer(0))
    if layer.window:
        mask = graph.add("And", mask, graph.add("Less", distance, graph.integer(layer.window)))
    y = attend(graph, layer.attend, query, keys, values, mask.unsqueeze(0, 1), PAST)
    if layer.window:  # what no later element sees is forgotten
        begin = graph.add("Max", length - graph.integer(layer.window), graph.integers((0,)))
        keys, values = keys.slice(2, begin), values.slice(2, begin)
    return y, (keys, values)


def see_memory(graph: Graph, layer: CrossAttention, x: Value, source: FixedState) -> Value:
    keys_values, mask = (leaf.value for leaf in source.leaves)
    heads = layer.attend
    query = split_heads(write_linear(graph, layer.query, x), heads.heads, heads.width)
    keys, values = keys_values.split(heads.query_size, heads.heads * heads.value_width)
    keys, values = split_heads(keys, heads.heads, heads.width), split_heads(values, heads.heads, heads.value_width)
    return attend(graph, heads, query, keys, values, mask.unsqueeze(1, 2), SOURCE)
