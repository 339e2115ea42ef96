"""Drawing validation and test parts: which rows belong where, from a seed. Knows rows only by number and label."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Rows
from seqloom.errors import DataError

REST = "train"  # the part that gets what the others leave


def draw_parts(rows: int | Sequence[Hashable], shares: Mapping[str, float], seed: int) -> dict[str, Rows]:
    """The rows of each part, in order; `train` gets what is left. A pure function of its arguments.

    `rows` is their number, or a label for each: then every part has each label in its share, to within one row of
    what is possible. Each part whose share is not 0 gets at least one row, and so does `train`.
    """
    labels = np.zeros(rows, dtype=np.int64) if isinstance(rows, int) else _number_labels(rows)
    total = len(labels)
    sizes = {part: max(1, round(total * share)) for part, share in shares.items() if share > 0}
    while sum(sizes.values()) >= total and max(sizes.values(), default=1) > 1:  # rounding left nothing to train on
        sizes[max(sizes, key=sizes.__getitem__)] -= 1
    if sum(sizes.values()) >= total:
        parts = ", ".join([REST, *sizes])
        raise DataError(f"{total} rows are too few to draw the parts {parts}; give more rows, or files for the parts")
    left = _shuffle_by_label(labels, seed)
    drawn = {part: np.empty(0, dtype=np.int64) for part in shares}
    for part, size in sizes.items():
        chosen = _spread_evenly(size, len(left))
        drawn[part], left = np.sort(left[chosen]), left[~chosen]
    return {REST: np.sort(left)} | drawn


def shuffle(rows: int, *seeds: int) -> Rows:
    """0 … rows − 1 in an order that depends on the seeds alone.

    Made of the bits themselves: numpy promises that those stay the same from version to version, but not its shuffle.
    """
    bits = np.random.PCG64(np.random.SeedSequence(seeds)).random_raw(rows)
    return np.argsort(bits, kind="stable")


def _number_labels(labels: Sequence[Hashable]) -> NDArray[np.int64]:
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels), np.int64, len(labels))


def _shuffle_by_label(labels: NDArray[np.int64], seed: int) -> Rows:
    """All rows in a drawn order, those of one label together, the labels in a drawn order too."""
    order = shuffle(len(labels), seed, 0)
    ranks = shuffle(labels.max(initial=-1) + 1, seed, 1)
    return order[np.argsort(ranks[labels[order]], kind="stable")]


def _spread_evenly(size: int, total: int) -> NDArray[np.bool_]:
    """`size` of `total` places, spread evenly: any stretch of them has its share, to within one."""
    steps = np.arange(total + 1) * size // total
    return np.diff(steps) > 0
