"""Sequences of unequal length in two flat arrays: all their elements end to end, and where each one begins.

Flat arrays can lie in a file and be mapped into memory instead of read, so a million examples cost nothing until they
are used. Row i is `values[offsets[i]:offsets[i + 1]]`; offsets begin with 0. Knows nothing of what the numbers mean,
but for PAD.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.vocabulary import PAD

Numbers = NDArray[Any]  # whole numbers of any width: on disk ids are as narrow as their vocabulary allows
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Sequences of token ids, or of numbers of any shape: frames of a series, one image."""

    values: Numbers  # (total, ...)
    offsets: Rows  # (rows + 1,)

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int] | Numbers]) -> "Ragged":
        arrays = [np.asarray(sequence, dtype=np.int32) for sequence in sequences]
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
        return cls(values, compute_offsets(np.fromiter(map(len, arrays), np.int64, len(arrays))))

    @classmethod
    def stack(cls, arrays: Sequence[Numbers]) -> "Ragged":
        """Arrays (T, ...) that differ in their length T alone."""
        return cls(np.concatenate(arrays), compute_offsets(np.fromiter(map(len, arrays), np.int64, len(arrays))))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Numbers:
        start, stop = _get_bounds(self.offsets, row)
        row_values = self.values[start:stop]
        return row_values.astype(np.int32) if row_values.ndim == 1 and row_values.dtype.kind in "iu" else row_values

    def __iter__(self) -> Iterator[Numbers]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> Rows:
        return np.diff(self.offsets)

    def pad(self, rows: Rows | Sequence[int]) -> tuple[Numbers, Rows]:
        """The rows side by side, (n, T, ...), filled up with PAD (numbers with 0) on the right, and their lengths."""
        chosen = np.asarray(rows, dtype=np.int64)
        starts = self.offsets[chosen]
        lengths = self.offsets[chosen + 1] - starts
        steps = np.arange(lengths.max(initial=0))
        inside = steps < lengths[:, None]
        whole = self.values.dtype.kind in "iu" and self.values.dtype != np.uint8  # ids, which torch wants wide
        dtype = np.dtype(np.int64) if whole else self.values.dtype
        table = np.full((*inside.shape, *self.values.shape[1:]), PAD, dtype=dtype)
        table[inside] = self.values[(starts[:, None] + steps)[inside]]
        return table, lengths

    def take(self, rows: Rows | Sequence[int]) -> "Ragged":
        return Ragged(*_take(self.values, self.offsets, np.asarray(rows, dtype=np.int64)))

    def cut(self, longest: int) -> "Ragged":
        """Every row, but no more than its first `longest` elements."""
        lengths = self.lengths
        if lengths.max(initial=0) <= longest:
            return self
        kept = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], lengths) < longest
        return Ragged(self.values[kept], compute_offsets(np.minimum(lengths, longest)))


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts, end to end in UTF-8."""

    bytes: NDArray[np.uint8]  # (total,)
    offsets: Rows  # (rows + 1,)

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Texts":
        encoded = [text.encode("utf-8") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), compute_offsets(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> str:
        start, stop = _get_bounds(self.offsets, row)
        return self.bytes[start:stop].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        for rows in split_rows(self.lengths):
            yield from self.take(rows).to_list()

    @property
    def lengths(self) -> Rows:
        """In bytes."""
        return np.diff(self.offsets)

    def take(self, rows: Rows | Sequence[int]) -> "Texts":
        return Texts(*_take(self.bytes, self.offsets, np.asarray(rows, dtype=np.int64)))

    def to_list(self) -> list[str]:
        raw, places = self.bytes.tobytes(), self.offsets.tolist()
        return [raw[start:stop].decode("utf-8") for start, stop in pairwise(places)]


def compute_offsets(lengths: Rows) -> Rows:
    """Where each of the rows of these lengths begins, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def split_rows(sizes: Rows, limit: int = 1 << 23) -> Iterator[Rows]:
    """Rows 0, 1, 2 … in pieces of about `limit` bytes: what one step of a long work may hold in memory.

    A row counts with what Python needs for an object of its own, so that many tiny rows stay few.
    """
    ends = np.cumsum(sizes + 64) // limit
    breaks = np.flatnonzero(np.diff(ends)) + 1
    return (rows for rows in np.split(np.arange(len(sizes)), breaks) if len(rows))


def _get_bounds(offsets: Rows, row: int) -> tuple[int, int]:
    rows = len(offsets) - 1
    if not -rows <= row < rows:
        raise IndexError(f"row {row} of {rows}")
    row %= rows
    return int(offsets[row]), int(offsets[row + 1])


def _take(values: Numbers, offsets: Rows, rows: Rows) -> tuple[Numbers, Rows]:
    """The chosen rows' elements end to end, and their offsets."""
    starts = offsets[rows]
    lengths = offsets[rows + 1] - starts
    if len(rows) and (rows[1:] == rows[:-1] + 1).all():  # neighbors lie together already
        return values[starts[0] : starts[0] + lengths.sum()], compute_offsets(lengths)
    new = compute_offsets(lengths)
    # Element k of the result lies as far behind its row's start in `values` as behind its row's start here.
    return values[np.arange(new[-1]) + np.repeat(starts - new[:-1], lengths)], new
