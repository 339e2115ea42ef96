"""Scores of numbers against scikit-learn, SciPy, utilsforecast and their definitions."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sklearn_metrics
from utilsforecast import losses as utilsforecast_losses

from seqloom.metrics import (
    coverage,
    mae,
    mase,
    mse,
    quantile_loss,
    r2,
    rmse,
    seasonal_scale,
)
from seqloom.metrics.score import BOOTSTRAP_SEED, RESAMPLES

CASES = 200
ORACLES = {
    "mae": (mae, sklearn_metrics.mean_absolute_error),
    "mse": (mse, sklearn_metrics.mean_squared_error),
    "rmse": (rmse, sklearn_metrics.root_mean_squared_error),
    "r2": (r2, sklearn_metrics.r2_score),
}


def numbers(seed: int, shape: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Predictions that follow the targets, far from zero, rounded so that ranks tie."""
    draw = np.random.default_rng(seed)
    shape = shape or (int(draw.integers(5, 60)),)
    targets = draw.normal(1000, 3, shape).round(int(draw.integers(0, 3)))
    return (targets + draw.normal(0, 2, shape)).round(1), targets


def with_gaps(seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    predictions, targets = numbers(seed, shape)
    targets[np.random.default_rng(seed).random(shape) < 0.2] = np.nan
    return predictions, targets


@pytest.mark.parametrize("name", ORACLES)
def test_each_score_is_that_of_the_fields_own_implementation(name):
    ours, theirs = ORACLES[name]
    for seed in range(CASES):
        predictions, targets = numbers(seed)
        assert ours(predictions, targets, intervals=False).value == pytest.approx(
            theirs(targets, predictions), abs=1e-8
        )


@pytest.mark.parametrize("name", ORACLES)
def test_a_missing_target_is_left_out_and_counted(name):
    ours, theirs = ORACLES[name]
    for seed in range(CASES):
        predictions, targets = with_gaps(seed, (30,))
        known = ~np.isnan(targets)
        predictions[~known] = np.nan if seed % 2 else 1e9  # whatever stands there
        score = ours(predictions, targets, intervals=False)
        assert score.value == pytest.approx(theirs(targets[known], predictions[known]), abs=1e-8)
        assert score.missing == 30 - known.sum()


@pytest.mark.parametrize("name", ORACLES)
def test_the_interval_is_that_of_scoring_every_resample_anew(name):
    metric, _ = ORACLES[name]
    predictions, targets = with_gaps(3, (40,))
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    rows = [generator.integers(40, size=40) for _ in range(RESAMPLES)]
    drawn = [metric(predictions[some], targets[some], intervals=False).value for some in rows]
    assert metric(predictions, targets).interval == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=1e-9)


@pytest.mark.parametrize("season", [1, 7])
def test_mase_and_quantile_loss_are_utilsforecasts(season):
    draw = np.random.default_rng(season)
    series = draw.normal(5, 2, (CASES, 60)).cumsum(1)
    training, targets = series[:, :-6], series[:, -6:]
    predictions = targets + draw.normal(0, 1, targets.shape)

    def column(steps):
        return {"unique_id": np.repeat(np.arange(CASES), len(steps)), "ds": np.tile(steps, CASES)}

    past = pd.DataFrame({**column(range(54)), "y": training.ravel()})
    table = pd.DataFrame({**column(range(54, 60)), "y": targets.ravel(), "model": predictions.ravel()})
    scaled = utilsforecast_losses.mase(table, ["model"], season, past)["model"]
    pinball = utilsforecast_losses.quantile_loss(table, {"model": "model"}, season / 10)["model"]
    for case in range(CASES):
        scale = seasonal_scale(training[case], season)
        assert mase(predictions[case], targets[case], scale, intervals=False).value == pytest.approx(scaled[case])
        ours = quantile_loss(predictions[case][..., None], targets[case], [season / 10], intervals=False)
        assert ours.value == pytest.approx(pinball[case])


def test_quantile_losses_are_averaged_over_the_quantiles():
    draw = np.random.default_rng(0)
    targets = draw.normal(size=(20, 4, 2))
    predictions = draw.normal(size=(20, 4, 2, 3))
    levels = [0.1, 0.5, 0.9]
    each = [
        sklearn_metrics.mean_pinball_loss(targets.ravel(), predictions[..., n].ravel(), alpha=level)
        for n, level in enumerate(levels)
    ]
    assert quantile_loss(predictions, targets, levels, intervals=False).value == pytest.approx(np.mean(each))


def test_coverage_counts_the_targets_inside_and_says_what_is_right():
    for seed in range(CASES):
        predictions, targets = with_gaps(seed, (15, 3))
        score = coverage(predictions - 2, predictions + 2, targets, 0.8, intervals=False)
        inside = [abs(p - t) <= 2 for p, t in zip(predictions.ravel(), targets.ravel(), strict=True) if not np.isnan(t)]
        assert score.value == pytest.approx(np.mean(inside), abs=1e-12)
        assert score.better == "nearer" and "0.8" in score.scale


def test_a_scale_a_variable_is_used_for_that_variable():
    training = np.array([[0.0, 0.0], [1.0, 10.0], [0.0, np.nan], [1.0, 0.0], [0.0, 10.0]])
    scale = seasonal_scale(training)
    assert scale.tolist() == [1, 10]
    assert mase(np.zeros((3, 2, 2)), np.broadcast_to([1.0, 10.0], (3, 2, 2)), scale).value == 1


def test_mase_of_several_series_scales_each_by_its_own_and_leaves_out_those_without():
    draw = np.random.default_rng(0)
    targets, scales = draw.normal(size=(6, 4, 2)), np.exp(draw.normal(size=(6, 1, 2)))
    predictions = targets + draw.normal(size=targets.shape)
    targets[0, 0, 0], scales[1, 0, 1], scales[2, 0, 0] = np.nan, 0, np.nan
    expected = [
        abs(predictions[cell] - targets[cell]) / scales[cell[0], 0, cell[2]]
        for cell in np.ndindex(*targets.shape)
        if not np.isnan(targets[cell]) and scales[cell[0], 0, cell[2]] > 0
    ]
    score = mase(predictions, targets, scales)
    assert score.value == pytest.approx(np.mean(expected)) and score.missing == 1 + 4 + 4
    assert "8 targets" in score.scale
    nothing = mase(predictions, targets, 0)
    assert np.isnan(nothing.value) and nothing.interval is None and nothing.missing == targets.size


def test_cells_count_alike_however_they_are_spread_over_examples():
    predictions, targets = with_gaps(2, (20, 4, 3))
    for metric in (mae, mse, rmse, r2):
        whole = metric(predictions, targets, intervals=False)
        assert whole.value == pytest.approx(metric(predictions.ravel(), targets.ravel(), intervals=False).value)


def test_numbers_far_from_zero_lose_no_digits():
    predictions, targets = numbers(4, (50,))
    near, far = (r2(predictions - 1000 + by, targets - 1000 + by, intervals=False).value for by in (0, 1e9))
    assert far == pytest.approx(near, abs=1e-6)


def test_without_any_known_target_a_score_is_not_a_number():
    nothing = np.full(5, np.nan)
    for metric in (mae, mse, rmse, r2):
        score = metric(np.zeros(5), nothing)
        assert np.isnan(score.value) and score.interval is None and score.missing == 5


def test_a_prediction_that_is_missing_is_refused():
    with pytest.raises(AssertionError, match="a prediction for every target"):
        mae([np.nan, 1], [1, 1])
