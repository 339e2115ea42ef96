"""Scores by length, and what is too long: read alike in validation, in the final scores and in predictions."""

import numpy as np
import pytest

from seqloom.cli.terminal import show_scores
from seqloom.config.recipe import Recipe
from seqloom.data.ragged import Ragged
from seqloom.metrics import accuracy
from seqloom.runs.run import load, train
from seqloom.tasks.labeling import split_long
from seqloom.tasks.scoring import BINS, FEWEST, score_answers

FEW = ("model.size=8", "train.steps=2", "train.validate_every=1", "data.max_length=3", "data.too_long=cut")
LONG = {  # each twice: the second is the same as the first up to the third element
    "classify": (
        [("a b c", "x"), ("a b c d e", "y"), ("b a", "y"), ("c b a d", "x")] * 6,
        ["data.source_tokenizer=words"],
    ),
    "seq2seq": (
        [("a b c", "x"), ("a b c d e", "x"), ("b a", "y"), ("c b a d", "y")] * 6,
        ["data.source_tokenizer=words"],
    ),
    "tag": ([("a b c", "x y x"), ("a b c d e", "x y x y x"), ("b a", "y x"), ("c b a d", "x x y y")] * 6, []),
}


@pytest.fixture(params=LONG)
def run(request, tmp_path):
    examples, more = LONG[request.param]
    recipe = Recipe.of({"task": request.param}).override(*FEW, *more)
    parts = {part: examples for part in ("train", "validation", "test")}
    told = list(train(recipe, tmp_path / "run", examples=parts))
    return load(tmp_path / "run"), told[-1].scores


@pytest.mark.parametrize(("count", "clear"), [(5, None), (10, False), (20, False), (400, True)])
def test_a_baseline_that_is_better_comes_with_how_sure_that_is(count, clear):
    truth, lengths = [1] * count, np.ones(count, np.int64)
    answers = [int(number % 5 < 3) for number in range(count)]
    baselines = {"none": [0] * count, "good": [int(number % 5 > 0) for number in range(count)]}
    ahead = score_answers({"accuracy": accuracy}, answers, truth, baselines, lengths)["accuracy"].ahead
    assert ahead is not None and ahead.baseline == "good" and ahead.examples == count
    assert (ahead.interval and ahead.interval[0] > 0) == clear
    assert score_answers({"accuracy": accuracy}, truth, truth, baselines, lengths)["accuracy"].ahead is None


def test_bins_hold_all_examples_and_their_own_scores():
    chance = np.random.default_rng(0)
    lengths, right = chance.integers(1, 30, 500), chance.integers(0, 2, 500)
    found = score_answers({"accuracy": accuracy}, right.tolist(), [1] * 500, {"none": [0] * 500}, lengths)["accuracy"]
    assert len(found.by_length) == BINS and found.baselines == {"none": 0.0}
    for name, one in found.by_length.items():
        low, high = map(int, name.split("–"))
        inside = (lengths >= low) & (lengths <= high)
        assert one == {"value": right[inside].mean(), "examples": inside.sum()}
    assert sum(one["examples"] for one in found.by_length.values()) == 500


@pytest.mark.parametrize("lengths", [np.full(500, 7), np.arange(2 * FEWEST - 1)])
def test_there_are_no_bins_where_all_are_of_one_length_or_few(lengths):
    told = [0] * len(lengths)
    assert score_answers({"accuracy": accuracy}, told, told, {}, lengths)["accuracy"].by_length == {}


def test_what_lies_behind_the_greatest_length_is_not_read_and_that_is_said(run):
    run, _ = run
    if run.recipe.task == "tag":
        assert run.predict("a b c d e").unread == 0  # which is read in pieces instead
        return
    both = run.predict_many(["a b c", "a b c d e"], 2)
    assert [one.score for one in both[0]] == [one.score for one in both[1]]
    assert [one.unread for one in both] == [0, 2] and run.scores["cut"] == 12


def test_an_input_is_tokenized_once_to_be_answered(run, monkeypatch):
    run, _ = run
    source, seen = type(run.task.source), []
    encode = source.encode_many

    def listening(self, raws):
        seen.extend(raws if self is run.task.source else ())
        return encode(self, raws)

    monkeypatch.setattr(source, "encode_many", listening)
    run.predict_many(["a b", "b a c d"], 2)
    assert seen == ["a b", "b a c d"]


def test_the_final_score_is_that_of_validation_on_the_same_examples(run):
    run, validated = run
    score = {"classify": "accuracy", "seq2seq": "exact"}.get(run.recipe.task)
    if score == "accuracy":
        assert run.scores["scores"][score]["value"] == pytest.approx(validated[score])


def test_every_element_gets_its_tag_however_long_the_sequence(run):
    run, _ = run
    if run.recipe.task == "tag":
        [whole] = run.predict("a b c d e")
        pieces = [run.predict(piece)[0] for piece in ("a b c", "d e")]
        assert whole.tags == pieces[0].tags + pieces[1].tags and len(whole.words) == 5
        assert whole.score == pytest.approx(pieces[0].score + pieces[1].score)


def test_pieces_cover_every_element_once():
    rows = [list(range(n)) for n in (0, 1, 3, 4, 7, 9, 12)]
    pieces, owner = split_long(Ragged.of(rows), 3)
    again = [[] for _ in rows]
    for row, piece in zip(owner, pieces, strict=True):
        assert len(piece) <= 3
        again[row] += piece.tolist()
    assert again == rows


def test_the_terminal_shows_scores_by_length_and_how_many_were_cut(capsys):
    score = {"value": 0.5, "interval": [0.4, 0.6], "better": "higher", "baselines": {}}
    bins = {"1–9": {"value": 0.75, "examples": 30}, "10": {"value": 0.25, "examples": 31}}
    report = {"run": "r", "examples": 61, "split": "test", "cut": 4, "scores": {"exact": score | {"by_length": bins}}}
    show_scores([report])
    shown = capsys.readouterr().out
    assert "4 of them cut to" in shown and "1–9" in shown and "0.250" in shown and "31" in shown
