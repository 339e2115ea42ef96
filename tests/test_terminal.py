"""What a person sees while training: a bar on a terminal, lines otherwise; and records for TensorBoard."""

import io
import json
import random
import re
import sys
import threading

import numpy as np
import pytest
import torch
from rich.console import Console

from seqloom.cli import terminal
from seqloom.cli.main import main
from seqloom.runs.run import load, train
from seqloom.training.events import BARS, Events
from seqloom.training.records import Record

from .recipes import backwards, measured, small


def records(tmp_path):
    return train(small(tmp_path), tmp_path / "run")


def test_on_a_terminal_a_bar_says_loss_score_speed_and_time(tmp_path, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "notes", Console(file=screen, force_terminal=True, width=120))
    assert terminal.follow(records(tmp_path), as_json=False)
    shown = screen.getvalue()
    for word in ("training", "100%", "loss", "exact", "tokens/s", "0:00:00"):
        assert word in shown


def test_at_80_columns_notes_are_broken_between_words(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "notes", Console(file=screen, force_terminal=True, width=80, soft_wrap=True))
    text = " ".join(f"word{number}" for number in range(100))
    terminal.follow([Record("note", 0, text=text)], as_json=False)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert plain.split() == text.split() and max(map(len, plain.splitlines())) <= 80


def test_at_80_columns_the_bar_and_the_time_left_stay(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "notes", Console(file=screen, force_terminal=True, width=80))
    scores = {"loss": 1.25, "exact": 0.5, "token error rate": 0.25}
    told = [
        Record("note", 0, text="4 steps", details={"steps": 4}),
        *(Record("validation", step, loss=2.5, tokens_per_second=12_345, scores=scores) for step in (1, 2, 3)),
    ]
    terminal.follow(told, as_json=False)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split("[\r\n]", screen.getvalue())]
    shown = [line for line in lines if "75%" in line]
    assert shown and all("━" in line and re.search(r"\d:\d\d:\d\d", line) for line in shown)
    assert all(len(line) <= 80 and "loss 2.500" in line for line in shown)


def test_at_80_columns_the_names_of_baselines_are_broken_between_words(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    names = ["score", "value", "95 % interval", "most frequent", "chance", "bag of pairs", "NB-SVM", "better is"]
    terminal.show_table(names, [["accuracy", "1.000", "1.000 – 1.000", "0.350", "0.250", "1.000", "1.000", "higher"]])
    out = capsys.readouterr().out
    assert set(" ".join(names).split()) <= set(out.split()) and max(map(len, out.splitlines())) <= 80


def test_several_runs_are_one_table_side_by_side(capsys):
    def report(run, value, baseline):
        score = {"value": value, "interval": [value - 0.1, value + 0.1], "baselines": {"most frequent": baseline}}
        return {"run": run, "task": "classify", "split": "test", "examples": 10} | {
            "scores": {"accuracy": score | {"better": "higher"}}
        }

    terminal.show_scores([report("a", 0.5, 0.3), report("b", 0.7, 0.3)])
    shown = capsys.readouterr().out
    [row] = [line for line in shown.splitlines() if "accuracy" in line]
    assert row.split()[:2] == ["accuracy", "0.500"] and "0.700 (0.600 – 0.800)" in row and "most frequent 0.300" in row
    assert "cannot be compared" not in shown
    terminal.show_scores([report("a", 0.5, 0.3), report("b", 0.7, 0.3) | {"examples": 11}])
    assert "cannot be compared" in capsys.readouterr().out


def test_where_nobody_watches_each_validation_is_a_line(tmp_path, capsys):
    assert terminal.follow(records(tmp_path), as_json=False)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("step")]
    assert [line.split()[1] for line in lines] == ["4", "8", "12"] and all("s left" in line for line in lines)


def test_a_stopped_run_has_a_checkpoint_of_its_last_step_and_no_scores(tmp_path):
    stop = threading.Event()
    for record in measured(train(small(tmp_path, "train.checkpoint_every=4"), tmp_path / "run", stop=stop)):
        last = record
        stop.set()
    assert last.kind == "step" and not (tmp_path / "run" / "scores.json").exists()
    [newest] = (tmp_path / "run" / "checkpoints").iterdir()
    assert newest.name == f"step-{last.step + 1}"


def test_records_reach_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = Events(tmp_path)
    for step, loss in ((10, 2.5), (20, None)):
        events.add(Record("validation", step, 0.5, loss, 1e-3, 0.7, 100, 10.0, 1.0, 0, {"exact": step / 100}, True))
    events.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(e.step, e.value) for e in found.Scalars("train/loss")] == [(10, 2.5)]
    assert [e.step for e in found.Scalars("validation/exact")] == [10, 20]


def test_tensorboard_gets_text_histograms_and_a_picture(tmp_path):
    from PIL import Image
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = torch.nn.Linear(3, 2)
    events = Events(tmp_path)
    events.add(Record("validation", 10, loss=2.5, scores={"loss": 2.0}), model)
    events.add_text("recipe", "a recipe", 0)
    events.add_scores({"accuracy": {"value": 0.5, "confusion": [[3, 1], [0, 4]]}}, 10)
    events.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    [histogram] = found.Histograms("weights/weight")
    assert histogram.histogram_value.num == 6 and len(histogram.histogram_value.bucket) <= BARS + 2
    assert histogram.histogram_value.sum == pytest.approx(model.weight.sum().item(), abs=1e-5)
    assert found.Tensors("recipe/text_summary")[0].tensor_proto.string_val == [b"a recipe"]
    [picture] = found.Images("test/confusion of accuracy")
    pixels = np.array(Image.open(io.BytesIO(picture.encoded_image_string)).convert("L"), float) / 255
    np.testing.assert_allclose(pixels[:: len(pixels) // 2, :: len(pixels) // 2], [[0.75, 0.25], [0, 1]], atol=0.01)


def test_several_seeds_are_trained_with_one_command_and_said_again_do_nothing(tmp_path, monkeypatch, capsys):
    data = f"data.train={backwards(tmp_path, 60)}"
    command = [
        "seqloom",
        "train",
        "seq2seq",
        data,
        "model.size=8",
        "train.steps=2",
        "train.seed=5",
        "search.beam_size=1",
    ]
    monkeypatch.setattr("sys.argv", [*command, "--seeds", "2", "--into", str(tmp_path / "runs")])
    for words in ("± ", "is finished: nothing is left to train"):
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        assert words in "".join(capsys.readouterr())
    summary = json.loads((tmp_path / "runs" / "seeds.json").read_text())
    assert summary["seeds"] == [5, 6]
    for name, score in summary["scores"].items():
        values = [load(tmp_path / "runs" / f"seed-{seed}").scores["scores"][name]["value"] for seed in (5, 6)]
        assert score["values"] == values
        assert score["mean"] == pytest.approx(np.mean(values)) and score["std"] == pytest.approx(np.std(values, ddof=1))
    weights = [(tmp_path / "runs" / f"seed-{seed}" / "model.safetensors").read_bytes() for seed in (5, 6)]
    assert weights[0] != weights[1]


def test_a_run_that_loses_to_a_baseline_says_so():
    scores = {
        "accuracy": {
            "value": 0.8,
            "better": "higher",
            "baselines": {"chance": 0.5, "NB-SVM": 0.87},
            "ahead": {"baseline": "NB-SVM", "interval": [0.01, 0.13], "examples": 400},
        },
        "loss": {"value": 0.4, "better": "lower", "baselines": {"uniform": 0.7}},
        "coverage": {"value": 0.7, "better": "nearer 0.8", "baselines": {"naive": 0.8}},
    }
    sentence = terminal.describe_defeat(scores, "runs/mine")
    assert "accuracy (by NB-SVM, 0.870 against 0.800)." in sentence and "seqloom doctor runs/mine" in sentence
    assert "loss" not in sentence and "coverage" not in sentence
    for interval, examples in (([-0.03, 0.17], 10), (None, 5)):
        scores["accuracy"]["ahead"] |= {"interval": interval, "examples": examples}
        chance = f"but {examples} examples cannot tell whether that is chance"
        sentence = terminal.describe_defeat(scores, "runs/mine")
        assert sentence.endswith(chance) and "is better" not in sentence and "(by NB-SVM, 0.870 against" in sentence
    del scores["accuracy"]["ahead"]
    assert not terminal.describe_defeat(scores, "runs/mine")
    ahead = {"baseline": "naive", "interval": [0.5, 1.5], "examples": 50}
    one = {"value": 2.0, "better": "lower", "baselines": {"naive": 1.0}, "ahead": ahead}
    many = {f"MAE of {name}": one for name in "abcde"}
    sentence = terminal.describe_defeat(many, "r")
    assert sentence.count("by naive") == 3 and "and 2 more scores." in sentence


@pytest.mark.parametrize("wrong", ["validation", "test"])
def test_validation_judges_whether_a_baseline_is_better_and_the_test_part_does_not(typed, tmp_path, wrong):
    """The labels of one part are the wrong way round: a model that has learned the right ones is worse there than
    chance."""
    chance = random.Random(0)
    for part in ("train", "validation", "test"):
        rows = []
        for _ in range(200 if part == "train" else 60):
            words = chance.choices(["film", "plot", "was", "very", "long"], k=6)
            good = chance.random() < 0.5
            label = "no" if good == (part == wrong) else "yes"
            rows.append(f"{' '.join(words)} {'good' if good else 'bad'},{label}")
        (tmp_path / f"{part}.csv").write_text("source,target\n" + "\n".join(rows) + "\n")
    files = [f"data.{part}={part}.csv" for part in ("train", "validation", "test")]
    out, _, code = typed("train", "classify", *files, "train.steps=30", "train.validate_every=30", "--into", "run")
    assert code == 0
    lost = wrong == "validation"
    assert ("on validation a baseline is better: accuracy" in out) == lost
    assert ("on validation a baseline is better" in typed("score", "run")[0]) == lost
    found = json.loads(typed("doctor", "run", "--json")[0])
    assert any(one["name"] == "no better than a baseline" for one in found) == lost
