"""The scores of forecasts, each beside what anyone could have forecast: the last value, the last season, a linear map.

Windows that follow one another share most of their rows, so they are resampled in blocks as long as the horizon: an
interval from single windows would be far too sure of itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from pydantic import FiniteFloat

from .. import metrics
from ..arrays import Doubles
from ..baselines.numbers import LinearAutoregression, fill_gaps, forecast_persistence, forecast_seasonal_naive
from ..config.recipe import Data
from ..data.formats.series import Series
from ..data.series_windows import SeriesScale, Windows
from ..metrics import Score
from ..schemas import JsonShape
from .results import ScoreWithBaselines
from .scoring import Metric, score_beside

LAGS = 200  # at most, of the linear autoregression
FITTED = 50_000  # rows at most that it is fitted on: the last ones of training
LISTED = 20  # variables at most that have scores of their own
CHUNK = 512  # windows
CLIMATE = "training quantiles"


class ForecastBaselines(JsonShape):
    """What baselines know of the training part."""

    season: int
    series: list[str]
    unit: list[list[FiniteFloat]]  # of each series, by variable: how far it is from itself a season earlier; 0 if never
    level: list[list[FiniteFloat]]  # of each series, by variable: its mean, on the scale of training
    weights: list[list[FiniteFloat]]  # of each variable, by lag, for the next row
    center: list[FiniteFloat]
    climate: list[list[FiniteFloat]] = []  # of each variable, its quantiles in training at the levels that are forecast

    @classmethod
    def fit(
        cls, training: Sequence[Series], scale: SeriesScale, variables: int, data: Data, levels: Sequence[float] = ()
    ) -> "ForecastBaselines":
        rows = [scale.apply(series.values)[-FITTED:, :variables].astype(np.float64) for series in training]
        level = [average_known(one, np.zeros(variables)) for one in rows]
        known = [fill_gaps(one, own) for one, own in zip(rows, level, strict=True)]
        lags, longest = min(data.context, LAGS), max(map(len, rows))
        stacked = np.full((len(rows), longest, variables), np.nan)
        for place, one in zip(stacked, known, strict=True):
            place[longest - len(one) :] = one
        fitted = LinearAutoregression.fit(stacked, lags)
        units = [measure_season(series.values[:, :variables], data.season) for series in training]
        return cls(
            season=data.season,
            series=[series.name for series in training],
            unit=[unit.tolist() for unit in units],
            level=[own.tolist() for own in level],
            weights=fitted.weights[..., 0].tolist(),
            center=fitted.center.tolist(),
            climate=measure_climate(np.concatenate(rows), levels) if len(levels) > 1 else [],
        )

    def look_up(self, windows: Windows, facts: list[list[float]]) -> Doubles:
        """What is known of the series that each window is cut from, (N, variables); 0 of one that training had not.

        Where training had a single series, whatever its name, every other one is taken to go on from it.
        """
        place = {name: number for number, name in enumerate(self.series)}
        numbers = [0 if len(self.series) == 1 else place.get(name, -1) for name in windows.panel.names]
        known = np.array([*facts, [0.0] * len(facts[0])])
        return known[np.array(numbers)[windows.series()]]

    def forecasts(self, windows: Windows, variables: int) -> dict[str, Doubles]:
        """What each of them forecasts, (N, horizon, variables)."""
        linear = LinearAutoregression(np.array(self.weights)[..., None], np.array(self.center))
        pieces_by_name: dict[str, list[Doubles]] = {}
        for start in range(0, len(windows), CHUNK):
            chunk = windows[start : start + CHUNK]
            values = chunk.contexts()[0][..., :variables].astype(np.float64)
            # Gaps are filled from the series itself: all of them together know nothing of where one of them stands.
            level = average_known(values, self.look_up(chunk, self.level))[:, None]
            values = np.where(np.isnan(values).all(1, keepdims=True), level, values)
            history = fill_gaps(values, level)
            forecast = {"persistence": forecast_persistence(history, windows.horizon)}
            if 1 < self.season <= windows.context:
                forecast["seasonal naive"] = forecast_seasonal_naive(values, windows.horizon, self.season)
            forecast["linear autoregression"] = linear.forecast(history, windows.horizon)
            for name, one in forecast.items():
                pieces_by_name.setdefault(name, []).append(one)
        return {name: np.concatenate(pieces) for name, pieces in pieces_by_name.items()}


def score_forecasts(
    point: Doubles,
    forecasts: Doubles,
    levels: Sequence[float],
    windows: Windows,
    scale: SeriesScale,
    names: Sequence[str],
    baselines: ForecastBaselines,
    others: dict[str, Doubles],
) -> dict[str, ScoreWithBaselines]:
    """All scores of forecasts (N, H, V), with quantiles (N, H, V, Q), on the scale of training and in its units."""
    variables = len(names)
    targets = windows.targets()[..., :variables].astype(np.float64)
    size = choose_block_size(len(windows), windows)
    truth, ours = make_blocks(targets, size), make_blocks(point, size)
    others = {name: make_blocks(one, size) for name, one in others.items()}
    padding = truth.size - targets.size

    def beside(metric: Metric, part: slice | int = slice(None)) -> ScoreWithBaselines:
        def measure(guess: Doubles, *, intervals: bool) -> Score:
            return metric(guess[..., part], truth[..., part], intervals=intervals)

        share = padding if isinstance(part, slice) else padding // variables
        return drop_padding(score_beside(measure, ours, others), share)

    scores = {"MSE (scaled)": beside(metrics.mse), "MAE (scaled)": beside(metrics.mae)}
    unit = np.broadcast_to((baselines.look_up(windows, baselines.unit) / scale.spread)[:, None], targets.shape)
    if (unit > 0).any():
        units = make_blocks(unit, size)
        scores["MASE"] = beside(partial(metrics.mase, scale=units))
    if len(levels) > 1:
        quantiles = make_blocks(forecasts, size)
        scores |= score_spread(quantiles, truth, others, levels, padding, np.array(baselines.climate))
    for place, name in enumerate(names) if variables <= LISTED else ():
        end = f" of {name}" if variables > 1 else ""
        spread = float(scale.spread[place])
        scores[f"MAE{end}"] = beside(scale_metric(metrics.mae, spread), place)
        scores[f"RMSE{end}"] = beside(scale_metric(metrics.rmse, spread), place)
    return scores


def score_spread(
    quantiles: Doubles,
    truth: Doubles,
    others: dict[str, Doubles],
    levels: Sequence[float],
    padding: int,
    climate: Doubles,
) -> dict[str, ScoreWithBaselines]:
    """How good the quantiles are; a baseline that forecasts one number forecasts it for all of them.

    Only the climate (V, Q), the quantiles of all training values, forecasts an interval: its coverage is the baseline.
    """

    def measure_loss(guess: Doubles, *, intervals: bool) -> Score:
        return metrics.quantile_loss(guess, truth, levels, intervals=intervals)

    def measure_coverage(guess: Doubles, *, intervals: bool) -> Score:
        return metrics.coverage(guess[..., 0], guess[..., -1], truth, nominal, intervals=intervals)

    nominal = levels[-1] - levels[0]
    repeated = {name: np.repeat(one[..., None], len(levels), -1) for name, one in others.items()}
    always = {CLIMATE: np.broadcast_to(climate, quantiles.shape)} if climate.size else {}
    scores = {
        "quantile loss (scaled)": score_beside(measure_loss, quantiles, repeated | always),
        "coverage": score_beside(measure_coverage, quantiles, always),
    }
    return {name: drop_padding(one, padding) for name, one in scores.items()}


def drop_padding(one: ScoreWithBaselines, padding: int) -> ScoreWithBaselines:
    """What fills up the last block is not missing."""
    return replace(one, score=replace(one.score, missing=one.score.missing - padding))


def measure_climate(values: Doubles, levels: Sequence[float]) -> list[list[float]]:
    """The quantiles of each variable of rows (T, V) that are known; a variable that never is has its mean, 0."""
    columns = [column[~np.isnan(column)] for column in values.T]
    return [np.quantile(one, levels).tolist() if len(one) else [0.0] * len(levels) for one in columns]


def measure_season(values: Doubles, season: int) -> Doubles:
    """How far a series (T, V) is from itself a season earlier; 0 if it is too short to say."""
    return metrics.seasonal_scale(values, season) if len(values) > season else np.zeros(values.shape[1])


def average_known(values: Doubles, otherwise: Doubles) -> Doubles:
    """The mean over time of series (…, T, V); of what is missing altogether, what it is `otherwise` (…, V)."""
    known = ~np.isnan(values)
    count = known.sum(-2)
    return np.where(count > 0, np.where(known, values, 0).sum(-2) / np.maximum(count, 1), otherwise)


def scale_metric(metric: Metric, spread: float) -> Metric:
    def measure(guess: Doubles, truth: Doubles, /, *, intervals: bool = True) -> Score:
        return metric(guess * spread, truth * spread, intervals=intervals)

    return measure


def choose_block_size(count: int, windows: Windows) -> int:
    """How many windows are drawn together; at least ten blocks are left to draw from, if there are ten windows."""
    return max(1, min(-(-windows.horizon // windows.apart), count // 10))


def make_blocks(cells: Doubles, size: int) -> Doubles:
    """(N, H, …) to (blocks, size × H, …); what fills up the last block is not known."""
    lack = -len(cells) % size
    full = np.concatenate([cells, np.full((lack, *cells.shape[1:]), np.nan)]) if lack else cells
    return full.reshape(-1, size * cells.shape[1], *cells.shape[2:])
