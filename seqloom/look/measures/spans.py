"""Where else the same units behave so: those that are on all over a span of one example, and spans of others like it.

As in LSTMVis (Strobelt et al., 2018), but with a threshold for each unit: it is on where it lies more than one standard
deviation above (or below) its mean over the examples that are searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ...arrays import Floats
from ...layers.tap import recording
from ...models import Batch
from ..places import list_levels
from .reading import SOURCE, Model, Names, compute_features, disable_dropout, get_mask, take_row

ON = 1.0  # standard deviations from the mean


@dataclass(frozen=True)
class Activations:
    """What passes one level of a model: (steps, units)."""

    level: str
    steps: list[str]
    values: Floats


@dataclass(frozen=True)
class SpanScale:
    """The mean and the standard deviation of every unit of a level over many examples."""

    mean: Floats
    spread: Floats

    @classmethod
    def fit(cls, values: Sequence[Floats]) -> "SpanScale":
        every = np.concatenate(values).astype(np.float64)
        return cls(every.mean(0), every.std(0))

    def standardize(self, values: Floats) -> Floats:
        """In standard deviations from the mean; a unit that never moves is never on."""
        return (values - self.mean) / np.where(self.spread > 0, self.spread, np.inf)


@dataclass(frozen=True)
class Unit:
    number: int
    side: int  # 1: high, -1: low
    bounded: bool  # whether it is off just before the span and just after it


@dataclass(frozen=True)
class Match:
    """A span of an example, and which share of the units is on at each of its steps."""

    example: int
    start: int
    shares: list[float]

    @property
    def share(self) -> float:
        return float(np.mean(self.shares))


def record_levels(model: Model, batch: Batch, names: Names) -> list[Activations]:
    """What passes every level of the model, over the first row of the batch."""
    batch = take_row(batch)
    with disable_dropout(model), torch.no_grad(), recording(model) as tape:
        compute_features(model, batch)
    activations = []
    for level in list_levels(model):
        if not level.steps(tape) or (level.side == SOURCE and not batch.source):
            continue
        values, shown = level.values(tape)[0].cpu(), get_mask(batch, level.side)[0].cpu()
        steps = names.of(level.side)[: int(shown.sum())]
        if len(values) == len(shown) and len(steps) == int(shown.sum()):  # one that pools has no steps
            activations.append(Activations(level.name, steps, values[shown].float().numpy()))
    return activations


def choose_units(values: Floats, start: int, end: int, scale: SpanScale, at_most: int) -> list[Unit]:
    """Units that are on, on one side, at every step from `start` until before `end`: first those that are off just
    before and just after, then the farthest from their means."""
    scaled = scale.standardize(values)
    inside, around = scaled[start:end], np.concatenate([scaled[max(0, start - 1) : start], scaled[end : end + 1]])
    ranked = []
    for side in (1, -1):
        for number in np.flatnonzero((side * inside > ON).all(0)):
            bounded = not bool((side * around[:, number] > ON).any())
            ranked.append((not bounded, -abs(float(inside[:, number].mean())), Unit(int(number), side, bounded)))
    return [unit for *_, unit in sorted(ranked, key=lambda one: one[:2])[:at_most]]


def compute_shares(values: Floats, units: Sequence[Unit], scale: SpanScale) -> Floats:
    """Which share of the units is on at each step; of no units, none."""
    if not units:
        return np.zeros(len(values))
    numbers, sides = [unit.number for unit in units], np.array([unit.side for unit in units])
    return (scale.standardize(values)[:, numbers] * sides > ON).mean(1)


def average_windows(shares: Floats, length: int) -> Floats:
    """The mean share of every stretch of this length, by its first step."""
    if len(shares) < length:
        return np.zeros(0)
    return np.lib.stride_tricks.sliding_window_view(shares, length).mean(1)


def find_matches(shares: Sequence[Floats], length: int, at_most: int) -> list[Match]:
    """The stretches of this length with the largest shares, no two of which overlap, the best first."""
    windows = [average_windows(one, length) for one in shares]
    places = [
        (-value, example, start) for example, one in enumerate(windows) for start, value in enumerate(one) if value
    ]
    covered: list[NDArray[np.bool_]] = [np.zeros(len(one), bool) for one in shares]
    matches: list[Match] = []
    for _, example, start in sorted(places):
        if len(matches) == at_most:
            break
        stretch = slice(start, start + length)
        if not covered[example][stretch].any():
            covered[example][stretch] = True
            matches.append(Match(example, start, shares[example][stretch].tolist()))
    return matches
