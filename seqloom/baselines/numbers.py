"""Forecasts without learning, and the linear autoregression every forecaster is measured against.

Histories are (N, T, V): N windows of T steps of V variables; forecasts are (N, H, V) for the H steps that follow. They
have no gaps: `fill_gaps` carries the last known value on. Only the seasonal naive forecast reads gaps as they are:
what was carried on belongs to another part of the season. Scales, calendars and files are not known here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from ..arrays import Doubles


def fill_gaps(history: ArrayLike, otherwise: ArrayLike) -> Doubles:
    """Every gap (NaN) gets the last value before it, and at the beginning what it is `otherwise`: of its variable
    (V,), or of the variable in its window (N, 1, V)."""
    values = np.asarray(history, dtype=np.float64)
    steps = np.arange(values.shape[-2])[:, None]
    latest = np.maximum.accumulate(np.where(np.isnan(values), -1, steps), axis=-2)
    carried = np.take_along_axis(values, np.maximum(latest, 0), axis=-2)
    return np.where(latest < 0, np.asarray(otherwise, dtype=np.float64), carried)


def forecast_persistence(history: ArrayLike, horizon: int) -> Doubles:
    """Repeat the last value over the horizon."""
    return _repeat(_check_history(history)[:, -1:], horizon)


def forecast_seasonal_naive(history: ArrayLike, horizon: int, season: int) -> Doubles:
    """The last season again and again; the history may have gaps (NaN), though no variable may be missing altogether.

    Where the last season has a gap, the value at the same place of the season before counts, and so on; what is
    missing in every season takes the last known value of the history.
    """
    values = np.asarray(history, dtype=np.float64)
    assert values.ndim == 3 and values.shape[1] >= season, "windows × steps × variables, of at least one season"
    latest = fill_gaps(values, np.nan)[:, -1:]
    assert not np.isnan(latest).any(), "a value of each variable: see `fill_gaps`"
    early = np.full((len(values), -values.shape[1] % season, values.shape[2]), np.nan)
    seasons = np.concatenate([early, values], 1).reshape(len(values), -1, season, values.shape[2])
    last = fill_gaps(seasons.swapaxes(1, 2), latest[:, None])[:, :, -1]
    return last[:, np.arange(horizon) % season]


@dataclass(frozen=True)
class LinearAutoregression:
    """x_t = Σ w_k x_{t−k}, each variable for itself, around its mean in training.

    Direct: each step ahead has weights of its own. Recursive: there are weights for one step, and forecasts are read
    as if they had happened.
    """

    weights: Doubles  # (V, L, S): of the lags, the oldest first, for each of S steps ahead
    center: Doubles  # (V,)

    @classmethod
    def fit(cls, series: ArrayLike, lags: int, steps: int = 1, ridge: float = 1e-4) -> "LinearAutoregression":
        """Least squares on every stretch of a series (T, V), or of several (N, T, V), that has no gap.

        `steps` is the horizon for direct forecasts and 1 for recursive ones. `ridge` keeps the weights small where
        the lags say nearly the same; it is a share of their variance.
        """
        values = np.asarray(series, dtype=np.float64)
        values = values[None] if values.ndim == 2 else values
        assert values.ndim == 3 and values.shape[1] >= lags + steps, "series longer than the lags and steps together"
        center = np.nanmean(values, axis=(0, 1))
        weights = [
            _solve_least_squares(values[..., v] - center[v], lags, steps, ridge) for v in range(values.shape[-1])
        ]
        return cls(np.array(weights), center)

    def forecast(self, history: ArrayLike, horizon: int) -> Doubles:
        """The next `horizon` steps: at once if there are weights for them, otherwise one piece after another."""
        lags, steps = self.weights.shape[1:]
        known = _check_history(history)[:, -lags:] - self.center
        assert known.shape[1] == lags, "a history as long as the lags"
        for _ in range(-(-horizon // steps)):
            ahead = np.einsum("nlv,vls->nsv", known[:, -lags:], self.weights, optimize=True)
            known = np.concatenate([known, ahead], 1)
        return known[:, lags : lags + horizon] + self.center


def _solve_least_squares(values: Doubles, lags: int, steps: int, ridge: float) -> Doubles:
    """Weights (L, S) of one variable of several series (N, T)."""
    stretches = sliding_window_view(values, lags + steps, axis=1).reshape(-1, lags + steps)
    whole = stretches[~np.isnan(stretches).any(1)]
    assert len(whole), "a stretch without gaps, as long as the lags and steps together; fill the series first"
    products = whole.T @ whole
    inputs = products[:lags, :lags]
    # A variable that never changes has nothing to tell: the least that keeps the equations solvable is added.
    strength = ridge * np.trace(inputs) / lags + np.finfo(np.float64).tiny
    return np.linalg.solve(inputs + strength * np.eye(lags), products[:lags, lags:])


def _check_history(history: ArrayLike) -> Doubles:
    values = np.asarray(history, dtype=np.float64)
    assert values.ndim == 3 and values.shape[1], "windows × steps × variables, with at least one step"
    assert not np.isnan(values).any(), "no gaps: see `fill_gaps`"
    return values


def _repeat(last: Doubles, horizon: int) -> Doubles:
    return np.repeat(last, horizon, axis=1)
