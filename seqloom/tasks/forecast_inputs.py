"""What a forecaster reads of a window, and the way back from its forecasts. Numbers in, numbers out: knows no network.

A window (context, D) holds the variables to forecast, then further inputs, with NaN where a value is missing. What is
read of it depends on nothing but these rows, so a forecast is the same wherever they come from.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Doubles, Singles
from ..baselines.numbers import fill_gaps
from ..data.windows import count_since_observed

FLATTEST = 1e-2  # the spread of a window that hardly moves


class WindowInputs(NamedTuple):
    inputs: Singles  # (rows, elements, features)
    level: Singles  # (N, 1, variables): what the window is read relative to
    spread: Singles  # (N, 1, variables)


class ForecastInputs(NamedTuple):
    """How windows are read: relative to what, with which of the features, each variable alone or all together."""

    variables: int  # to forecast
    inputs: int  # that are read besides
    calendar: int  # features that say when
    decays: bool  # whether the reader wants to know of every number if it was there, and for how long not
    gaps: bool  # whether values are missing in training
    relative: str  # none, last or mean
    alone: bool  # whether each variable is a row of its own
    span: int  # rows that are read as one element

    @property
    def features(self) -> int:
        """The number of features of one element."""
        numbers = (1 if self.alone else self.variables) + self.inputs
        if self.decays:
            return 3 * (numbers + self.calendar)
        return self.span * (numbers * (3 if self.gaps else 1) + self.calendar)

    def read(self, values: Singles, calendar: Singles) -> WindowInputs:
        """Windows (N, T, D) and when they were (N, T, F), as they are read."""
        observed = ~np.isnan(values)
        level, spread = self.frame(values, observed)
        values = ((values - level) / spread).astype(np.float32)
        ages = np.log1p(count_since_observed(values)).astype(np.float32)
        carried = fill_gaps(values, np.zeros(values.shape[-1])).astype(np.float32)
        fields = [carried, observed.astype(np.float32), ages]
        if self.alone:
            fields = [self.separate_variables(field) for field in fields]
            calendar = np.repeat(calendar, self.variables, 0)
        if self.decays:  # when it is, is always known
            certain = [calendar, np.ones_like(calendar), np.zeros_like(calendar)]
            read = [part for pair in zip(fields, certain, strict=True) for part in pair]
        else:
            read = [*(fields if self.gaps else fields[:1]), calendar]
        inputs = np.concatenate(read, -1)
        rows, steps, _ = inputs.shape
        inputs = inputs.reshape(rows, steps // self.span, -1)
        return WindowInputs(inputs, level[..., : self.variables], spread[..., : self.variables])

    def frame(self, values: Singles, observed: NDArray[np.bool_]) -> tuple[Singles, Singles]:
        """The level and the spread (N, 1, D) that a window is read relative to, from what was observed of it."""
        level = np.zeros_like(values[:, :1])
        if self.relative == "none":
            return level, np.ones_like(level)
        if self.relative == "last":
            return fill_gaps(values, np.zeros(values.shape[-1]))[:, -1:].astype(np.float32), np.ones_like(level)
        count = np.maximum(observed.sum(1, keepdims=True), 1)
        level = np.where(observed, values, 0).sum(1, keepdims=True) / count
        squares = np.where(observed, values - level, 0) ** 2
        spread = np.sqrt(squares.sum(1, keepdims=True) / count + FLATTEST**2)
        return level.astype(np.float32), spread.astype(np.float32)

    def separate_variables(self, field: Singles) -> Singles:
        """(N, T, D) to (N × variables, T, 1 + inputs): each variable, and the inputs beside it."""
        rows, steps, _ = field.shape
        own = field[..., : self.variables].swapaxes(1, 2)[..., None]
        shared = np.broadcast_to(field[:, None, :, self.variables :], (rows, self.variables, steps, self.inputs))
        return np.concatenate([own, shared], -1).reshape(rows * self.variables, steps, 1 + self.inputs)

    def target(self, window: WindowInputs, targets: Singles) -> Singles:
        """What follows (N, H, D), as it is to be forecast: (rows, H, channels)."""
        scaled = ((targets[..., : self.variables] - window.level) / window.spread).astype(np.float32)
        return scaled.swapaxes(1, 2).reshape(-1, scaled.shape[1], 1) if self.alone else scaled

    def restore(self, window: WindowInputs, forecasts: Singles) -> Doubles:
        """What was forecast (rows, H, channels, levels) on the scale of the windows: (N, H, variables, levels)."""
        if self.alone:
            forecasts = forecasts.reshape(-1, self.variables, forecasts.shape[1], forecasts.shape[-1]).swapaxes(1, 2)
        return forecasts.astype(np.float64) * window.spread[..., None] + window.level[..., None]
