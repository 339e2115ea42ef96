"""A linear forecaster that begins at least squares: with the mean of up to three linear maps of a window.

An autoregression of one row after the other, a ridge regression for each variable, and one for all of them together
err differently, and the mean of forecasts is known to err less than most of them (Bates and Granger, 1969). All are
linear in the window, so their mean is one linear map: the weights of the forecaster. Training then improves it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from ..arrays import Doubles
from ..baselines.numbers import LinearAutoregression, fill_gaps
from ..data.series_windows import Windows

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of a ridge regression, as a share of the variance of what it reads
MOST = 20_000  # windows that are regressed on
CHOSEN_ON = 1000  # windows of validation that a penalty is chosen on
CHUNK = 512  # windows


class LinearMaps(NamedTuple):
    """A map for each variable, from its context to what follows."""

    weights: Doubles  # (V, context, horizon)
    bias: Doubles  # (V, horizon)

    def forecast(self, history: Doubles) -> Doubles:
        """(N, context, V) to (N, horizon, V)."""
        return np.einsum("ncv,vch->nhv", history, self.weights, optimize=True) + self.bias.T


def read_windows(windows: Windows, variables: int) -> tuple[Doubles, Doubles]:
    """What was (N, context, V), its gaps filled, and what followed (N, horizon, V)."""
    history = windows.contexts()[0][..., :variables].astype(np.float64)
    filled = fill_gaps(history, np.zeros(variables)) if np.isnan(history).any() else history
    return filled, windows.targets()[..., :variables].astype(np.float64)


def pick_windows(windows: Windows, most: int) -> Windows:
    """No more than so many of them, evenly from all."""
    return windows.take(windows.starts[:: -(-len(windows) // most)])


def unroll(autoregression: LinearAutoregression, context: int, horizon: int) -> LinearMaps:
    """The same forecasts as one map: what each single value of the context does to all that follows."""
    center = autoregression.center
    still = np.tile(center, (1, context, 1))
    moved = still + np.eye(context)[..., None]
    effect = autoregression.forecast(moved, horizon) - center  # (context, horizon, V)
    weights = effect.transpose(2, 0, 1)
    return LinearMaps(weights, center[:, None] * (1 - weights.sum(1)))


class Moments(NamedTuple):
    """Sums over windows, of the ways from the last value of a window: what a regression needs to know."""

    counts: Doubles  # (V,)
    means: Doubles  # (V, context + horizon)
    products: Doubles  # (V, context, context + horizon), around the means

    @classmethod
    def of(cls, windows: Windows, variables: int) -> "Moments":
        """A window in which a value that follows is not known does not count for its variable."""
        size = windows.context + windows.horizon
        count, sums = np.zeros(variables), np.zeros((variables, size))
        products = np.zeros((variables, windows.context, size))
        for start in range(0, len(windows), CHUNK):
            history, after = read_windows(windows[start : start + CHUNK], variables)
            ways = np.concatenate([history, after], 1) - history[:, -1:]
            for variable, way in enumerate(ways.transpose(2, 0, 1)):
                known = way[~np.isnan(way).any(1)]
                count[variable] += len(known)
                sums[variable] += known.sum(0)
                products[variable] += known[:, : windows.context].T @ known
        return cls._center(count, sums, products)

    @classmethod
    def _center(cls, count: Doubles, sums: Doubles, products: Doubles) -> "Moments":
        means = sums / np.maximum(count, 1)[:, None]
        around = np.einsum("vc,vs->vcs", means[:, : products.shape[1]], sums)
        return cls(count, means, products - around)

    def pool(self) -> "Moments":
        """The moments of all variables together."""
        sums = self.means * self.counts[:, None]
        raw = self.products + np.einsum("vc,vs->vcs", self.means[:, : self.products.shape[1]], sums)
        return self._center(self.counts.sum(0, keepdims=True), sums.sum(0, keepdims=True), raw.sum(0, keepdims=True))

    def regress(self, penalty: float) -> LinearMaps:
        """The ridge regression of what follows; a variable that never moves stays where it is."""
        context = self.products.shape[1]
        maps, biases = [], []
        for means, products in zip(self.means, self.products, strict=True):
            inputs = products[:, :context]
            strength = penalty * np.trace(inputs) / context + np.finfo(np.float64).eps
            weights = np.linalg.solve(inputs + strength * np.eye(context), products[:, context:])
            biases.append(means[context:] - means[:context] @ weights)
            weights[-1] += 1 - weights.sum(0)  # the way from the last value begins there
            maps.append(weights)
        return LinearMaps(np.array(maps), np.array(biases))


def choose_maps(moments: Moments, history: Doubles, after: Doubles) -> tuple[LinearMaps, float]:
    """The regression, and its penalty, that forecasts best what followed on validation."""
    variables = history.shape[-1]

    def measure_error(penalty: float) -> float:
        own = moments.regress(penalty)
        maps = LinearMaps(*(np.broadcast_to(part, (variables, *part.shape[1:])) for part in own))
        return float(np.nanmean((maps.forecast(history) - after) ** 2))

    best = min(PENALTIES, key=measure_error) if not np.isnan(after).all() else 1.0
    parts = moments.regress(best)
    return LinearMaps(*(np.repeat(part, variables // len(part), 0) for part in parts)), best


def average(maps: Sequence[LinearMaps]) -> LinearMaps:
    return LinearMaps(*(np.mean(parts, 0) for parts in zip(*maps, strict=True)))


def fit_maps(
    train: Windows, validation: Windows, variables: int, alone: bool, known: LinearAutoregression | None
) -> tuple[LinearMaps, str]:
    """The mean of the maps that a forecaster can hold, and a sentence about them. If each variable is read `alone`, by
    the weights of all, only the regression for all together is; an autoregression is if the level is read."""
    moments = Moments.of(pick_windows(train, MOST), variables)
    history, after = read_windows(pick_windows(validation, CHOSEN_ON), variables)
    pooled, shared = choose_maps(moments.pool(), history, after)
    if alone:
        return pooled, f"a ridge regression (penalty {shared:g})"
    own, each = choose_maps(moments, history, after)
    maps = [own, pooled]
    names = f"ridge regressions for each variable (penalty {each:g}) and for all together ({shared:g})"
    if known is not None:
        maps.append(unroll(known, train.context, train.horizon))
        names = f"an autoregression and {names}"
    return average(maps), f"the mean of {names}"


def spread_residuals(maps: LinearMaps, validation: Windows, levels: Sequence[float]) -> Doubles:
    """How far from a forecast each quantile lies on validation, (horizon, V, levels); the median is the forecast."""
    history, after = read_windows(pick_windows(validation, CHOSEN_ON), len(maps.weights))
    errors = after - maps.forecast(history)
    pooled = np.nanquantile(errors, levels) if not np.isnan(errors).all() else np.zeros(len(levels))
    known = (~np.isnan(errors)).any(0)
    spread = np.tile(pooled, (*known.shape, 1))
    spread[known] = np.nanquantile(errors[:, known], levels, axis=0).T
    return np.where(np.isclose(levels, 0.5), 0.0, spread)


@torch.no_grad()
def begin_with(project: Any, maps: LinearMaps, spread: Doubles, alone: bool, features: int) -> None:
    """Set the weights of a head that reads whole windows, `features` numbers a row, the variables first."""
    variables, context, horizon = maps.weights.shape
    levels = spread.shape[-1]
    channels = 1 if alone else variables
    weight = np.zeros((horizon, channels, levels, context, features))
    bias = np.zeros((horizon, channels, levels))
    for channel in range(channels):
        weight[:, channel, :, :, channel] = maps.weights[channel].T[:, None]
        bias[:, channel] = maps.bias[channel][:, None]
    bias += spread.mean(1, keepdims=True) if alone else spread
    project.weight.copy_(torch.from_numpy(weight.reshape(project.weight.shape)))
    project.bias.copy_(torch.from_numpy(bias.reshape(-1)))
