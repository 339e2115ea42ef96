"""Names that other programs rely on: from 0.2 on they stay. Adding one is free, losing one breaks somebody."""

import json
import sys

import pytest
import typer

import seqloom
from seqloom.cli.main import build_app, main
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.look.views import VIEWS
from seqloom.runs.run import train
from seqloom.tasks import TASKS

from .recipes import small

COMMANDS = typer.main.get_command(build_app()).commands
OPTIONS = {
    "train": ["--into", "--resume", "--json"],
    "score": ["--on", "--json"],
    "predict": ["--beam", "--file", "--json"],
    "generate": [
        *("--length", "--temperature", "--top-k", "--top-p", "--seed", "--count", "--prompt", "--stream", "--json"),
    ],
    "look": ["--view", "--out"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen")
    list(train(small(folder), folder / "run"))
    return folder / "run"


def typed(monkeypatch, capsys, *words: object) -> list[str]:
    """The lines that a command prints."""
    monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    return capsys.readouterr().out.splitlines()


def test_tasks():
    assert {"classify", "tag", "seq2seq", "language", "forecast", "music", "caption", "draw"} <= set(TASKS)


def test_commands():
    kept = "recipes config train tune score predict generate look doctor study certify quantize compare export pack"
    assert set(kept.split()) <= set(COMMANDS)


@pytest.mark.parametrize("command", OPTIONS)
def test_options(command):
    known = {option for parameter in COMMANDS[command].params for option in parameter.opts}
    assert set(OPTIONS[command]) <= known


def test_views():
    kept = "attention gates gradients spectrum field beam next attribution embedding curves model cost probe positions"
    assert set([*kept.split(), "schedule"]) <= set(VIEWS)


def test_settings():
    assert Recipe().resolved().data.on_bad_row == "error"
    for norm in ("post", "pre", "rezero"):
        assert Recipe().override("model.kind=transformer", f"model.norm={norm}").model.norm == norm
    with pytest.raises(RecipeError):
        Recipe().override("model.kind=transformer", "model.norm=after")


def test_python():
    assert {"Recipe", "Run", "load", "train"} <= set(seqloom.__all__)
    assert seqloom.__version__.split(".")[0].isdigit()


def test_the_json_of_scores(run, monkeypatch, capsys):
    [report] = json.loads("\n".join(typed(monkeypatch, capsys, "score", run, "--json")))
    assert {"run", "task", "split", "examples", "scores"} <= report.keys()
    for score in report["scores"].values():
        low, high = score["interval"]
        assert low <= score["value"] <= high
        assert all(isinstance(value, float) for value in score["baselines"].values())


def test_the_json_of_predictions(run, monkeypatch, capsys):
    lines = typed(monkeypatch, capsys, "predict", run, "abc", "ba", "--beam", 2, "--json")
    for given, line in zip(["abc", "ba"], map(json.loads, lines), strict=True):
        assert line["input"] == given
        assert [{"output", "score"} <= one.keys() for one in line["predictions"]] == [True, True]


def test_the_json_of_training(tmp_path, monkeypatch, capsys):
    (tmp_path / "recipe.toml").write_text(small(tmp_path).to_toml(comments=False), encoding="utf-8")
    lines = typed(monkeypatch, capsys, "train", tmp_path / "recipe.toml", "--into", tmp_path / "run", "--json")
    assert lines == (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert records[-1]["kind"] == "end"
    for record in records:
        if record["kind"] != "note":
            assert {"step", "epoch", "loss", "rate", "tokens", "seconds"} <= record.keys()
