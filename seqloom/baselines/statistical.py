"""Exponential smoothing and ARIMA, chosen by themselves: what a statistician tries first (through statsforecast).

Needs the extra `forecast`, loaded only when asked. A model is fitted once, on the training series, and then applied to
each history as it stands, which is what makes a forecast from every day of a test part affordable.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles
from ..errors import MissingExtra

Kind = Literal["AutoETS", "AutoARIMA"]


def statistical(
    kind: Kind, training: ArrayLike, load_series_by_part: Sequence[ArrayLike], horizon: int, season: int = 1
) -> Doubles:
    """Forecasts (N, H, V) of the steps after each history (T, V), each variable by a model of its own.

    A history reaches as far back as it likes; the training series itself is one that ends where training ends.
    """
    series = np.asarray(training, dtype=np.float64)
    given = [np.asarray(history, dtype=np.float64) for history in load_series_by_part]
    assert series.ndim == 2 and all(one.ndim == 2 for one in given), "series of steps × variables"
    forecasts = np.empty((len(given), horizon, series.shape[1]))
    for variable in range(series.shape[1]):
        model = _model(kind, season).fit(np.ascontiguousarray(series[:, variable]))
        for row, history in enumerate(given):
            past = np.ascontiguousarray(history[:, variable])
            forecasts[row, :, variable] = model.forward(past, horizon)["mean"]
    return forecasts


def _model(kind: Kind, season: int) -> Any:
    try:
        from statsforecast import models
    except ImportError:
        raise MissingExtra("statsforecast", "forecast") from None
    return {"AutoETS": models.AutoETS, "AutoARIMA": models.AutoARIMA}[kind](season_length=season)
