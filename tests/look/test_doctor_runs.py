"""Illnesses planted in real trainings of a second or two, found in the run's folder; and what trials leave behind."""

import json
import random
import subprocess
import sys

import pytest
import torch

from seqloom import Recipe, load, train
from seqloom.errors import RunError
from seqloom.look.doctor.trials import Trials
from seqloom.models import LabelingObjective
from seqloom.runs.run import diagnose

QUICK = (
    "model.size=16",
    "model.dropout=0",
    "train.steps=60",
    "train.batch_tokens=512",
    "train.learning_rate=1e-2",
    "model.pool=last",
)


def written(folder, examples):
    for part, rows in examples.items():
        (folder / f"{part}.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in rows))
    return [f"data.{part}={folder / f'{part}.tsv'}" for part in examples]


def recalled(lag, rows, seed, length):
    """A capital so many steps before the end of small letters, and the capital."""
    chance = random.Random(seed)
    found = []
    for _ in range(rows):
        text, letter = chance.choices("abcdefgh", k=length or lag + 1), chance.choice("ABCDEFGH")
        text[-1 - lag] = letter
        found.append(("".join(text), letter))
    return found


def parts(lag, length=0, label=None):
    found = {
        part: recalled(lag, rows, seed, length) for seed, (part, rows) in enumerate({"train": 800, "test": 80}.items())
    }
    return {part: [(text, label(text) if label else told) for text, told in rows] for part, rows in found.items()}


def trained(folder, examples, *settings):
    recipe = Recipe.of({"task": "classify"}).override(*written(folder, examples), *QUICK, *settings)
    list(train(recipe, folder / "run"))
    return folder / "run"


WHOLE = "train.steps=200"  # until every answer is right: whoever counts letters has them all, too


def test_a_healthy_run_is_left_alone(tmp_path):
    run = trained(tmp_path, parts(2, length=12), "model.kind=gru", WHOLE)
    assert load(run).diagnose() == []


def test_a_closed_gate_is_found_and_the_prescription_opens_it(tmp_path):
    closed = ("model.kind=lstm", "model.bidirectional=false", "model.forget_bias=-3")
    first, *_ = diagnose(trained(tmp_path, parts(8), *closed), seconds=1)
    assert (first.name, first.settings) == ("forgets at once", ["model.forget_bias=1"])


def test_a_window_that_is_too_short_is_found(tmp_path):
    first, *_ = diagnose(trained(tmp_path, parts(9), "model.kind=transformer", "model.window=3"), seconds=1)
    assert (first.name, first.change, first.measured["needed"]) == ("short memory", "model.window=0", 9)


def test_evidence_that_was_cut_off_is_found(tmp_path):
    cut = trained(tmp_path, parts(4, length=16), "data.max_length=8", "data.too_long=cut")
    assert [(one.name, one.change) for one in diagnose(cut, seconds=1)][0] == (
        "examples are cut off",
        "data.max_length=16",
    )


def test_examples_that_are_read_in_the_order_of_their_labels_are_found(tmp_path):
    examples = parts(2, length=12)
    examples["train"].sort(key=lambda row: row[1])
    first, *_ = diagnose(trained(tmp_path, examples, "train.shuffle=false"), seconds=0)
    assert (first.name, first.change) == ("not shuffled", "train.shuffle=true")


def test_labels_that_nothing_says_anything_about_are_found_and_the_model_is_left_alone(tmp_path):
    labels = iter("AB" * 10**6)
    run = trained(tmp_path, parts(4, label=lambda text: next(labels)), "train.validate_every=5")
    found = diagnose(run, seconds=1)
    assert found[0].name == "nothing to learn" and not any(one.change for one in found)


def test_a_run_that_broke_off_can_be_examined(tmp_path):
    with pytest.raises(RunError):
        trained(
            tmp_path,
            parts(4, length=60),
            "train.learning_rate=100",
            "train.clip_norm=0",
            "model.kind=rnn",
            "model.activation=relu",
        )
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert records[-1]["skipped"] == 10
    assert diagnose(tmp_path / "run", seconds=1)[0].name in ("rate too high", "exploding gradients")


def test_without_the_examples_the_records_have_to_do_and_that_is_said(tmp_path):
    run = trained(tmp_path, parts(2, length=12), WHOLE)
    (tmp_path / "train.tsv").unlink()
    found = diagnose(run)
    assert found == [] and "not at hand" in found.notes[0] and "train.tsv" in found.notes[0]
    done = subprocess.run([sys.executable, "-m", "seqloom", "doctor", str(run)], capture_output=True, text=True)
    assert done.stdout == "nothing stands out\n" and "not at hand" in done.stderr


def test_examples_from_python_are_given_again(tmp_path):
    recipe = Recipe.of({"task": "classify"}).override(*QUICK, "model.kind=transformer", "model.window=3")
    examples = parts(9)
    list(train(recipe, tmp_path / "run", examples=examples))
    assert load(tmp_path / "run").diagnose(examples, seconds=0)[0].name == "short memory"


def test_trials_leave_no_trace_and_give_the_same_again(tmp_path):
    run = load(trained(tmp_path, parts(2, length=12)))
    _, prepared = run.task.declaration.prepare(run.recipe, lambda line: None)

    class Feed:
        def order(self, epoch):
            return run.task.shape.order(prepared, epoch)

        def batch(self, rows):
            return run.task.shape.batch(prepared, rows)

    def make(recipe):
        torch.manual_seed(0)
        return LabelingObjective(run.task.shape.build()), Feed()

    before, weights = torch.random.get_rng_state(), {k: v.clone() for k, v in run.model.state_dict().items()}
    one, other = (Trials(make, run.recipe, 60.0) for _ in range(2))
    one.steps = other.steps = 40  # else as many as this machine has time for
    assert one.after() == other.after() == one.after() and one.by_heart < 0.2
    assert (
        one.after("train.learning_rate=1e-7") > one.after()
        and one.after("model.heads=3", "model.kind=transformer") is None
    )
    assert (torch.random.get_rng_state() == before).all()
    assert all((run.model.state_dict()[name] == value).all() for name, value in weights.items())
    assert Trials(make, run.recipe, -1.0).after() is None  # there is no time
