"""A score: a number, how sure it is, and how to read it; and the resampling that says how sure.

Every metric is a function of how often each example was drawn. Once each gives the value; drawn a thousand times with
replacement (the bootstrap) they give the interval. This file knows counts of examples, not what they are examples of.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Doubles

RESAMPLES = 1000
BOOTSTRAP_SEED = 0  # one seed for all: two systems scored on the same examples are drawn alike, so they can be paired
ROOM = 1 << 20  # numbers of a block of resamples; small enough for the processor's cache

LEAST = 6  # examples with which a sign test can tell two systems apart: 2 / 2⁶ is below 5 %
KEPT = 1 << 15  # draws of up to so many examples are kept in memory (32 MB)

Times = NDArray[np.uint8]
Better = Literal["higher", "lower", "nearer"]  # nearer: to the figure that the scale names
Value = Callable[[Doubles], Doubles]  # summed statistics (…, C) → the score of each (…)
Statistic = Callable[
    [Doubles], Doubles
]  # how often each example was drawn (R, N) → the score of each draw (R,) or (R, K)


@dataclass(frozen=True, eq=False)
class Draws:
    """What a score is in each draw of as many examples."""

    values: Doubles
    examples: int


@dataclass(frozen=True)
class Score:
    """A number, how sure it is, and how to read it."""

    value: float
    interval: tuple[float, float] | None  # 95 %, from resampling the examples; None where nobody asked for it
    better: Better
    scale: str
    signature: str = ""  # sacrebleu's account of how the number came about; empty where there is nothing to choose
    missing: int = 0  # targets that were left out: they are not known, or their series has no scale
    details: dict[str, Any] = field(default_factory=dict, compare=False)  # what else is known, as JSON has it
    draws: Draws | None = field(default=None, compare=False, repr=False)  # that gave the interval

    def to_json(self) -> dict[str, object]:
        """For a file or a program; what there is not is left out."""
        stored: dict[str, object] = {"value": self.value, "better": self.better, "scale": self.scale}
        if self.interval is not None:
            stored["interval"] = list(self.interval)
        if self.signature:
            stored["signature"] = self.signature
        if self.missing:
            stored["missing"] = self.missing
        return stored | self.details


def score_sums(
    statistics: ArrayLike, value: Value, better: Better, scale: str, signature: str = "", *, intervals: bool
) -> Score:
    """The score that follows from statistics (N, C) summed over the examples."""
    table = np.asarray(statistics, dtype=np.float64)
    assert len(table), "nothing to score: the caller has to see to it that there are examples"
    draws = Draws(resample(len(table), lambda times: value(times @ table)), len(table)) if intervals else None
    return Score(float(value(table.sum(axis=0))), limits(draws), better, scale, signature, draws=draws)


def ratio(sums: Doubles) -> Doubles:
    """The first sum for each of the second; where there is nothing to share out, the first alone."""
    return sums[..., 0] / np.maximum(sums[..., 1], 1)


def resample(count: int, statistic: Statistic) -> Doubles:
    """The statistic of a thousand draws of as many examples, with replacement. (R,) or (R, K)"""
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    block = max(1, min(RESAMPLES, ROOM // count))
    values = []
    for first in range(0, RESAMPLES, block):
        rows = min(block, RESAMPLES - first)
        drawn = _draw_all(count)[first : first + rows] if count <= KEPT else _draw_counts(generator, rows, count)
        values.append(statistic(drawn.astype(np.float64)))
    return np.concatenate(values)


@lru_cache(maxsize=2)
def _draw_all(count: int) -> Times:
    """All draws of so many examples: each score of a test part, and each of its steps, is asked of the same ones."""
    return _draw_counts(np.random.default_rng(BOOTSTRAP_SEED), RESAMPLES, count)


def _draw_counts(generator: np.random.Generator, rows: int, count: int) -> Times:
    """How often each example is drawn: (rows, count)"""
    times = np.empty((rows, count), dtype=np.uint8)  # a draw gives one example about once; 255 is out of reach
    for row in times:
        row[:] = np.bincount(generator.integers(count, size=count), minlength=count)
    return times


def limits(draws: Draws | None) -> tuple[float, float] | None:
    """Where 95 of 100 draws lie; draws for which the score is not defined do not count, None if none is."""
    defined = draws.values[np.isfinite(draws.values)] if draws else np.empty(0)
    if not len(defined):
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def measure_lead(one: Score, other: Score) -> tuple[float, float] | None:
    """How much better one is than the other on the same examples: the 95 % interval of their difference, paired by the
    draws; None if there is none.

    Few examples draw too narrow an interval, so that it is widened as Student's t is; as for a sign test, fewer than
    six cannot tell at all.
    """
    if one.draws is None or other.draws is None or one.draws.examples < LEAST:
        return None
    apart, count = one.draws.values - other.draws.values, one.draws.examples
    defined = apart[np.isfinite(apart)]
    if not len(defined):
        return None
    middle = (other.value - one.value) if one.better == "lower" else (one.value - other.value)
    spread = student_quantile(count - 1) * float(defined.std()) * (count / (count - 1)) ** 0.5
    return middle - spread, middle + spread


def student_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by the first terms of its expansion in 1 / freedom."""
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
