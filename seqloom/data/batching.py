"""Which examples go together in a batch: those of about the same length, so that little of a batch is padding.

The order of an epoch is a pure function of (lengths, budget, seed, epoch): a run can be taken up anywhere, and nothing
depends on how many processes share the work. Knows examples only by the lengths of their sides.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Rows
from seqloom.data.splits import shuffle

Lengths = NDArray[Any]  # (N,) or (N, sides), whole numbers
POOL = 250  # batches, about, that are sorted together: more means less padding, fewer more chance
STRIP = 3.0  # measured on sentences and their translations, in words and in characters: the least padding


def plan_epoch(lengths: Lengths, budget: int, seed: int, epoch: int, window: int = 0) -> list[Rows]:
    """The batches of an epoch: every example once, at most `budget` tokens a batch with padding, in a drawn order.

    The examples are drawn into pools, sorted by length within their pool and cut into batches, so the company an
    example is in changes from epoch to epoch. An example longer than the budget is a batch of its own; but with a
    `window`, so many tokens of each example are read at a time, and only those have to fit.
    """
    sides = _as_table(lengths)
    drawn = shuffle(len(sides), seed, epoch, 0)
    pools = int(sides.sum()) // (POOL * budget) + 1
    sorted_rows = drawn[_sort_by_length(sides[drawn], budget, pools)]
    batches = _cut_batches(np.minimum(sides, window) if window else sides, sorted_rows, budget)
    return [batches[number] for number in shuffle(len(batches), seed, epoch, 1)]


def batch_in_order(lengths: Lengths, budget: int) -> list[Rows]:
    """The examples in their own order, epoch after epoch the same: at most `budget` tokens a batch with padding."""
    sides = _as_table(lengths)
    return _cut_batches(sides, np.arange(len(sides)), budget)


def plan_scoring(lengths: Lengths, budget: int, window: int = 0) -> list[Rows]:
    """Batches for scoring: every example once, the shortest first, nothing drawn."""
    sides = _as_table(lengths)
    return _cut_batches(np.minimum(sides, window) if window else sides, _sort_by_length(sides, budget, pools=1), budget)


def compute_padded_share(lengths: Lengths, batches: Sequence[Rows]) -> float:
    """How much of the batches is padding: 0 is none, 0.5 is half."""
    sides = _as_table(lengths)
    full = sum(len(rows) * int(sides[rows].max(axis=0).sum()) for rows in batches)
    true = sum(int(sides[rows].sum()) for rows in batches)
    return 1 - true / full if full else 0.0


def _as_table(lengths: Lengths) -> NDArray[np.int64]:
    sides = np.asarray(lengths, dtype=np.int64)
    return sides[:, None] if sides.ndim == 1 else sides


def _sort_by_length(sides: NDArray[np.int64], budget: int, pools: int) -> Rows:
    """The rows sorted by length within each of `pools` equal stretches.

    With several sides: in strips of about the same first length, within a strip by the other lengths, up and down in
    turn, so that neighbors are alike in both. The more batches there are, the narrower the strips may be.
    """
    rows = len(sides)
    first, others = sides[:, 0], sides[:, 1:].sum(axis=1)
    batches = max(1.0, sides.sum() / budget / pools)
    width = max(1, round(STRIP * float(first.std()) / batches**0.5)) if rows and others.any() else 1
    strip = first // width
    pool = np.arange(rows) * pools // max(1, rows)
    strips, span = strip.max(initial=0) + 1, others.max(initial=0) + 1
    turned = np.where(strip % 2, span - 1 - others, others)
    return np.argsort((pool * strips + strip) * span + turned, kind="stable")  # one key sorts faster than three


def _cut_batches(sides: NDArray[np.int64], rows: Rows, budget: int) -> list[Rows]:
    """The rows, in their order, in batches as large as the budget allows."""
    lengths = np.ascontiguousarray(sides[rows].T)  # (sides, rows): one side's lengths lie together
    totals = lengths.sum(axis=0).tolist()
    counts = np.arange(1, len(rows) + 1)
    starts = [0]
    while (start := starts[-1]) < len(rows):
        # With the first one's lengths alone no more than these would fit.
        most = budget // totals[start] + 1 if totals[start] else len(rows)
        sizes = np.maximum.accumulate(lengths[:, start : start + most], axis=1).sum(axis=0)
        sizes *= counts[: len(sizes)]
        starts.append(start + max(1, int(sizes.searchsorted(budget, side="right"))))
    return [rows[start:stop] for start, stop in pairwise(starts)]
