"""Summaries: a vector for a whole sequence."""

from collections.abc import Callable
from typing import Any

import torch
from onnx import TensorProto

from ...layers.attention import Pooling
from ...layers.base import first_pool, flatten_pool, last_bidirectional_pool, last_pool, max_pool, mean_pool, sqrtn_pool
from .attention import POOL, weigh
from .graph import Graph, Value
from .modules import refuse, write_linear
from .state import Reading


def pick(graph: Graph, values: Value, where: Value) -> Value:
    """One element of each row of values (B, T, D), at (B, 1)."""
    there = graph.add("Equal", graph.arange(values.length(1)).unsqueeze(0), where)
    return graph.where(there.unsqueeze(-1), values, 0.0).sum(1)


def find_last(graph: Graph, reading: Reading) -> Value:
    return graph.add("Max", reading.lengths - graph.integer(1), graph.integer(0)).unsqueeze(1)


def pool_last(graph: Graph, values: Value, reading: Reading) -> Value:
    return pick(graph, values, find_last(graph, reading))


def pool_first(graph: Graph, values: Value, reading: Reading) -> Value:
    return values.slice(1, 0, 1).squeeze(1)


def pool_ends(graph: Graph, values: Value, reading: Reading) -> Value:
    there, back = graph.add_many("Split", 2, values, axis=-1)
    return graph.concat(pool_last(graph, there, reading), pool_first(graph, back, reading))


def pool_mean(graph: Graph, values: Value, reading: Reading) -> Value:
    count = graph.add("Max", reading.lengths, graph.integer(1)).cast(TensorProto.FLOAT)
    return values.sum(1) / count.unsqueeze(1)


def pool_sqrtn(graph: Graph, values: Value, reading: Reading) -> Value:
    count = graph.add("Max", reading.lengths, graph.integer(1)).cast(TensorProto.FLOAT)
    return values.sum(1) / graph.add("Sqrt", count).unsqueeze(1)


def pool_max(graph: Graph, values: Value, reading: Reading) -> Value:
    shown = graph.where(reading.mask.unsqueeze(-1), values, torch.finfo(torch.float32).min)
    largest = graph.add("ReduceMax", shown, axes=[1], keepdims=0)
    return graph.where(reading.some.unsqueeze(1), largest, 0.0)


POOLS: dict[Any, Callable[[Graph, Value, Reading], Value]] = {
    mean_pool: pool_mean,
    sqrtn_pool: pool_sqrtn,
    max_pool: pool_max,
    last_pool: pool_last,
    first_pool: pool_first,
    last_bidirectional_pool: pool_ends,
    flatten_pool: lambda graph, values, reading: graph.add("Flatten", values, axis=1),
}


def write_pool(graph: Graph, pool: Any, values: Value, reading: Reading) -> Value:
    if isinstance(pool, Pooling):
        return pool_by_attention(graph, pool, values, reading)
    if pool not in POOLS:
        raise refuse(pool, "the summary of a sequence")
    return POOLS[pool](graph, values, reading)


def pool_by_attention(graph: Graph, pool: Pooling, values: Value, reading: Reading) -> Value:
    keys = write_linear(graph, pool.key, values).transpose(0, 2, 1)
    scores = graph.weight(pool.queries) @ keys / pool.queries.shape[1] ** 0.5
    context = weigh(graph, scores, reading.mask.unsqueeze(1), POOL) @ values
    return write_linear(graph, pool.join, graph.add("Flatten", context, axis=1))
