"""How a sequence becomes one vector, by name. To add a way: a function here that gives it, and a line in `POOLS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..layers.base import Pool


class PooledFeatures(NamedTuple):
    """The features that are pooled."""

    width: int  # features of an element
    queries: int = 4  # that are learned
    both_ends: bool = False  # whether the second half of the features was read from the end


def pool_last(of: PooledFeatures) -> Pool:
    """Where the reading ends; of two directions, each has an end of its own."""
    from ..layers.base import last_bidirectional_pool, last_pool

    return last_bidirectional_pool if of.both_ends else last_pool


def pool_mean(of: PooledFeatures) -> Pool:
    from ..layers.base import mean_pool

    return mean_pool


def pool_sqrtn(of: PooledFeatures) -> Pool:
    from ..layers.base import sqrtn_pool

    return sqrtn_pool


def pool_first(of: PooledFeatures) -> Pool:
    from ..layers.base import first_pool

    return first_pool


def pool_max(of: PooledFeatures) -> Pool:
    from ..layers.base import max_pool

    return max_pool


def pool_attention(of: PooledFeatures) -> Pool:
    from ..layers.attention import Pooling

    return Pooling(of.width, of.queries)


POOLS: dict[str, Callable[[PooledFeatures], Pool]] = {
    "mean": pool_mean,
    "sqrtn": pool_sqrtn,
    "last": pool_last,
    "first": pool_first,
    "max": pool_max,
    "attention": pool_attention,
}
