"""Forecasts of real series against baselines and published marks: ETTh1, Delhi, Beijing (in SEQLOOM_DATA)."""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from seqloom.baselines.numbers import filled
from seqloom.baselines.statistical import statistical
from seqloom.metrics.score import ratio, score_sums
from seqloom.recipe import Recipe
from seqloom.runs import Run, load, train
from seqloom.tasks.rivals import block, blocked

DATA = Path(os.environ.get("SEQLOOM_DATA", "../shared/data"))
ETT = [
    *(f"data.train={DATA / 'ett' / 'ETTh1.csv.gz'}", "data.time=date", "data.context=336", "data.horizon=96"),
    *("data.season=24", "data.train_rows=8640", "data.validation_rows=2880", "data.test_rows=2880"),
    *("model.quantiles=[]", "model.relative=last", "model.alone=true"),
]
LINEAR = ["model.kind=linear", "train.batch=10752", "train.rate=2e-3", "train.steps=1500"]
PATCHED = [
    "model.kind=gru",
    "model.span=24",
    "model.size=128",
    "train.batch=448",
    "train.rate=1e-3",
    "train.steps=800",
]
BEIJING = [
    *("data.time=year,month,day,hour", "data.variables=pm2.5", "data.inputs=DEWP,TEMP,PRES,Iws,Is,Ir"),
    *("data.train_rows=26304", "data.validation_rows=8760", "data.test_rows=8760", "data.season=24"),
    *("data.context=72", "data.horizon=24", "data.calendar=true", "model.relative=none", "model.size=64"),
    *("train.batch=4608", "train.rate=2e-3", "train.steps=700"),
]
DELHI = [
    f"data.train={DATA / 'delhi_climate' / 'DailyDelhiClimateTrain.csv'}",
    f"data.test={DATA / 'delhi_climate' / 'DailyDelhiClimateTest.csv'}",
    *("data.time=date", "data.variables=meantemp,humidity"),
]


def trained(name: str, *overrides: str, examples: object = None) -> Run:
    began = time.perf_counter()
    folder = Path(tempfile.mkdtemp()) / "run"
    recipe = Recipe.read(name).changed("data.sample", "") if Recipe.read(name).data.sample else Recipe.read(name)
    best = min(
        (record.scores["loss"], record.step)
        for record in train(recipe.override(*overrides), folder, examples=examples)
        if record.scores
    )
    size = sum(parameter.numel() for parameter in load(folder).model.parameters())
    print(
        f"  {size:,} parameters, {time.perf_counter() - began:.0f} s, best validation {best[0]:.4f} at step {best[1]}"
    )
    return load(folder)


def show(run: Run) -> None:
    for name, score in run.scores["scores"].items():
        rivals = ", ".join(f"{rival} {value:.3f}" for rival, value in score["baselines"].items())
        low, high = score["interval"]
        print(f"  {name}: {score['value']:.3f} ({low:.3f} – {high:.3f}); {rivals}", flush=True)


def ett(*more: str) -> None:
    print("ETTh1, 96 hours ahead, all seven variables; marks: MSE 0.375 (linear), 0.40 (any other)")
    for settings in [more] if more else (LINEAR, PATCHED):
        print(" ", *settings)
        show(trained("forecast", *ETT, *settings))


def delhi(*more: str) -> None:
    print("Delhi, 7 days ahead")
    run = trained("climate", *DELHI, *more)
    show(run)
    task, prepared = type(run.task).prepare(run.recipe, lambda line: None)
    windows, [training] = prepared.parts["test"], prepared.training
    past = [filled(windows.panel.values[: start + windows.context], np.zeros(2)) for start in windows.starts]
    said = statistical("AutoETS", prepared.scale.apply(training.values), past, windows.horizon, 7)
    errors = np.nanmean(np.abs(said - windows.targets()) * prepared.scale.spread, (0, 1))
    print("  AutoETS: " + ", ".join(f"MAE of {n} {e:.3f}" for n, e in zip(task.facts.variables, errors, strict=True)))


def beijing(*more: str) -> None:
    """A GRU-D, a GRU with a mask and ages, and a GRU that is given the last values as if they were new."""
    from seqloom.data.histories import read_histories
    from seqloom.data.readers import Skipped
    from seqloom.data.series import Series

    print("Beijing, PM2.5, 24 hours ahead")
    recipe = Recipe.read("gaps").changed("data.sample", "").override(*BEIJING)
    [series] = read_histories(str(DATA / "beijing_pm25" / "pollution.csv.gz"), recipe.data, Skipped())
    carried = filled(series.values, np.zeros(series.values.shape[1]))
    whole = Series(series.name, series.times, carried, series.columns, 0, series.step)
    errors = {}
    for name, kind, given in (("gru-d", "gru-d", series), ("mask", "gru", series), ("forward fill", "gru", whole)):
        print(f"  {name}")
        run = trained("gaps", *BEIJING, f"model.kind={kind}", *more, examples=given)
        show(run)
        _, prepared = type(run.task).prepare(run.recipe, lambda line: None, given)
        windows = prepared.parts["test"]
        rows = windows.starts[:, None] + np.arange(windows.context, windows.context + windows.horizon)
        said = run.task.point(run.task.forecast(run.model, windows))[..., 0]
        said = said * prepared.scale.spread[0] + prepared.scale.mean[0]
        errors[name] = np.abs(said - series.values[rows, 0])
        errors["persistence"] = np.abs(
            carried[windows.starts + windows.context - 1, 0][:, None] - series.values[rows, 0]
        )
    size = block(len(rows), windows)
    for name in ("mask", "forward fill", "persistence"):
        less = blocked((errors["gru-d"] - errors[name])[..., None], size)[..., 0]
        sums = np.stack([np.nansum(less, 1), (~np.isnan(less)).sum(1)], 1)
        score = score_sums(sums, ratio, "lower", "", intervals=True)
        print(f"  MAE of gru-d less that of {name}: {score.value:.3f} {score.interval}")


if __name__ == "__main__":
    rows = {"ett": ett, "delhi": delhi, "beijing": beijing}
    for name in sys.argv[1:2] or rows:
        rows[name](*sys.argv[2:])
