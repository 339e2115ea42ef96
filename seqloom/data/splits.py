"""Drawing validation and test parts: which rows belong where. Knows rows only by number, label, group and time.

Rows of one group are never divided. `keep_together` makes groups of keys (a column, equal examples, blocks of a file),
and everything here that divides rows takes them: `draw_parts` at random, `draw_fold` one fold of several,
`split_by_time` in the order of time.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.counts import format_count
from seqloom.data.ragged import Rows
from seqloom.errors import DataError

REST = "train"  # the part that gets what the others leave

Groups = NDArray[np.int64]  # the number of each row's group


class _Units:
    """Groups of rows, in the order of their first rows: what is drawn."""

    def __init__(self, rows: int | Sequence[Hashable], groups: Groups | None) -> None:
        labels = np.zeros(rows, dtype=np.int64) if isinstance(rows, int) else number_values(rows)
        self.of_row = np.arange(len(labels)) if groups is None else number_values(groups.tolist())
        _, first = np.unique(self.of_row, return_index=True)
        self.labels = labels[first]  # of a group, that of its first row
        self.sizes = np.bincount(self.of_row)
        self.grouped = len(self.sizes) < len(self.of_row)

    def shuffle(self, seed: int) -> Rows:
        """All units in a drawn order, those of one label together, the labels in a drawn order too."""
        order = shuffle(len(self.labels), seed, 0)
        ranks = shuffle(self.labels.max(initial=-1) + 1, seed, 1)
        return order[np.argsort(ranks[self.labels[order]], kind="stable")]

    def find_rows(self, units: Rows) -> Rows:
        chosen = np.zeros(len(self.sizes), dtype=np.bool_)
        chosen[units] = True
        return np.flatnonzero(chosen[self.of_row])

    def refuse(self, parts: Iterable[str]) -> DataError:
        """The error for rows that cannot be divided into these parts."""
        rows, names = len(self.of_row), ", ".join([REST, *parts])
        if not self.grouped:
            has = f"the file has {format_count(rows, 'row')}, too few to draw the parts {names}"
            return DataError(f"{has}; give more rows, or files for them")
        has = f"the file has {format_count(rows, 'row')} in {format_count(len(self.sizes), 'group')} that stay together"
        return DataError(
            f"{has}, too few to draw the parts {names}; data.group and data.split_blocks say "
            "what stays together, data.split_duplicates=apart divides equal sources too"
        )


def draw_parts(
    rows: int | Sequence[Hashable], shares: Mapping[str, float], seed: int, groups: Groups | None = None
) -> dict[str, Rows]:
    """The rows of each part, in order; `train` gets what is left. A pure function of its arguments.

    `rows` is their number, or a label for each: then every part has each label in its share, to within one row of
    what is possible. Each part whose share is not 0 gets at least one row, and so does `train`. With groups, a part has
    at most its share, unless the smallest group is larger.
    """
    units = _Units(rows, groups)
    return _draw(units, units.shuffle(seed), _count_rows(units, shares), shares)


def draw_fold(
    rows: int | Sequence[Hashable], fold: int, folds: int, share: float, seed: int, groups: Groups | None = None
) -> dict[str, Rows]:
    """One of several ways to divide: the folds are of about one size and each is the test part once; the validation
    part, a share of all rows, is drawn from what is left."""
    units = _Units(rows, groups)
    if len(units.sizes) < max(folds, 3):
        raise units.refuse((f"validation and {folds} folds",))
    left, filled, folded = units.shuffle(seed), [0] * folds, np.empty(len(units.sizes), dtype=np.int64)
    for unit in left.tolist():
        folded[unit] = smallest = filled.index(min(filled))
        filled[smallest] += int(units.sizes[unit])
    rest, shares = left[folded[left] != fold], {"validation": share}
    parts = _draw(units, rest, _count_rows(units, shares), shares)
    return parts | {"test": units.find_rows(np.flatnonzero(folded == fold))}


def split_by_time(
    times: Sequence[float] | NDArray[np.float64], shares: Mapping[str, float], groups: Groups | None = None
) -> dict[str, Rows]:
    """The oldest rows train, the newest are of the last part; a group is as old as its oldest row."""
    units, sizes = _Units(len(times), groups), {}
    oldest = np.full(len(units.sizes), np.inf)
    np.minimum.at(oldest, units.of_row, np.asarray(times, dtype=np.float64))
    left, counts = np.argsort(oldest, kind="stable"), _count_rows(units, shares)
    for part in reversed(list(counts)):
        behind = np.cumsum(units.sizes[left][::-1])[::-1]  # rows from each unit on
        sizes[part], left = np.split(left, [max(int(np.sum(behind > counts[part])), 0)])[::-1]
        if not len(sizes[part]):
            sizes[part], left = left[-1:], left[:-1]
    if not len(left):
        raise units.refuse(counts)
    empty = dict.fromkeys(shares, np.empty(0, dtype=np.int64))
    return {part: units.find_rows(some) for part, some in ({REST: left} | empty | sizes).items()}


def keep_together(*keys: Sequence[Hashable] | NDArray[np.generic]) -> Groups:
    """Groups of rows that have the value of some key in common, directly or by way of others."""
    numbers = [number_values(key.tolist() if isinstance(key, np.ndarray) else key) for key in keys]
    groups = np.arange(len(numbers[0]))
    while True:
        before = groups
        for key in numbers:
            least = np.full(key.max(initial=-1) + 1, len(key))
            np.minimum.at(least, key, groups)
            groups = least[key]
        if (groups == before).all():
            return groups


def make_blocks(rows: int, size: int) -> Groups:
    """Neighbors in the file as groups of so many rows."""
    return np.arange(rows) // size


def shuffle(rows: int, *seeds: int) -> Rows:
    """0 … rows − 1 in an order that depends on the seeds alone.

    Made of the bits themselves: numpy promises that those stay the same from version to version, but not its shuffle.
    """
    bits = np.random.PCG64(np.random.SeedSequence(seeds)).random_raw(rows)
    return np.argsort(bits, kind="stable")


def number_values(values: Iterable[Hashable]) -> NDArray[np.int64]:
    """Equal values as equal numbers, from 0 in the order in which they first occur."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _count_rows(units: _Units, shares: Mapping[str, float]) -> dict[str, int]:
    """How many rows each part with a share is to have."""
    total = len(units.of_row)
    sizes = {part: max(1, round(total * share)) for part, share in shares.items() if share > 0}
    while sum(sizes.values()) >= total and max(sizes.values(), default=1) > 1:  # rounding left nothing to train on
        sizes[max(sizes, key=sizes.__getitem__)] -= 1
    if len(units.sizes) <= len(sizes) or not total:
        raise units.refuse(sizes)
    return sizes


def _draw(units: _Units, left: Rows, sizes: Mapping[str, int], parts: Iterable[str]) -> dict[str, Rows]:
    """So many rows for each part of the units that are left, in this order."""
    drawn = {part: np.empty(0, dtype=np.int64) for part in parts}
    for part, size in sizes.items():
        if len(left) < 2:  # the last group is to train on
            raise units.refuse(sizes)
        chosen = _spread_evenly(units.sizes[left], size)
        drawn[part], left = units.find_rows(left[chosen]), left[~chosen]
    return {REST: units.find_rows(left)} | drawn


def _spread_evenly(sizes: Rows, count: int) -> NDArray[np.bool_]:
    """Units that have `wanted` rows together, or as many fewer as it takes, spread evenly: any stretch of them has its
    share. At least one unit, if it has to be the smallest, and not all."""
    total = int(sizes.sum())
    count = min(count, total - 1)
    chosen, passed, reached = np.zeros(len(sizes), dtype=np.bool_), 0, 0
    for place, size in enumerate(sizes.tolist()):
        passed += size
        if reached + size <= passed * count // total:
            chosen[place], reached = True, reached + size
    if not reached:
        chosen[np.argmin(sizes)] = True
    return chosen
