"""Pre-training by documents: what is read and what is predicted, exact resume, and starting a classifier from it."""

import json
import sys

import numpy as np
import pytest
import torch

from seqloom.cli.main import main
from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import END, SPECIALS
from seqloom.errors import DataError
from seqloom.runs.folder import read_config
from seqloom.runs.run import load, train
from seqloom.tasks import declare
from seqloom.tasks.document_reading import FREQUENT

from ..recipes import measured, texts

TOPICS = {
    "sea": "the ship sails far over the waves with salt and wind .",
    "wood": "a bear sleeps under tall oak trees on moss .",
}
KINDS = ["lstm", "transformer", "convolution"]


def documents(count: int = 60) -> dict:
    """Texts about one of two things, their words in a drawn order."""
    draw, rows = np.random.default_rng(0), []
    for number in range(count):
        words = list(TOPICS.values())[number % 2].split()
        rows.append((" ".join(draw.choice(words, 24)),))
    return {"train": rows, "validation": rows[:8], "test": rows[8:20]}


def pretrain(kind: str = "lstm", *more: str) -> Recipe:
    return Recipe.read(
        "pretrain", "data.sample=", "train.objective=document", f"model.kind={kind}", "data.target_tokenizer=words",
        "data.vocabulary_size=0", "model.size=16", "model.depth=1", "model.tied=false",
        "data.window=8", "train.steps=6", "train.batch_tokens=64", "train.validate_every=3", "train.checkpoint_every=1",
        *more,
    )  # fmt: skip


def prepare(*settings: str):
    recipe = pretrain(*settings).resolved()
    task, prepared = declare(recipe).prepare(recipe, lambda line: None, documents())
    torch.manual_seed(0)
    return task, prepared, task.shape.build().eval()


def test_the_target_is_what_stands_outside_of_the_excerpt():
    """Counted anew, word by word; a word more frequent than FREQUENT counts with the root of its excess."""
    task, prepared, _ = prepare()
    texts_, counts = prepared.splits["train"].ids["target"], np.array(task.facts.counts)
    starts = np.concatenate([[0], np.cumsum(texts_.lengths + 1)])
    for rows in task.shape.order(prepared, 0)[:3]:
        batch = task.shape.batch(prepared, rows)
        for number, (begin, end, *_) in enumerate(rows.tolist()):
            document = int(np.searchsorted(starts, begin, side="right")) - 1
            own, first = texts_[document].tolist(), begin - starts[document]
            read = batch.inputs[number][batch.mask[number]].tolist()
            assert read == own[first : first + len(read)] and END not in read and 0 < len(read) <= 8
            rest = own[:first] + own[end - starts[document] :]
            expected = torch.zeros(len(task.target), dtype=torch.float64)
            for word in rest:
                expected[word] += min(1, FREQUENT * counts.sum() / counts[word]) ** 0.5
            torch.testing.assert_close(batch.target[number].double(), expected / expected.sum(), atol=1e-6, rtol=1e-5)
            assert not batch.target[number, : len(SPECIALS)].any()


def test_every_text_is_read_once_an_epoch_elsewhere_each_time_and_alike_for_the_scores():
    task, prepared, _ = prepare()
    encoded = prepared.splits["train"].ids
    epochs = [np.concatenate(list(task.shape.order(prepared, epoch))) for epoch in (0, 0, 1)]
    assert all(len(np.unique(rows[:, 2])) == len(rows) == 60 for rows in epochs)
    assert np.array_equal(epochs[0], epochs[1])
    by_text = [rows[np.argsort(rows[:, 2])][:, 0] for rows in epochs]
    assert not np.array_equal(by_text[0], by_text[2])
    assert np.array_equal(task.shape.plan(encoded), task.shape.plan(encoded))


def test_a_long_text_is_divided_and_one_text_alone_is_refused():
    recipe = pretrain("lstm", "data.documents=file").resolved()
    words = " ".join(TOPICS["sea"].split() * 20)
    rows = {"train": [(words,)], "validation": [(words[:100],)], "test": [(words[:100],)]}
    task, prepared = declare(recipe).prepare(recipe, lambda line: None, rows)
    spans = np.concatenate(list(task.shape.order(prepared, 0)))
    assert len(spans) == -(-241 // 32) and (spans[:, 3] - spans[:, 2] <= 32).all()
    short = {"train": [("the ship sails",)], "validation": rows["validation"], "test": rows["test"]}
    task, prepared = declare(recipe).prepare(recipe, lambda line: None, short)
    with pytest.raises(DataError, match="needs several texts, but there is only one: data.documents=paragraphs"):
        task.shape.order(prepared, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_cross_entropy_and_neighbors_change_nothing(kind):
    task, prepared, model = prepare(kind)
    batch = task.shape.batch(prepared, task.shape.order(prepared, 0)[0])
    total, count, _ = model.objective()(batch)
    logs = model(batch.inputs, batch.mask).log_softmax(-1)
    torch.testing.assert_close(total, -(batch.target * logs).sum())
    assert count == len(batch.inputs)
    for row in range(3):
        alone = batch.rows(slice(row, row + 1))
        torch.testing.assert_close(model(alone.inputs, alone.mask).log_softmax(-1)[0], logs[row], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_resume_in_the_middle_of_an_epoch_is_exact(kind, tmp_path):
    said = texts(train(pretrain(kind), tmp_path / "whole", examples=documents()))
    assert any("expected elsewhere in the text: " in line for line in said)
    records = measured(train(pretrain(kind), tmp_path / "cut", examples=documents()))
    next(records)
    records.close()
    list(train(pretrain(kind), tmp_path / "cut", examples=documents(), resume=True))
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "cut/model.safetensors").read_bytes()


def test_it_begins_with_the_frequencies_and_learns_what_belongs_together(tmp_path, monkeypatch, capsys):
    more = ("train.steps=80", "train.validate_every=80", "train.learning_rate=0.02")
    list(train(pretrain("lstm", *more), tmp_path / "run", examples=documents()))
    run = load(tmp_path / "run")
    score = run.scores["scores"]["perplexity"]
    assert score["value"] < 0.75 * score["baselines"]["unigram"]
    for topic, given in (("sea", "ship waves salt"), ("wood", "bear oak moss")):
        assert {one.output for one in run.predict(given, beam=4)} <= set(TOPICS[topic].split())
    with pytest.raises(DataError, match='"document" has no blanks to fill'):
        run.fill("the ___ sails")
    monkeypatch.setattr(sys, "argv", ["seqloom", "predict", str(tmp_path / "run"), "ship waves", "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    [line] = capsys.readouterr().out.splitlines()
    assert len(json.loads(line)["predictions"]) == 5


def test_a_classifier_starts_from_it_and_takes_the_mean(tmp_path):
    list(train(pretrain(), tmp_path / "body", examples=documents()))
    recipe = Recipe.read("classify", "data.sample=", f"model.from={tmp_path / 'body'}", "train.steps=1")
    assert recipe.model.pool == "mean"
    assert Recipe.read("classify", f"model.from={tmp_path / 'body'}", "model.pool=max").model.pool == "max"
    rows = [(text, list(TOPICS)[number % 2]) for number, (text,) in enumerate(documents()["train"])]
    list(train(recipe, tmp_path / "run", examples={"train": rows, "validation": rows[:6], "test": rows[:6]}))
    taken = read_config(tmp_path / "run").start
    assert {name.split(".")[0] for name in taken.loaded} == {"embed", "encoder"}
    assert {name.split(".")[0] for name in taken.new} == {"head"}
