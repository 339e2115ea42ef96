"""Classes, calibration and forecasts: in scores.json, in the terminal, as views and in the report."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.look.charts.base import render
from seqloom.runs.run import Run, load, train

from ..recipes import forecasting, walks


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    rows = [f"{word} film,{label}" for word, label in (("good", "glad"), ("bad", "sad"), ("odd", "puzzled"))] * 12
    file = folder / "reviews.csv"
    file.write_text("\n".join(["text,label", *rows]) + "\n")
    files = [f"data.{part}={file}" for part in ("train", "validation", "test")]
    settings = ("data.source=text", "data.target=label", "model.kind=gru", "model.size=16", "train.steps=3")
    list(train(Recipe.read("classify", *files, *settings), folder / "run"))
    return folder


def test_classes_and_calibration_are_scored_told_and_drawn(labels, tmp_path, monkeypatch):
    run = load(labels / "run")
    score = run.scores["scores"]["accuracy"]
    assert list(score["classes"]) == ["glad", "puzzled", "sad"] and np.sum(score["confusion"]) == 36
    assert np.trace(score["confusion"]) / 36 == pytest.approx(score["value"])
    told = CliRunner().invoke(build_app(), ["score", str(labels / "run")])
    assert told.exit_code == 0 and "precision" in told.stdout and "puzzled" in told.stdout, told.output
    assert "expected calibration error" in told.stdout
    answer = CliRunner().invoke(build_app(), ["score", str(labels / "run"), "--json"])
    assert json.loads(answer.stdout)[0]["scores"]["accuracy"]["confusion"] == score["confusion"]
    look = run.look("good film")
    rows = json.loads(render(look.confusion(), ".json"))["datasets"].values()
    cells = {(one["true"], one["predicted"]): one["examples"] for data in rows for one in data if "predicted" in one}
    assert [[cells[i, j] for j in score["classes"]] for i in score["classes"]] == score["confusion"]
    monkeypatch.setattr(Run, "diagnose", lambda *_, **__: [])
    page = run.report(tmp_path / "page.html").read_text()
    assert "chart-confusion" in page and "chart-calibration" in page
    assert "one class per example" not in " ".join(look.missing.values())


def test_a_forecast_is_drawn_beside_the_truth_and_its_baselines(tmp_path, monkeypatch):
    recipe = forecasting().override("model.kind=gru", "model.size=8", "train.steps=2")
    list(train(recipe, tmp_path / "run", examples=walks()))
    run = load(tmp_path / "run")
    _, [example] = run.pick_examples(1, walks())
    look = run.look(examples=walks())
    assert look.best_view == "forecast"
    fan = look.measure("forecast")
    [predicted] = run.predict(example.input)
    assert fan.forecast == predicted.values and fan.quantiles == predicted.quantiles
    assert fan.truth == {name: pytest.approx(values, nan_ok=True) for name, values in example.target.items()}
    assert {"persistence", "linear autoregression"} <= set(fan.baselines)
    name, horizon = next(iter(fan.truth)), recipe.data.horizon
    [last] = {values for values in fan.baselines["persistence"][name]}  # the last value again and again
    assert (
        last == pytest.approx(fan.history[name][-1], rel=1e-5) and len(fan.times) == recipe.data.context - 1 + horizon
    )
    monkeypatch.setattr(Run, "diagnose", lambda *_, **__: [])
    page = run.report(tmp_path / "page.html", examples=walks()).read_text()
    assert "chart-forecast" in page and "The nearest" not in page


def test_a_model_without_classes_or_series_says_so(tmp_path):
    list(train(Recipe().override("model.size=8", "train.steps=1"), tmp_path / "run", examples=[("ab", "ba")] * 8))
    missing = load(tmp_path / "run").look("ab", "ba").missing
    assert missing["forecast"] == "it forecasts no series" and "class" in missing["confusion"]
