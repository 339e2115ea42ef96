"""A run that is fed piece by piece says what it says of the whole; what looks ahead refuses it."""

import json

import numpy as np
import pytest

from seqloom.config.recipe import Recipe
from seqloom.errors import RunError
from seqloom.runs.run import load, train

TINY = ("model.size=8", "train.batch_tokens=512", "train.steps=2", "train.validate_every=2")
SENTENCES = [(["a", "b", "c"], ["X", "Y", "X"]), (["c", "b"], ["X", "Y"])] * 20


def trained(folder, task, examples, *settings):
    list(train(Recipe.read(task, *TINY, *settings), folder, examples=examples))
    return folder


@pytest.mark.parametrize("kind", ["gru", "lstm", "transformer", "convolution"])
def test_a_tagger_that_looks_back_says_of_pieces_what_it_says_of_the_whole(seqloom, tmp_path, kind):
    run = trained(tmp_path / "run", "tag", SENTENCES, f"model.kind={kind}", "model.causal=true")
    loaded = load(run)
    [whole] = loaded.predict("a b c c a")
    follower = loaded.follow()
    pieces = [follower.read(piece)[0] for piece in ("a", "b c", "c a")]
    assert [tag for piece in pieces for tag in piece.tags] == whole.tags
    assert sum(piece.score for piece in pieces) == pytest.approx(whole.score, abs=1e-5)
    code, said, _ = seqloom("predict", run, "--follow", stdin="a\nb c\nc a\n\na b\n")
    assert code == 0 and said.split() == f"{whole.output} {loaded.predict('a b')[0].output}".split()
    assert said.splitlines()[3] == ""  # an empty line begins another sentence


@pytest.mark.parametrize("settings", [["model.bidirectional=true"], ["model.kind=transformer"], ["model.crf=true"]])
def test_a_tagger_that_looks_ahead_refuses_it(seqloom, tmp_path, settings):
    causal = ["model.causal=true"] if "model.crf=true" in settings else []
    run = trained(tmp_path / "run", "tag", SENTENCES, *settings, *causal)
    code, said, error = seqloom("predict", run, "--follow", stdin="a\n")
    assert code == 2 and not said and "still to come" in error and len(error.splitlines()) == 1
    with pytest.raises(RunError, match="still to come"):
        load(run).follow()


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_a_language_model_says_what_comes_next_after_every_line(seqloom, tmp_path, kind):
    run = trained(tmp_path / "run", "language", ["abc\nabd\n" * 60], f"model.kind={kind}")
    code, said, _ = seqloom("predict", run, "--follow", "--json", stdin="ab\nc\n")
    answers = [json.loads(line)["predictions"] for line in said.splitlines()]
    assert code == 0
    for found, text in zip(answers, ["ab\n", "ab\nc\n"], strict=True):
        expected = load(run).predict(text)
        assert [one["output"] for one in found] == [one.output for one in expected]
        assert [one["probability"] for one in found] == pytest.approx([one.probability for one in expected], abs=1e-6)


def test_a_forecaster_answers_as_soon_as_it_has_read_enough(seqloom, tmp_path):
    series = np.sin(np.arange(120) / 3)
    settings = ("data.context=8", "data.horizon=3", "data.sample=", "data.time=", "data.variables=", "data.season=4")
    run = trained(tmp_path / "run", "forecast", series, *settings)
    [name] = load(run).task.fields["series"].columns
    rows = "".join(f"{value!r}\n" for value in series[:10].tolist())
    code, said, error = seqloom("predict", run, "--follow", "--json", stdin=f"{name}\n{rows}")
    answers = [json.loads(line) for line in said.splitlines()]
    assert code == 0, error
    assert [one.get("waits_for", 0) for one in answers] == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]
    for end in (8, 9, 10):
        expected = load(run).predict(series[end - 8 : end])[0].values[name]
        assert answers[end - 1]["predictions"][0]["values"][name] == pytest.approx(expected)
    code, _, error = seqloom("predict", run, "--follow", stdin="1\nmuch\n")
    assert code == 2 and "standard input, line 2: 'much' is not a number" in error


def test_what_answers_a_whole_input_refuses_it(seqloom, tmp_path):
    run = trained(tmp_path / "run", "classify", [("a b", "x"), ("b c", "y")] * 20)
    code, _, error = seqloom("predict", run, "--follow", stdin="a\n")
    assert code == 2 and "needs a whole input" in error
    code, _, error = seqloom("predict", run, "--follow", "a")
    assert code == 2 and "--follow reads standard input" in error
