"""Forecasts against statsforecast, least squares and closed forms."""

from importlib import import_module

import numpy as np
import pytest

from seqloom.baselines.numbers import LinearAutoregression, fill_gaps, forecast_persistence, forecast_seasonal_naive

CASES = 200


def windows(seed: int, steps: int = 24) -> np.ndarray:
    return np.random.default_rng(seed).normal(5, 2, (3, steps, 2)).cumsum(1)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (forecast_persistence, lambda models: models.Naive()),
        (lambda history, horizon: forecast_seasonal_naive(history, horizon, 7), lambda models: models.SeasonalNaive(7)),
    ],
    ids=["persistence", "seasonal"],
)
def test_each_simple_forecast_is_statsforecasts(ours, theirs):
    model = theirs(import_module("statsforecast.models"))  # takes seconds, which only its test should
    for seed in range(CASES):
        history = windows(seed)
        forecasts = ours(history, 10)
        assert forecasts.shape == (3, 10, 2)
        row, variable = seed % 3, seed % 2
        expected = model.forecast(np.ascontiguousarray(history[row, :, variable]), 10)["mean"]
        assert forecasts[row, :, variable] == pytest.approx(expected)


def test_gaps_take_the_value_before_them_and_at_first_the_usual_one():
    gap = np.nan
    history = np.array([[[gap, 1.0], [2.0, gap], [gap, gap], [gap, 3.0]]])
    assert fill_gaps(history, [7, 8]).tolist() == [[[7, 1], [2, 1], [2, 1], [2, 3]]]
    assert fill_gaps(np.full((1, 2, 1), gap), [4]).tolist() == [[[4], [4]]]


@pytest.mark.parametrize(("steps", "season"), [(24, 7), (21, 7), (10, 10), (9, 1)])
def test_a_gap_of_the_last_season_is_filled_from_the_same_place_of_the_seasons_before(steps, season):
    history = windows(8, steps)
    history[np.random.default_rng(9).random(history.shape) < 0.6] = np.nan
    history[:, 3] = 5.0  # something of each is known
    said = forecast_seasonal_naive(history, 12, season)
    for row, ahead, variable in np.ndindex(*said.shape):
        column = history[row, :, variable]
        same = [column[step] for step in range(steps) if (steps + ahead - step) % season == 0]
        known = [value for value in same if value == value] or [value for value in column if value == value]
        assert said[row, ahead, variable] == known[-1]


def test_the_weights_of_a_linear_recurrence_are_found_again():
    weights = np.array([-0.5, 0.3, 0.9])  # the oldest lag first
    draw = np.random.default_rng(0)
    series = list(draw.normal(size=3))
    for _ in range(20000):
        series.append(weights @ series[-3:] + draw.normal())
    model = LinearAutoregression.fit(np.array(series)[:, None] + 100, lags=3)
    assert model.weights[0, :, 0] == pytest.approx(weights, abs=0.03)
    assert model.center == pytest.approx([100], abs=0.2)


def test_direct_forecasts_are_least_squares_of_each_step():
    for seed in range(20):
        series = windows(seed, 80)[0]
        model = LinearAutoregression.fit(series, lags=5, steps=3, ridge=0)
        for variable in range(2):
            x = series[:, variable] - series[:, variable].mean()
            inputs = np.array([x[start : start + 5] for start in range(73)])
            for ahead in range(3):
                targets = np.array([x[start + 5 + ahead] for start in range(73)])
                expected = np.linalg.lstsq(inputs, targets, rcond=None)[0]
                assert model.weights[variable, :, ahead] == pytest.approx(expected, abs=1e-6)


def test_recursive_forecasts_read_their_own_output():
    series = windows(4, 60)
    model = LinearAutoregression.fit(series, lags=4)
    forecasts = model.forecast(series, 5)
    for row in range(3):
        for variable in range(2):
            past = list(series[row, :, variable] - model.center[variable])
            for _ in range(5):
                past.append(model.weights[variable, :, 0] @ past[-4:])
            assert forecasts[row, :, variable] == pytest.approx(np.array(past[-5:]) + model.center[variable])


def test_pieces_are_joined_where_the_horizon_is_longer_than_the_weights():
    series = windows(5, 60)
    model = LinearAutoregression.fit(series, lags=6, steps=3)
    once = model.forecast(series, 3)
    assert model.forecast(series, 8)[:, :3] == pytest.approx(once)
    again = model.forecast(np.concatenate([series, once], 1), 3)
    assert model.forecast(series, 8)[:, 3:6] == pytest.approx(again)
    assert model.forecast(series, 2) == pytest.approx(once[:, :2])


def test_what_is_not_known_trains_nothing():
    series = windows(6, 100)[0]
    broken = series.copy()
    broken[50, 0] = np.nan
    x = series[:, 0] - np.nanmean(broken[:, 0])
    starts = [start for start in range(97) if not start <= 50 <= start + 3]
    expected = np.linalg.lstsq(np.array([x[s : s + 3] for s in starts]), [x[s + 3] for s in starts], rcond=None)[0]
    model = LinearAutoregression.fit(broken, lags=3, ridge=0)
    assert model.weights[0, :, 0] == pytest.approx(expected, abs=1e-6)
    whole = LinearAutoregression.fit(series, lags=3, ridge=0)
    assert model.weights[1] == pytest.approx(whole.weights[1], abs=1e-9)


def test_ridge_makes_weights_smaller():
    series = windows(7, 60)
    sizes = [np.abs(LinearAutoregression.fit(series, 8, ridge=ridge).weights).sum() for ridge in (0, 0.1, 10)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_series_that_never_changes_is_forecast_as_it_is():
    constant = np.full((1, 30, 1), 4.0)
    assert LinearAutoregression.fit(constant, lags=3).forecast(constant, 4) == pytest.approx(4)


def test_a_history_with_gaps_is_refused():
    with pytest.raises(AssertionError, match="no gaps"):
        forecast_persistence(np.full((1, 3, 1), np.nan), 2)
