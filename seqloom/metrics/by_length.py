"""Any metric against length: the figure of how quality falls as sequences grow.

Examples are put into bins by their length and each bin is scored for itself. This file knows lengths and a function
that scores some of the examples; what the examples are it does not know.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .score import Score

ScoreRows = Callable[[NDArray[np.int64]], Score]  # the rows of some examples → their score


@dataclass(frozen=True)
class Bin:
    """The examples whose length is from `shortest` to `longest`, as found, and their score."""

    shortest: int
    longest: int
    count: int
    score: Score


def score_by_length(
    lengths: ArrayLike, score: ScoreRows, edges: Sequence[int] | None = None, bins: int = 8
) -> list[Bin]:
    """Bins in order of length; one without examples is left out.

    A bin begins at each of the `edges` (what is shorter than the first has a bin of its own); without edges, `bins`
    bins hold about as many examples each, and examples of one length are never parted.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    assert counts.ndim == 1 and len(counts), "a length for every example"
    starts = np.unique(edges if edges is not None else _find_even_starts(counts, bins))
    number = np.searchsorted(starts, counts, side="right")
    buckets = []
    for one in np.unique(number):
        rows = np.flatnonzero(number == one)
        buckets.append(Bin(int(counts[rows].min()), int(counts[rows].max()), len(rows), score(rows)))
    return buckets


def _find_even_starts(lengths: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """The lengths at which bins of about one size begin."""
    return np.sort(lengths)[np.arange(1, bins) * len(lengths) // bins]
