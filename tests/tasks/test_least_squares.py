"""A linear forecaster begins at least squares: its forecasts are those of scikit-learn and of the autoregression."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from seqloom.baselines.numbers import LinearAutoregression
from seqloom.tasks.least_squares import PENALTIES, Moments, choose_maps, read_windows, unroll
from tests.preparing import prepare_task

from ..recipes import forecasting, walks

CONTEXT, HORIZON = 8, 3


def prepare(*changes, values=None):
    recipe = forecasting("model.kind=linear", "model.quantiles=[]", *changes)
    return prepare_task(recipe, lambda line: None, walks(missing=0.0) if values is None else values)


def build(task):
    said = []
    model = task.shape.build().eval()
    task.initialize(model, said.append)
    return model, said


def regress(history, after, penalty):
    """What scikit-learn forecasts from what is read relative to its last value, for windows (N, T) of one variable."""
    ways, ahead = history - history[:, -1:], after - history[:, -1:]
    strength = penalty * ((ways - ways.mean(0)) ** 2).sum() / ways.shape[1]
    fitted = Ridge(alpha=strength).fit(ways, ahead)
    return lambda given: fitted.predict(given - given[:, -1:]) + given[:, -1:]


def choose(history, after, validation):
    """The forecasts of the penalty that is best on validation, for windows (N, T, V), and whether by all together."""
    fits = []
    for penalty in PENALTIES:
        one = [regress(history[..., v], after[..., v], penalty) for v in range(history.shape[-1])]
        fits.append(lambda given, one=one: np.stack([f(given[..., v]) for v, f in enumerate(one)], -1))
    return min(fits, key=lambda forecast: np.mean((forecast(validation[0]) - validation[1]) ** 2))


def stack(values):
    return values.transpose(0, 2, 1).reshape(-1, values.shape[1], 1)


def test_an_autoregression_is_one_linear_map_of_its_window():
    chance = np.random.default_rng(0)
    series = chance.normal(size=(200, 3)).cumsum(0)
    fitted = LinearAutoregression.fit(series, lags=5)
    history = chance.normal(size=(4, 9, 3))
    assert np.allclose(unroll(fitted, 9, 6).forecast(history), fitted.forecast(history, 6))


@pytest.mark.parametrize("penalty", PENALTIES)
def test_regressions_are_those_of_scikit_learn_for_each_variable_and_for_all_together(penalty):
    task, prepared = prepare()
    history, after = read_windows(prepared.parts["train"], 2)
    moments = Moments.of(prepared.parts["train"], 2)
    for variable in range(2):
        expected = regress(history[..., variable], after[..., variable], penalty)(history[:5, :, variable])
        assert np.allclose(moments.regress(penalty).forecast(history[:5])[..., variable], expected)
    together = regress(stack(history)[..., 0], stack(after)[..., 0], penalty)
    found = moments.pool().regress(penalty).forecast(history[:5, :, :1])
    assert np.allclose(found[..., 0], together(history[:5, :, 0]))


@pytest.mark.parametrize(
    "changes",
    [
        "model.relative=none",
        "model.relative=last",
        "model.relative=last model.channel_independent=true",
        "model.relative=none model.channel_independent=true model.patch_length=4",
        "model.relative=none data.calendar=false model.patch_length=2",
    ],
)
def test_a_linear_forecaster_begins_with_their_mean(changes):
    task, prepared = prepare(*changes.split())
    model, [sentence] = build(task)
    train, validation, test = (read_windows(prepared.parts[part], 2) for part in ("train", "validation", "test"))
    pooled = choose(*map(stack, train), tuple(map(stack, validation)))
    expected = [np.stack([pooled(test[0][..., v : v + 1])[..., 0] for v in range(2)], -1)]
    alone, levels = "independent=true" in changes, "relative=none" in changes
    if not alone:
        expected.append(choose(*train, validation)(test[0]))
        facts = task.facts
        known = LinearAutoregression(np.array(facts.weights)[..., None], np.array(facts.center))
        expected += [known.forecast(test[0], HORIZON)] if levels else []
    found = task.shape.forecast(model, prepared.parts["test"])[..., 0]
    assert np.allclose(found, np.mean(expected, 0), atol=1e-4)
    assert ("autoregression" in sentence) == (levels and not alone) and "chosen on validation" in sentence


def test_gaps_do_not_count_and_are_read_as_filled():
    values = walks(missing=0.0)
    values[::7, 0] = np.nan
    task, prepared = prepare("model.relative=none", values=values)
    model, _ = build(task)
    train, test = prepared.parts["train"], prepared.parts["test"]
    history, after = read_windows(train, 2)
    whole = ~np.isnan(after[..., 0]).any(1)
    expected = regress(history[whole, :, 0], after[whole, :, 0], 0.1)(history[:5, :, 0])
    assert np.allclose(Moments.of(train, 2).regress(0.1).forecast(history[:5])[..., 0], expected)
    given = read_windows(test, 2)[0]
    filled = test.panel.values.copy()
    for row in range(1, len(filled)):
        filled[row] = np.where(np.isnan(filled[row]), filled[row - 1], filled[row])
    first = int(test.starts[0])
    assert np.allclose(given[0][1:], filled[first + 1 : first + CONTEXT])
    assert np.isfinite(task.shape.forecast(model, test)).all()


def test_quantiles_lie_around_the_forecast_as_validation_does():
    task, prepared = prepare("model.relative=none", "model.quantiles=[0.1,0.5,0.9]")
    model, _ = build(task)
    windows = prepared.parts["validation"]
    forecasts, after = task.shape.forecast(model, windows), windows.targets().astype(np.float64)
    errors = after - forecasts[..., 1]
    spread = np.quantile(errors, [0.1, 0.9], axis=0)  # of each step and variable
    assert np.allclose((forecasts - forecasts[..., 1:2])[0, ..., 0], np.minimum(spread[0], 0), atol=1e-4)
    assert np.allclose((forecasts - forecasts[..., 1:2])[0, ..., 2], np.maximum(spread[1], 0), atol=1e-4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("model.relative=mean", "no linear function"),
        ("model.hidden=4", "model.hidden puts a layer"),
        ("model.bias=false", "model.bias is false"),
    ],
)
def test_what_cannot_begin_so_says_why(change, reason):
    task, _ = prepare(change)
    _, [sentence] = build(task)
    assert sentence.startswith("model.least_squares begins nothing") and reason in sentence
    task, _ = prepare("model.least_squares=false")
    assert build(task)[1] == []


def test_a_variable_that_never_moves_stays_where_it_is():
    task, prepared = prepare(values=np.stack([np.full(160, 3.0), walks(missing=0.0)[:, 0]], 1))
    moments = Moments.of(prepared.parts["train"], 2)
    history, after = read_windows(prepared.parts["validation"], 2)
    maps, _ = choose_maps(moments, history, after)
    assert np.allclose(maps.forecast(history)[..., 0], history[:, -1:, 0])


def test_the_defaults_hold_their_own_beside_every_baseline(typed, tmp_path):
    """Two variables of hours with a day in them and an echo of the hour before, made of nothing but linear maps."""
    chance = np.random.default_rng(3)
    rows, noise = 900, chance.normal(size=(900, 2))
    level = np.zeros((rows, 2))
    for row in range(1, rows):
        level[row] = 0.8 * level[row - 1] + noise[row]
    values = level + 3 * np.sin(np.arange(rows) * 2 * np.pi / 24)[:, None]
    hours = np.datetime64("2024-01-01T00", "h") + np.arange(rows)
    lines = [f"{str(hour).replace('T', ' ')}:00,{a:.4f},{b:.4f}" for hour, (a, b) in zip(hours, values, strict=True)]
    (tmp_path / "hours.csv").write_text("\n".join(["time,a,b", *lines]) + "\n")
    _, told, code = typed("train", "forecast", "data.train=hours.csv", "data.time=time", "--into", "run")
    assert code == 0 and "the linear forecaster begins with the mean of" in told
    [scores] = (one["scores"] for one in json.loads(typed("score", "run", "--json")[0]))
    for name in ("MSE (scaled)", "MAE (scaled)", "quantile loss (scaled)"):
        baselines = dict(scores[name]["baselines"])
        linear = baselines.pop("linear autoregression")  # which is what made them: nothing can be much better
        assert scores[name]["value"] < min(baselines.values()) and scores[name]["value"] < 1.02 * linear
