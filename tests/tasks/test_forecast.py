"""Forecasts see the past alone, on a scale of training alone; windows, gaps, kinds, scores and answers."""

import json
from collections.abc import Sequence

import numpy as np
import pandas
import pytest
import torch

from seqloom import metrics
from seqloom.architectures import ARCHITECTURES
from seqloom.baselines.numbers import LinearAutoregression
from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.data.samples import SERIES
from seqloom.data.series_windows import prepare
from seqloom.errors import DataError
from seqloom.layers.heads import Mean, Quantiles
from seqloom.runs.run import load, train
from seqloom.tasks.forecast_baselines import make_blocks
from seqloom.tasks.forecast_inputs import ForecastInputs
from tests.preparing import prepare_task, restore_task

from ..recipes import forecasting, walks

CONTEXT, HORIZON = 8, 3


def silent(line: str) -> None:
    pass


# --- what a forecaster may know ---


@pytest.mark.parametrize("kind", [kind for kind in ARCHITECTURES if kind != "bag"])
@pytest.mark.parametrize("more", ["model.relative=last", "model.relative=mean model.channel_independent=true"])
def test_what_comes_after_the_last_row_read_never_changes_a_forecast(kind, more):
    values = walks()
    recipe = forecasting(f"model.kind={kind}", "data.inputs=variable 2", *more.split())
    task, prepared = prepare_task(recipe, silent, pandas.DataFrame(values, columns=["variable 1", "variable 2"]))
    torch.manual_seed(0)
    model = task.shape.build().eval()
    assert model.encoder.layer.causal
    window = prepared.parts["test"][2:3]
    before = task.shape.forecast(model, window)
    panel, origin = window.panel, int(window.starts[0]) + CONTEXT
    panel.values[origin:] = 99
    assert np.array_equal(task.shape.forecast(model, window), before)
    panel.values[origin - 1] = 7  # and the last row read does, so the first half of the test says something
    assert not np.array_equal(task.shape.forecast(model, window), before)


def test_nothing_that_is_learned_from_data_has_seen_validation_or_test():
    values = walks()
    task, prepared = prepare_task(forecasting(), silent, values)
    end = round(0.8 * len(values))
    changed = values.copy()
    changed[end:] = 1e6
    assert prepare_task(forecasting(), silent, changed)[0].to_json() == task.to_json()
    changed = values.copy()
    changed[end - 1] = 1e6  # the last row of training
    assert prepare_task(forecasting(), silent, changed)[0].to_json() != task.to_json()
    rows = values[:end]
    assert np.allclose(task.fields["series"].scale.mean, np.nanmean(rows, 0)) and np.allclose(
        task.fields["series"].scale.spread, np.nanstd(rows, 0)
    )


def test_looking_ahead_is_refused_with_the_reason():
    with pytest.raises(Exception, match="may not see the future"):
        forecasting("model.bidirectional=true")


# --- windows ---


def test_windows_are_all_there_are_and_targets_stay_in_their_part():
    values = np.arange(100.0)[:, None]
    prepared = prepare(
        forecasting("data.validation_rows=20", "data.test_rows=10", "data.stride=2").data, silent, values
    )
    mean, spread = prepared.scale
    rows = {name: part.targets()[..., 0] * spread[0] + mean[0] for name, part in prepared.parts.items()}
    found = {name: np.rint(targets[:, 0]).astype(int).tolist() for name, targets in rows.items()}
    assert found["train"] == list(range(CONTEXT, 70 - HORIZON + 1, 2))
    assert found["validation"] == list(range(70, 90 - HORIZON + 1))
    assert found["test"] == list(range(90, 100 - HORIZON + 1))
    context = prepared.parts["validation"][0].context[:, 0] * spread[0] + mean[0]
    assert np.allclose(context, np.arange(70 - CONTEXT, 70))  # reaches back into training


def test_the_split_of_the_literature_gives_its_number_of_windows():
    rows = ("data.train_rows=8640", "data.validation_rows=2880", "data.test_rows=2880")
    data = forecasting(*rows, "data.context=336", "data.horizon=96").data
    parts = prepare(data, silent, np.random.default_rng(0).standard_normal(17420)).parts
    assert {name: len(part) for name, part in parts.items()} == {"train": 8209, "validation": 2785, "test": 2785}


def test_no_window_holds_rows_of_two_series():
    two = [np.full((60, 1), 1.0) + 0.01 * walks(60, 1, 0), np.full((50, 1), 9.0) + 0.01 * walks(50, 1, 0)]
    prepared = prepare(forecasting().data, silent, two)
    for part in prepared.parts.values():
        met = set()
        for window in part:
            both = np.concatenate(window) * prepared.scale.spread + prepared.scale.mean
            assert np.ptp(both) < 4
            met.add(bool(both.mean() > 5))
        assert met == {False, True}
    assert len(prepared.parts["train"]) == 48 + 40 - 2 * (CONTEXT + HORIZON - 1)


def test_parts_in_files_of_their_own_stand_for_themselves(tmp_path):
    for name, rows in (("train", 60), ("test", 20)):
        (tmp_path / f"{name}.csv").write_text("level\n" + "".join(f"{row}\n" for row in range(rows)))
    recipe = forecasting(f"data.train={tmp_path / 'train.csv'}", f"data.test={tmp_path / 'test.csv'}")
    parts = prepare(recipe.data, silent).parts
    assert len(parts["test"]) == 20 - CONTEXT - HORIZON + 1
    assert len(parts["train"]) == 54 - CONTEXT - HORIZON + 1


@pytest.mark.parametrize(
    ("values", "overrides", "sentence"),
    [
        (np.ones((15, 1)), [], "too few for a single window"),
        (np.full((99, 1), np.nan), [], "has no value in the training part"),
        (np.ones((99, 2)), ["data.variables=a"], "has 2 columns, but the recipe names 1"),
        (np.ones((99, 2)), ["data.calendar=true"], "has no dates"),
        (np.ones((9, 9, 9)), [], "rows × variables"),
        ("text", [], "a series is an array of numbers"),
        (np.ones((99, 1)), ["data.validation_rows=50", "data.test_rows=60"], "the series has 99"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(values, overrides, sentence):
    with pytest.raises(DataError, match=sentence):
        prepare_task(forecasting(*overrides), silent, values)


# --- what is read ---


def views() -> list[ForecastInputs]:
    return [
        ForecastInputs(2, 1, 2, decays, gaps, relative, alone, span)
        for decays, gaps, span in ((True, True, 1), (False, True, 2), (False, False, 4))
        for relative in ("none", "last", "mean")
        for alone in (False, True)
    ]


@pytest.mark.parametrize("view", views())
def test_what_is_told_about_a_window_leads_back_to_its_targets(view):
    chance = np.random.default_rng(1)
    values, calendar = chance.standard_normal((5, 8, 3)).astype(np.float32), np.zeros((5, 8, 2), np.float32)
    values[chance.random(values.shape) < 0.3] = np.nan
    targets = chance.standard_normal((5, 4, 3)).astype(np.float32)
    seen = view.read(values, calendar)
    assert seen.inputs.shape[1:] == (8 // view.span, view.features) and np.isfinite(seen.inputs).all()
    told = view.target(seen, targets)
    assert told.shape == ((10, 4, 1) if view.alone else (5, 4, 2))
    assert np.allclose(view.restore(seen, told[..., None])[..., 0], targets[..., :2], atol=1e-5)


def test_gaps_are_filled_from_before_with_a_mask_and_an_age():
    view = ForecastInputs(1, 0, 0, True, True, "none", False, 1)
    values = np.array([[[np.nan], [3], [np.nan], [np.nan], [5], [6]]], np.float32)
    filled, observed, age = view.read(values, np.zeros((1, 6, 0), np.float32)).inputs[0].T
    assert filled.tolist() == [0, 3, 3, 3, 5, 6]
    assert observed.tolist() == [0, 1, 0, 0, 1, 1]
    assert np.allclose(np.expm1(age), [1, 0, 1, 2, 0, 0])


def test_relative_to_mean_and_spread_a_window_has_none_of_its_own():
    values = 7 + 3 * np.random.default_rng(3).standard_normal((2, 50, 1)).astype(np.float32)
    values[:, 10:20] = np.nan
    read = ForecastInputs(1, 0, 0, True, True, "mean", False, 1).read(values, np.zeros((2, 50, 0), np.float32)).inputs
    for row in read:
        known = row[row[:, 1] == 1, 0]
        assert known.mean() == pytest.approx(0, abs=1e-4) and known.std() == pytest.approx(1, abs=1e-3)


def test_each_variable_alone_is_read_as_if_there_were_no_other():
    chance = np.random.default_rng(2)
    values, calendar = chance.standard_normal((3, 8, 2)).astype(np.float32), np.zeros((3, 8, 0), np.float32)
    together = ForecastInputs(2, 0, 0, False, False, "last", True, 2).read(values, calendar).inputs
    one = ForecastInputs(1, 0, 0, False, False, "last", True, 2)
    for variable in range(2):
        assert np.array_equal(together[variable::2], one.read(values[..., [variable]], calendar).inputs)


@pytest.mark.parametrize("make", [lambda: Mean(4, 3, 2), lambda: Quantiles(4, 3, 2, (0.2, 0.5, 0.7))])
def test_targets_that_are_not_known_are_left_out_of_the_loss_and_its_slope(make):
    torch.manual_seed(0)
    head, features, target = make(), torch.randn(5, 4), torch.randn(5, 3, 2)
    loss, count = head.loss(features[:2], target[:2])
    [slope] = torch.autograd.grad(loss, head.project.weight)
    gappy = target.clone()
    gappy[2:] = torch.nan
    again, number = head.loss(features, gappy)
    again.backward()
    assert torch.allclose(again, loss) and count == number == 12
    assert torch.allclose(head.project.weight.grad, slope)


def test_the_best_constant_of_a_quantile_head_is_the_quantile_of_the_data():
    torch.manual_seed(0)
    data, levels = torch.randn(2001, 1, 1), (0.1, 0.5, 0.8)
    head = Quantiles(1, 1, 1, levels)
    best = torch.tensor([torch.quantile(data, level) for level in levels])

    def loss(values: torch.Tensor) -> float:
        head.project.weight.data.zero_()
        head.project.bias.data = values
        return head.loss(torch.ones(2001, 1), data)[0].item()

    ends = list(zip(levels, best.tolist(), strict=True))
    pinballs = [max(q * (y - end), (q - 1) * (y - end)) for y in data.flatten().tolist() for q, end in ends]
    assert loss(best) == pytest.approx(sum(pinballs) / 3, rel=1e-4)
    for step in (-0.05, 0.05):
        for place in range(3):
            assert loss(best + step * torch.eye(3)[place]) > loss(best)
    said = head(torch.ones(1, 1))
    assert torch.allclose(head.sample(said, 0.0), said[..., 1])
    drawn = head.sample(said.expand(4000, 1, 1, 3))
    assert (drawn <= said[..., 1]).double().mean().item() == pytest.approx(0.5, abs=0.05)


# --- learning ---


def test_a_linear_map_finds_the_autoregression_that_made_a_series(tmp_path):
    chance, values = np.random.default_rng(0), np.zeros(3000)
    for row in range(2, 3000):
        values[row] = 0.6 * values[row - 1] - 0.3 * values[row - 2] + chance.standard_normal()
    recipe = forecasting(
        *("model.kind=linear", "model.quantiles=[]", "model.relative=none", "model.dropout=0"),
        *("data.context=4", "data.horizon=1"),
        *(
            "train.steps=250",
            "train.batch_tokens=2048",
            "train.learning_rate=0.03",
            "train.validate_every=250",
            "train.checkpoint_every=250",
        ),
    )
    list(train(recipe, tmp_path / "run", examples=values))
    run = load(tmp_path / "run")
    weights = run.model.head.project.weight[0].tolist()
    assert weights == pytest.approx([0, 0, -0.3, 0.6], abs=0.06)
    score = run.scores["scores"]["MSE (scaled)"]
    assert score["value"] == pytest.approx(score["baselines"]["linear autoregression"], rel=0.02)
    assert score["value"] < 0.9 * score["baselines"]["persistence"]


# --- scores ---


def test_scores_are_those_of_the_metrics_and_baselines_beside_them():
    values = walks(520, missing=0.1)  # the last block of windows is not full
    task, prepared = prepare_task(forecasting(), silent, values)
    torch.manual_seed(0)
    model, windows = task.shape.build().eval(), prepared.parts["test"]
    scores = task.score(model, windows)
    contexts, targets = windows.contexts()[0].astype(float), windows.targets().astype(float)
    said = task.shape.forecast(model, windows)
    mse = scores["MSE (scaled)"]
    assert mse.score.value == pytest.approx(metrics.mse(said[..., 1], targets).value)
    assert mse.score.missing == np.isnan(targets).sum()
    level = [[0.0, 0.0]] * len(contexts)  # there is one series, so its mean is that of all
    for name, season in (("persistence", 1), ("seasonal naive", 4)):
        expected = metrics.mse(last_known(contexts, season, level), targets).value
        assert mse.baselines[name] == pytest.approx(expected)
    spread = np.array(task.fields["series"].scale.spread)
    errors = (said[..., 1] - targets) * spread
    assert scores["MAE of variable 2"].score.value == pytest.approx(np.nanmean(np.abs(errors[..., 1])))
    assert scores["RMSE of variable 1"].score.value == pytest.approx(np.nanmean(errors[..., 0] ** 2) ** 0.5)
    rows = values[: round(0.8 * len(values))]
    unit = np.nanmean(np.abs(rows[4:] - rows[:-4]), 0)
    assert scores["MASE"].score.value == pytest.approx(np.nanmean(np.abs(errors) / unit))
    inside = (said[..., 0] <= targets) & (targets <= said[..., -1])
    assert scores["coverage"].score.value == pytest.approx(inside[~np.isnan(targets)].mean())
    levels = task.recipe.model.quantiles
    climate = np.stack([np.nanquantile((rows - task.fields["series"].scale.mean) / spread, q, 0) for q in levels], -1)
    known = ~np.isnan(targets)
    within = (climate[:, 0] <= targets) & (targets <= climate[:, -1])
    assert scores["coverage"].baselines == {"training quantiles": pytest.approx(within[known].mean(), abs=1e-6)}
    above = targets[..., None] - climate
    pinball = np.maximum(np.array(levels) * above, (np.array(levels) - 1) * above).mean(-1)
    told = scores["quantile loss (scaled)"].baselines["training quantiles"]
    assert told == pytest.approx(pinball[known].mean(), rel=1e-5)


def last_known(contexts: np.ndarray, season: int, level: Sequence[Sequence[float]]) -> np.ndarray:
    """The last season again, spelled out: of the same place in the season the last known value, or else the last known
    value of all, or else the level of the series."""
    said = np.zeros((len(contexts), HORIZON, contexts.shape[2]))
    for window, variable in np.ndindex(len(contexts), contexts.shape[2]):
        column = contexts[window, :, variable].tolist()
        known = [value for value in column if value == value]
        for step in range(HORIZON):
            there = [row for row in range(len(column)) if (len(column) + step - row) % season == 0]
            same = [column[row] for row in there if column[row] == column[row]]
            said[window, step, variable] = [level[window][variable], *known[-1:], *same[-1:]][-1]
    return said


def carried(column: np.ndarray, usual: float) -> list[float]:
    """A column without gaps: each takes the value before it, the first ones the usual one."""
    latest, found = usual, []
    for value in column.tolist():
        latest = value if value == value else latest
        found.append(latest)
    return found


def unlike() -> list[np.ndarray]:
    """Series that move by very different amounts around very different levels; the last one never moves."""
    chance, waves = np.random.default_rng(5), np.sin(np.arange(200) * np.pi / 2)[:, None]
    series = [100.0 * n + 10.0**n * (waves + 0.3 * chance.standard_normal((200, 1))) for n in range(3)]
    return [*series, np.full((200, 1), 7.0)]


def test_an_error_is_scaled_by_the_training_part_of_its_own_series():
    series = unlike()
    task, prepared = prepare_task(forecasting(), silent, series)
    torch.manual_seed(0)
    model, windows = task.shape.build().eval(), prepared.parts["test"]
    score = task.score(model, windows)["MASE"]
    said, targets = task.shape.forecast(model, windows)[..., 1], windows.targets().astype(float)
    contexts, spread = windows.contexts()[0].astype(float), task.fields["series"].scale.spread[0]
    each = len(windows) // 4  # the series are equally long
    scaled, rival = [], []
    for number, one in enumerate(series[:3]):
        training, own = one[:160], slice(number * each, (number + 1) * each)
        unit = np.abs(training[4:] - training[:-4]).mean()
        scaled.append(np.abs(said[own] - targets[own]).mean() * spread / unit)
        rival.append(np.abs(contexts[own][:, 4:7] - targets[own]).mean() * spread / unit)
    assert score.score.value == pytest.approx(np.mean(scaled), rel=1e-4)
    assert score.baselines["seasonal naive"] == pytest.approx(np.mean(rival), rel=1e-4)
    left = each * HORIZON  # of the series that never moves
    assert score.score.missing == left and f"{left:,} targets" in score.score.scale


def test_series_of_another_file_are_scaled_by_those_of_the_same_name(tmp_path):
    series = dict(zip("abcd", unlike(), strict=True))

    def table(names: str) -> str:
        rows = [f"{name},{row},{value}\n" for name in names for row, value in enumerate(series[name][:, 0])]
        (tmp_path / f"{names}.csv").write_text("id,time,value\n" + "".join(rows))
        return str(tmp_path / f"{names}.csv")

    columns = "data.series=id", "data.time=time", "data.variables=value"
    task, _ = prepare_task(forecasting(f"data.train={table('abd')}", *columns), silent)
    windows = task.shape.read_files([table("cb")])  # one is new, and one is known
    torch.manual_seed(0)
    model = task.shape.build().eval()
    score = task.score(model, windows)["MASE"].score
    each = len(windows) // 2
    errors = (
        np.abs(task.shape.forecast(model, windows)[each:, :, :, 1] - windows.targets()[each:])
        * task.fields["series"].scale.spread[0]
    )
    training = series["b"][:160]
    assert score.value == pytest.approx(errors.mean() / np.abs(training[4:] - training[:-4]).mean(), rel=1e-4)
    assert score.missing == each * HORIZON


def test_gaps_are_told_from_the_series_itself_and_not_from_all_of_them():
    series = unlike()
    chance = np.random.default_rng(6)
    for one in series:
        one[chance.random(one.shape) < 0.5] = np.nan
        one[:20] = np.nan
        one[170:180] = np.nan  # longer than a context: some windows know nothing at all
    task, prepared = prepare_task(forecasting(), silent, series)
    windows = prepared.parts["test"]
    contexts, mean, spread = (
        windows.contexts()[0].astype(float),
        task.fields["series"].scale.mean[0],
        task.fields["series"].scale.spread[0],
    )
    each = len(windows) // 4
    levels = np.repeat([(np.nanmean(one[:160]) - mean) / spread for one in series], each)
    said = task.facts.forecasts(windows, 1)
    assert np.isnan(contexts).all(1).any() and np.isnan(contexts[:, 0]).any()
    for name, season in (("persistence", 1), ("seasonal naive", 4)):
        assert said[name] == pytest.approx(last_known(contexts, season, levels[:, None]), abs=1e-5)
    scaled = [(one[:160, 0] - mean) / spread for one in series]
    whole = np.array([carried(one, np.nanmean(one)) for one in scaled])
    fitted = LinearAutoregression.fit(whole[..., None], CONTEXT)
    assert task.facts.weights[0] == pytest.approx(fitted.weights[0, :, 0], abs=1e-3)
    # A linear map reads, before the first known value, the mean of what the window knows.
    rivals, lags = task.facts, len(task.facts.weights[0])
    for window, context in enumerate(contexts[..., 0]):
        known = context[~np.isnan(context)]
        past = [value - rivals.center[0] for value in carried(context, known.mean() if len(known) else levels[window])]
        for _ in range(HORIZON):
            past.append(float(np.dot(rivals.weights[0], past[-lags:])))
        expected = np.array(past[-HORIZON:]) + rivals.center[0]
        assert said["linear autoregression"][window, :, 0] == pytest.approx(expected, abs=1e-5)


def test_neighboring_windows_are_drawn_together():
    cells = np.arange(14.0).reshape(7, 2, 1)
    blocks = make_blocks(cells, 3)
    assert blocks.shape == (3, 6, 1) and blocks[0, :, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.nansum(blocks) == cells.sum() and np.isnan(blocks).sum() == 4


# --- answers ---


@pytest.fixture(scope="module")
def daily(tmp_path_factory):
    """A run on a table with dates, and the table."""
    folder = tmp_path_factory.mktemp("daily")
    days = pandas.date_range("2020-01-01", periods=120)
    values = np.sin(np.arange(120) / 3)[:, None] * [1, 5] + [20, 50]
    frame = pandas.DataFrame(values, columns=["warmth", "wet"]).assign(date=days)
    frame.to_csv(folder / "days.csv", index=False)
    recipe = forecasting(
        f"data.train={folder / 'days.csv'}", "data.time=date", "data.calendar=true", "model.kind=linear"
    )
    list(train(recipe, folder / "run"))
    return folder, frame


def test_a_file_a_frame_and_an_array_give_the_same_forecast_with_its_times(daily, capsys):
    folder, frame = daily
    run = load(folder / "run")
    with pytest.raises(SystemExit) as ended:
        build_app()(["predict", str(folder / "run"), "--file", str(folder / "days.csv"), "--json"])
    assert ended.value.code == 0
    said = json.loads(capsys.readouterr().out)
    [answer] = said["predictions"]
    assert said["input"] == "days" and answer["times"] == ["2020-04-30", "2020-05-01", "2020-05-02"]
    [from_frame] = run.predict(frame.tail(CONTEXT))
    assert from_frame.values == answer["values"] and from_frame.quantiles == answer["quantiles"]
    assert set(answer["quantiles"]["wet"]) == {"0.1", "0.5", "0.9"}
    lines = from_frame.output.splitlines()
    assert lines[0].split() == ["warmth", "0.1", "–", "0.9", "wet", "0.1", "–", "0.9"] and len(lines) == 1 + HORIZON
    assert lines[1].startswith("2020-04-30") and f"{answer['values']['wet'][0]:.4g}" in lines[1]


def test_a_file_can_be_scored(daily):
    folder, _ = daily
    assert load(folder / "run").score(folder / "days.csv")["examples"] == 120 - CONTEXT - HORIZON + 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.tail(5), "has 5 rows, but a forecast is made from 8"),
        (lambda frame: "tomorrow?", "not a text"),
        (lambda frame: frame.drop(columns="wet"), "wet"),
        (lambda frame: frame[["warmth", "wet"]].to_numpy(), "has no dates"),
        (lambda frame: frame.assign(wet="much"), "row 0: .*a number was expected"),
    ],
)
def test_what_cannot_be_continued_is_refused(daily, change, sentence):
    folder, frame = daily
    with pytest.raises(DataError, match=sentence):
        load(folder / "run").predict(change(frame))


def test_a_table_with_other_steps_is_refused(daily, tmp_path):
    folder, frame = daily
    frame.iloc[::2].to_csv(tmp_path / "sparse.csv", index=False)
    with pytest.raises(DataError, match="a row every"):
        load(folder / "run").task.read_inputs(str(tmp_path / "sparse.csv"))


# --- samples ---


@pytest.mark.parametrize("name", SERIES)
def test_a_sample_is_the_same_every_time_and_long_enough(name):
    one, other = SERIES[name](), SERIES[name]()
    assert all(np.array_equal(a.values, b.values, equal_nan=True) for a, b in zip(one, other, strict=True))
    task, prepared = prepare_task(forecasting(f"data.sample={name}"), silent)
    assert task.fields["series"].gaps == (name != "ball") and min(map(len, prepared.parts.values())) > 30


def test_a_sample_of_texts_has_no_series_and_the_other_way_round():
    with pytest.raises(DataError, match="no series of numbers"):
        prepare_task(forecasting("data.sample=dates"), silent)

    with pytest.raises(DataError, match="which the task forecast reads"):
        prepare_task(Recipe().override("task=classify", "data.sample=ball").resolved(), silent)


def test_damaged_facts_are_refused():
    task, _ = prepare_task(forecasting(), silent, walks())
    saved = task.to_json()
    assert restore_task(task.recipe, saved).to_json() == saved
    series, facts = saved["fields"]["series"], saved["facts"]
    worse = ({"mean": [1.0]}, {"spread": ["x", "y"]}, {"more": 1})
    fields = [saved | {"fields": {"series": series | one}} for one in worse]
    baselines = [saved | {"facts": facts | one} for one in ({"center": []}, {"series": []}, {"more": 1})]
    for damaged in ({}, *fields, *baselines):
        with pytest.raises(Exception, match="task.json"):
            restore_task(task.recipe, damaged)
