"""Answers and losses to scores: each beside its baselines, and by how long what was read is. Knows no task."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Doubles
from ..metrics import Score, score_by_length
from .results import Scored

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
) -> dict[str, Scored]:
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

    return {
        name: Scored(
            metric(answers, targets),
            {baseline: metric(others, targets, intervals=False).value for baseline, others in baselines.items()},
            by_length(metric),
        )
        for name, metric in metrics.items()
    }


def score_losses(
    metrics: Mapping[str, Metric],
    losses: Doubles,
    baselines: Mapping[str, Doubles],
    shares: Callable[[Doubles], tuple[Doubles, Doubles]],
) -> dict[str, Scored]:
    """Every metric of losses and of those of the baselines; `shares` gives the sums and counts to resample."""
    return {
        name: Scored(
            metric(*shares(losses)),
            {baseline: metric(*shares(others), intervals=False).value for baseline, others in baselines.items()},
        )
        for name, metric in metrics.items()
    }
