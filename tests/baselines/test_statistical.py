"""Automatic models against statsforecast used directly, and without it."""

import sys

import numpy as np
import pytest
from statsforecast import models

from seqloom.baselines.statistical import statistical
from seqloom.errors import MissingExtra


def series() -> np.ndarray:
    draw = np.random.default_rng(0)
    steps = np.arange(60)
    return np.stack([np.sin(steps / 3) + draw.normal(0, 0.1, 60), draw.normal(0, 1, 60).cumsum()], 1)


@pytest.mark.parametrize("kind", ["AutoETS", "AutoARIMA"])
def test_forecasts_after_training_are_those_of_the_fitted_model(kind):
    training = series()
    forecasts = statistical(kind, training, [training, training[:-5]], 4)
    assert forecasts.shape == (2, 4, 2)
    for variable in range(2):
        model = getattr(models, kind)(season_length=1).fit(np.ascontiguousarray(training[:, variable]))
        assert forecasts[0, :, variable] == pytest.approx(model.predict(4)["mean"], abs=1e-4)
    assert not np.allclose(forecasts[0], forecasts[1])


def test_without_statsforecast_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    with pytest.raises(MissingExtra, match=r"seqloom\[forecast\]"):
        statistical("AutoETS", series(), [series()], 2)
