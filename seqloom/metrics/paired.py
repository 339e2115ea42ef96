"""Whether one of several variants is better, from scores that are paired by seed. Knows numbers, no runs.

The unit is the seed: every variant has a score for each, and what counts is the differences within a seed. A difference
is tested by flipping the signs of the differences (Fisher's randomization test): without a difference, either sign is
as likely. Against many others the p-values are corrected by Holm (1979). A winner is named only if it is better than
each of the others; otherwise it is said how many seeds would be needed to tell.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles
from ..counts import format_count

LEVEL = 0.05  # the chance of a winner where there is none
POWER = 0.8  # the chance to name a winner there is, with the seeds that are said to be needed
EXACT = 16  # seeds up to which all flips are tried
DRAWS = 10_000  # of flips, and of seeds with replacement
MOST = 1000  # seeds beyond which nobody should try
SEED = 0


@dataclass(frozen=True)
class Pair:
    """The best of all beside another one. Differences are positive where the first is better."""

    best: str
    other: str
    difference: float
    interval: tuple[float, float]
    p: float
    corrected: float
    seeds_needed: int | None  # None: more than anyone should try

    @property
    def separated(self) -> bool:
        return self.corrected <= LEVEL


@dataclass(frozen=True)
class Verdict:
    """The winner, if there is one, and what led to that."""

    winner: str | None
    sentence: str
    seeds: int
    seeds_needed: int | None  # in all; None: more than anyone should try
    pairs: tuple[Pair, ...]


def compute_bootstrap_interval(values: ArrayLike) -> tuple[float, float]:
    """Where the mean lies in 95 of 100 draws of as many seeds."""
    truth = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(draw_seeds(len(truth)) @ truth, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def compute_sign_flip_p(differences: ArrayLike) -> float:
    """The share of flipped signs whose mean is as far from zero: a two-sided p-value."""
    values = np.asarray(differences, dtype=np.float64)
    observed = abs(values.sum()) * (1 - 1e-9)  # equal sums count, however they are rounded
    as_far = np.abs(flip_signs(len(values)) @ values) >= observed
    return float(as_far.mean() if len(values) <= EXACT else (1 + as_far.sum()) / (1 + DRAWS))


@lru_cache(maxsize=4)
def flip_signs(count: int) -> Doubles:
    """All ways to flip so many signs or, where these are too many, some: (ways, count)."""
    if count <= EXACT:
        return np.where(np.arange(1 << count)[:, None] >> np.arange(count) & 1, -1.0, 1.0)
    return np.random.default_rng(SEED).choice([-1.0, 1.0], (DRAWS, count))


@lru_cache(maxsize=4)
def draw_seeds(count: int) -> Doubles:
    """What each of so many seeds counts in draws of as many: (draws, count)."""
    drawn = np.random.default_rng(SEED).integers(count, size=(DRAWS, count))
    places = drawn + count * np.arange(DRAWS)[:, None]
    times = np.bincount(places.ravel(), minlength=DRAWS * count).reshape(DRAWS, count)
    return times.astype(np.float64) / count


def correct_holm(ps: Sequence[float]) -> list[float]:
    """p-values that hold for all of them together."""
    corrected, largest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = largest
    return corrected


def count_needed_seeds(comparisons: int) -> int:
    """Below this no p-value can be small enough: of n seeds the smallest is 2 / 2ⁿ."""
    return math.ceil(1 + math.log2(max(comparisons, 1) / LEVEL))


def estimate_needed_seeds(differences: ArrayLike, comparisons: int) -> int | None:
    """The seeds with which such differences show against so many others at once, with a chance of `POWER`.

    As for a paired t-test, whose power the sign flips share; the last term is for the spread being estimated as well.
    """
    values = np.asarray(differences, dtype=np.float64)
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if not values.any():
        return None
    effect = abs(float(values.mean())) / spread if spread else math.inf
    normal = NormalDist()
    level, power = normal.inv_cdf(1 - LEVEL / 2 / comparisons), normal.inv_cdf(1 - (1 - POWER) / comparisons)
    needed = ((level + power) / effect) ** 2 + level**2 / 2 if effect else math.inf
    return None if needed > MOST else max(math.ceil(needed), count_needed_seeds(comparisons))


def judge(scores: Mapping[str, Sequence[float]], higher: bool) -> Verdict:
    """The verdict on the scores of each variant, a score a seed, in the same order for all."""
    seeds = min(map(len, scores.values()), default=0)
    if len(scores) < 2 or not seeds:
        return Verdict(None, "there is nothing to compare yet", seeds, None, ())
    sign = 1.0 if higher else -1.0
    tables = {name: sign * np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    best = max(tables, key=lambda name: float(tables[name].mean()))
    apart = {name: tables[best] - table for name, table in tables.items() if name != best}
    corrected = correct_holm([compute_sign_flip_p(values) for values in apart.values()])
    pairs = tuple(
        Pair(
            best,
            name,
            float(values.mean()),
            compute_bootstrap_interval(values),
            compute_sign_flip_p(values),
            p,
            estimate_needed_seeds(values, len(apart)),
        )
        for (name, values), p in zip(apart.items(), corrected, strict=True)
    )
    return conclude(best, seeds, pairs)


def conclude(best: str, seeds: int, pairs: tuple[Pair, ...]) -> Verdict:
    least, close = count_needed_seeds(len(pairs)), [pair for pair in pairs if not pair.separated]
    if not close:
        p = max(pair.corrected for pair in pairs)
        return Verdict(best, f"{best} is better than each of the others (corrected p ≤ {p:.2g})", seeds, seeds, pairs)
    if seeds < least:
        sentence = (
            f"no verdict is possible with {format_count(seeds, 'seed')}: among {len(pairs) + 1} variants "
            f"it takes {least}"
        )
        return Verdict(None, f"{sentence}, {format_count(least - seeds, 'more seed')}", seeds, least, pairs)
    names, seeds_each = ", ".join(pair.other for pair in close), [pair.seeds_needed for pair in close]
    sentence = f"no winner: {best} and {names} cannot be told apart with {format_count(seeds, 'seed')}"
    known = [number for number in seeds_each if number is not None]
    if len(known) < len(seeds_each):
        return Verdict(None, f"{sentence}, and more than {MOST:,} would be needed", seeds, None, pairs)
    needed = max(seeds + 1, *known)
    more = f"if the differences are what they seem, about {needed} would tell ({needed - seeds} more)"
    return Verdict(None, f"{sentence}; {more}", seeds, needed, pairs)
