"""What else is tried on the test part of a forecast, where the product itself has no such baseline."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqloom.arrays import Doubles
from seqloom.baselines.numbers import fill_gaps
from seqloom.data.formats.series import Series
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.series_datasets import read_histories
from seqloom.metrics.score import ratio, score_sums
from seqloom.runs.run import load, train
from seqloom.tasks.forecast_baselines import choose_block_size, make_blocks


class Rival(NamedTuple):
    scores: dict[str, float]  # by the name of the run's own score
    note: str = ""


def statistician(folder: Path) -> Rival:
    """AutoETS with a season of a week, fitted on the training series, then applied to all that came before a window."""
    run = load(folder)
    task, prepared = run.task.declaration.prepare(run.recipe, lambda line: None)
    windows, [training] = prepared.parts["test"], prepared.training
    count = len(task.fields["series"].variables)
    past = [fill_gaps(windows.panel.values[: start + windows.context], np.zeros(count)) for start in windows.starts]
    said = auto_ets(prepared.scale.apply(training.values), past, windows.horizon, 7)
    errors = np.nanmean(np.abs(said - windows.targets()) * prepared.scale.spread, (0, 1))
    return Rival(
        {f"MAE of {name}": float(error) for name, error in zip(task.fields["series"].variables, errors, strict=True)}
    )


def auto_ets(training: Doubles, histories: Sequence[Doubles], horizon: int, season: int) -> Doubles:
    """Forecasts (N, H, V) after each history (T, V): a model a variable, fitted once and applied to every history."""
    from statsforecast.models import AutoETS

    forecasts = np.empty((len(histories), horizon, training.shape[1]))
    for variable in range(training.shape[1]):
        model = AutoETS(season_length=season).fit(np.ascontiguousarray(training[:, variable], np.float64))
        for row, history in enumerate(histories):
            past = np.ascontiguousarray(history[:, variable], np.float64)
            forecasts[row, :, variable] = model.forward(past, horizon)["mean"]
    return forecasts


def forward_filled(folder: Path) -> Rival:
    """A GRU of the same settings that is given the last values in place of missing ones, as if they were new."""
    run = load(folder)
    recipe = run.recipe
    [series] = read_histories(recipe.data.train[0], recipe.data, SkippedRows())
    carried = fill_gaps(series.values, np.zeros(series.values.shape[1]))
    whole = Series(series.name, series.times, carried, series.columns, 0, series.step)
    with tempfile.TemporaryDirectory() as place:
        list(train(recipe.override("data.train=[]", "model.kind=gru"), Path(place) / "run", examples=whole))
        other = load(Path(place) / "run")
        errors = []
        for one, given in ((run, series), (other, whole)):
            _, prepared = one.task.declaration.prepare(one.recipe, lambda line: None, given)
            windows = prepared.parts["test"]
            rows = windows.starts[:, None] + np.arange(windows.context, windows.context + windows.horizon)
            said = one.task.shape.point(one.task.shape.forecast(one.model, windows))[..., 0]
            said = said * prepared.scale.spread[0] + prepared.scale.mean[0]
            errors.append(np.abs(said - series.values[rows, 0]))
    less = make_blocks((errors[0] - errors[1])[..., None], choose_block_size(len(rows), windows))[..., 0]
    sums = np.stack([np.nansum(less, 1), (~np.isnan(less)).sum(1)], 1)
    score = score_sums(sums, ratio, "lower", "", intervals=True)
    assert score.interval is not None
    low, high = score.interval
    note = f"MAE less that of forward fill and GRU, on the same hours: {score.value:+.2f} ({low:+.2f} to {high:+.2f})."
    return Rival({"MAE": float(np.nanmean(errors[1]))}, note)


RIVALS = {"AutoETS": statistician, "forward fill and GRU": forward_filled}
