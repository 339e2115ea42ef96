"""Answers and losses to scores: each beside its baselines, and by how long what was read is. Knows no task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Doubles
from ..metrics import Score, measure_lead, score_by_length
from .results import Lead, ScoreWithBaselines

BINS, FEWEST = 4, 20  # of length, and examples in each


class Metric(Protocol):
    """How good answers are; or from sums and counts of losses, how surprising the truth is."""

    def __call__(self, predictions: Any, targets: Any, /, *, intervals: bool = True) -> Score: ...


def score_answers(
    metrics: Mapping[str, Metric],
    answers: Sequence[Any],
    targets: Sequence[Any],
    baselines: Mapping[str, Sequence[Any]],
    lengths: NDArray[np.int64],
) -> dict[str, ScoreWithBaselines]:
    """Every metric of the answers and of what the baselines answer; `lengths` is of what was read for each."""
    bins = min(BINS, len(lengths) // FEWEST)

    def by_length(metric: Metric) -> dict[str, Any]:
        if bins < 2 or lengths.min() == lengths.max():
            return {}

        def score_rows(rows: NDArray[np.int64]) -> Score:
            return metric([answers[row] for row in rows], [targets[row] for row in rows], intervals=False)

        buckets = score_by_length(lengths, score_rows, bins=bins)
        names = (
            str(one.longest) if one.shortest == one.longest else f"{one.shortest}–{one.longest}" for one in buckets
        )
        return {
            name: {"value": one.score.value, "examples": one.count} for name, one in zip(names, buckets, strict=True)
        }

    def measure(metric: Metric, own: Sequence[Any], *, intervals: bool) -> Score:
        return metric(own, targets, intervals=intervals)

    return {
        name: replace(score_beside(partial(measure, metric), answers, baselines), by_length=by_length(metric))
        for name, metric in metrics.items()
    }


def score_losses(
    metrics: Mapping[str, Metric],
    losses: Doubles,
    baselines: Mapping[str, Doubles],
    shares: Callable[[Doubles], tuple[Doubles, Doubles]],
) -> dict[str, ScoreWithBaselines]:
    """Every metric of losses and of those of the baselines; `shares` gives the sums and counts to resample."""

    def measure(metric: Metric, own: Doubles, *, intervals: bool) -> Score:
        return metric(*shares(own), intervals=intervals)

    return {name: score_beside(partial(measure, metric), losses, baselines) for name, metric in metrics.items()}


class Measure(Protocol):
    """The score of answers, or of losses, whose targets are known."""

    def __call__(self, own: Any, /, *, intervals: bool) -> Score: ...


def score_beside(measure: Measure, own: Any, baselines: Mapping[str, Any]) -> ScoreWithBaselines:
    """The score of what is a model's own and of what the baselines have instead, and whether the best of them is better
    by more than chance: only for that are its examples drawn, too."""
    score = measure(own, intervals=True)
    values = {name: measure(others, intervals=False).value for name, others in baselines.items()}
    sign = {"higher": 1, "lower": -1, "nearer": 0}[score.better]
    best = max(values, key=lambda name: sign * values[name], default=None)
    if best is None or not sign * values[best] > sign * score.value or score.draws is None:
        return ScoreWithBaselines(score, values)
    interval = measure_lead(measure(baselines[best], intervals=True), score)
    return ScoreWithBaselines(score, values, ahead=Lead(best, interval, score.draws.examples))
