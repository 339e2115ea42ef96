"""How good predicted numbers are: errors in the targets' own unit and free of it, quantiles, intervals.

Arrays have the examples first: (N,), (N, H) for H steps ahead, or (N, H, V) for V variables. A target that is not
known (NaN) is left out and counted. Every score is that of all cells together. This file knows arrays, not where they
come from.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles
from ..counts import format_count
from .score import Better, Score, Value, score_sums


def mae(predictions: ArrayLike, targets: ArrayLike, *, intervals: bool = True) -> Score:
    """Mean absolute error."""
    predicted, truth = _check_pair(predictions, targets)
    return _score_mean(
        np.abs(predicted - truth), truth, _compute_ratio, "in the unit of the target; 0 is perfect", intervals
    )


def mse(predictions: ArrayLike, targets: ArrayLike, *, intervals: bool = True) -> Score:
    """Mean squared error."""
    predicted, truth = _check_pair(predictions, targets)
    return _score_mean(
        (predicted - truth) ** 2, truth, _compute_ratio, "in the target's unit squared; 0 is perfect", intervals
    )


def rmse(predictions: ArrayLike, targets: ArrayLike, *, intervals: bool = True) -> Score:
    """The root of the mean squared error."""
    predicted, truth = _check_pair(predictions, targets)
    scale = "in the unit of the target; 0 is perfect"
    return _score_mean((predicted - truth) ** 2, truth, lambda sums: np.sqrt(_compute_ratio(sums)), scale, intervals)


def seasonal_scale(training: ArrayLike, season: int = 1) -> Doubles:
    """What `mase` divides by: how far a training series (T,) or (T, V) is from itself a season earlier, on average."""
    series = np.asarray(training, dtype=np.float64)
    assert len(series) > season, "a training series longer than a season"
    steps = np.abs(series[season:] - series[:-season])
    known = ~np.isnan(steps)
    return np.asarray(np.where(known, steps, 0).sum(0) / np.maximum(known.sum(0), 1))


def mase(predictions: ArrayLike, targets: ArrayLike, scale: ArrayLike, *, intervals: bool = True) -> Score:
    """Mean absolute scaled error: below 1 is better than repeating the last season was on the training series.

    `scale` is that of the training part of the series that a target belongs to (`seasonal_scale`): one number, one a
    variable, or one a target, as arrays broadcast. A series that never changed in training has none (0, or NaN): its
    targets are left out and counted.
    """
    predicted, truth = _check_pair(predictions, targets)
    unit = np.broadcast_to(np.asarray(scale, dtype=np.float64), truth.shape)
    scaled = unit > 0
    left = int((~scaled & ~np.isnan(truth)).sum())
    words = "errors of the seasonal naive forecast in training; below 1 beats it"
    words += f"; left out, as their series have no such errors: {format_count(left, 'target')}" if left else ""
    errors = np.divide(np.abs(predicted - truth), unit, out=np.zeros(truth.shape), where=scaled)
    return _score_mean(errors, np.where(scaled, truth, np.nan), _compute_ratio, words, intervals)


def quantile_loss(
    predictions: ArrayLike, targets: ArrayLike, quantiles: Sequence[float], *, intervals: bool = True
) -> Score:
    """Pinball loss, averaged over the quantiles; the last axis of the predictions is that of the quantiles."""
    levels = np.asarray(quantiles, dtype=np.float64)
    truth = np.asarray(targets, dtype=np.float64)
    predicted, repeated = _check_pair(predictions, np.repeat(truth[..., None], len(levels), -1))
    above = repeated - predicted
    loss = np.maximum(levels * above, (levels - 1) * above).mean(-1)
    return _score_mean(loss, truth, _compute_ratio, "in the unit of the target; 0 is perfect", intervals)


def coverage(low: ArrayLike, high: ArrayLike, targets: ArrayLike, nominal: float, *, intervals: bool = True) -> Score:
    """The share of targets between `low` and `high`, which say that they hold the share `nominal`."""
    bottom, truth = _check_pair(low, targets)
    top, _ = _check_pair(high, targets)
    inside = np.where(np.isnan(truth), np.nan, (bottom <= truth) & (truth <= top))
    return _score_mean(
        inside, truth, _compute_ratio, f"share of targets inside; {nominal:g} is right", intervals, "nearer"
    )


def r2(predictions: ArrayLike, targets: ArrayLike, *, intervals: bool = True) -> Score:
    """The share of the targets' variance that is explained; 0 for always saying the mean, below 0 for worse."""
    predicted, truth = _check_pair(predictions, targets)
    centered = truth - _average_known(truth)  # the sums below lose no digits then
    cells = _sum_cells([(predicted - truth) ** 2, centered, centered**2, np.ones_like(truth)], truth)
    return replace(
        score_sums(
            cells, _compute_r2, "higher", "share of the variance; 1 is perfect, 0 is the mean", intervals=intervals
        ),
        missing=_count_missing(truth),
    )


def _check_pair(predictions: ArrayLike, targets: ArrayLike) -> tuple[Doubles, Doubles]:
    predicted, truth = np.asarray(predictions, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    assert predicted.shape == truth.shape, f"predictions {predicted.shape} for targets {truth.shape}"
    assert not (np.isnan(predicted) & ~np.isnan(truth)).any(), "a prediction for every target that is known"
    return predicted, truth


def _count_missing(targets: Doubles) -> int:
    return int(np.isnan(targets).sum())


def _average_known(values: Doubles) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def _sum_cells(statistics: Sequence[Doubles], targets: Doubles) -> Doubles:
    """Each statistic summed over the cells of an example whose target is known: (N, C)"""
    axes = tuple(range(1, targets.ndim))
    return np.stack([np.where(np.isnan(targets), 0, one).sum(axes) for one in statistics], -1)


def _score_mean(
    errors: Doubles, targets: Doubles, value: Value, scale: str, intervals: bool, better: Better = "lower"
) -> Score:
    """The score of an error a cell."""
    cells = _sum_cells([errors, np.ones_like(targets)], targets)
    return replace(score_sums(cells, value, better, scale, intervals=intervals), missing=_count_missing(targets))


def _divide(part: Doubles, whole: Doubles) -> Doubles:
    """Not a number where there is nothing to divide by."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)


def _compute_ratio(sums: Doubles) -> Doubles:
    return _divide(sums[..., 0], sums[..., 1])


def _compute_r2(sums: Doubles) -> Doubles:
    error, total, squares, count = np.moveaxis(sums, -1, 0)
    return 1 - _divide(error, squares - total**2 / np.maximum(count, 1))
