"""Does order matter: scores with the words shuffled, minimal pairs; and METEOR, from Python and typed."""

import json
import math

import numpy as np
import pytest

from seqloom import Recipe, load, train
from seqloom.errors import DataError, SeqloomError
from seqloom.metrics.meteor import meteor
from seqloom.runs.ordering import shuffle_example

FEW = ("model.size=16", "train.batch_tokens=256", "train.validate_every=50", "train.learning_rate=0.02")
TEXTS = ["good not bad", "bad not good"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ordering")


def make(folder, task, examples, *settings):
    if not (folder / task).exists():
        recipe = Recipe.of({"task": task}).override(*FEW, "train.steps=60", *settings)
        list(train(recipe, folder / task, examples=examples))
    return load(folder / task)


@pytest.fixture(scope="module")
def classifier(folder):
    """It has learned that the first word decides: only the order tells."""
    examples = [(text, text.split()[0]) for text in TEXTS] * 20
    return make(folder, "classify", examples, "model.kind=gru", "data.source_tokenizer=words")


@pytest.fixture(scope="module")
def language(folder):
    return make(folder, "language", TEXTS[:1] * 40, "data.target_tokenizer=words", "train.bptt_window=8")


def test_where_only_the_order_tells_shuffled_words_are_guessed(classifier, folder):
    rows = "".join(f"{text}\t{text.split()[0]}\n" for text in TEXTS * 50)
    (folder / "own.tsv").write_text("source\ttarget\n" + rows)
    found = classifier.score_shuffled(folder / "own.tsv")
    accuracy = found["scores"]["accuracy"]
    assert accuracy["ordered"] == 1.0 and 0.2 < accuracy["shuffled"] < 0.8 and found["examples"] == 100
    assert classifier.score_shuffled(folder / "own.tsv") == found  # the seed decides
    assert classifier.score_shuffled(folder / "own.tsv", seed=1)["scores"] != found["scores"]


def test_shuffling_keeps_the_words_and_tags_go_with_them(classifier, folder):
    tagger = make(folder, "tag", [("a b c", "x y z"), ("b a", "y x")] * 8, "train.steps=1")
    chance, seen = np.random.default_rng(0), set()
    for _ in range(30):
        source, tags = shuffle_example(tagger, ("a b c", "x y z"), chance)
        assert dict(zip(source.split(), tags.split(), strict=True)) == {"a": "x", "b": "y", "c": "z"}
        seen.add(source)
    assert len(seen) == 6
    assert sorted(shuffle_example(classifier, ("abc", "x"), chance)[0]) == ["a", "b", "c"]


def test_minimal_pairs_are_told_apart_by_answer_or_by_probability(classifier, language):
    found = classifier.score_pairs([tuple(TEXTS), ("good not bad", "good not good")])
    assert [pair.right for pair in found.pairs] == [True, False] and found.score.value == 0.5 and found.chance is None
    assert found.pairs[0].results == ("good", "bad")
    told = language.score_pairs([("good not bad", "bad not good"), ("bad good", "good not bad")])
    assert [pair.right for pair in told.pairs] == [True, False] and told.chance == 0.5
    logs = [one.log_probability for one in language.score_texts(["good not bad", "bad not good"])]
    assert told.pairs[0].results == pytest.approx(tuple(logs))
    with pytest.raises(DataError, match="not a single pair"):
        language.score_pairs([])


def test_the_command_line_shuffles_and_reads_pairs(classifier, language, folder, typed, tmp_path):
    (tmp_path / "own.tsv").write_text("source\ttarget\ngood not bad\tgood\nbad not good\tbad\n")
    out, _, code = typed("score", classifier.folder, "--on", "own.tsv", "--shuffle", "--json")
    assert code == 0 and json.loads(out) == classifier.score_shuffled("own.tsv")
    assert "in order" in typed("score", classifier.folder, "--on", "own.tsv", "--shuffle")[0]
    (tmp_path / "pairs.tsv").write_text("good not bad\tbad not good\n\n")
    out, _, code = typed("score", language.folder, "--pairs", "pairs.tsv", "--json")
    told = json.loads(out)
    assert code == 0 and told["value"] == 1.0 and told["chance"] == 0.5 and len(told["pairs"]) == 1
    assert "first text more probable: 1.000" in typed("score", language.folder, "--pairs", "pairs.tsv")[0]
    (tmp_path / "pairs.tsv").write_text("one\n")
    for words, sentence in (
        (["--pairs", "pairs.tsv"], "pairs.tsv, line 1: 2 texts with tabs between them were expected"),
        (["--pairs", "pairs.tsv", "--shuffle"], "choose one"),
        (["--meteor"], "does not generate its answers"),
    ):
        _, err, code = typed("score", classifier.folder, *words)
        assert code == 2 and sentence in err, err


class NoSynonyms:
    """A WordNet without a word in it."""

    def synsets(self, word):
        return []


def test_meteor_is_the_formula_of_the_paper():
    """P and R of matched words (also by their stems), 10 PR / (R + 9 P), less half of (chunks / matches) cubed."""

    def by_hand(matches, guessed, true, chunks):
        precision, recall = matches / guessed, matches / true
        return 10 * precision * recall / (recall + 9 * precision) * (1 - 0.5 * (chunks / matches) ** 3)

    cases = [
        ("the cat sat on the mat", "the cat sat on the mat", by_hand(6, 6, 6, 1)),
        ("the cat", "the cat sat", by_hand(2, 2, 3, 1)),
        ("sat the cat", "the cat sat", by_hand(3, 3, 3, 2)),
        ("he walks", "he walked", by_hand(2, 2, 2, 1)),
        ("nothing alike", "the cat", 0.0),
        ("", "the cat", 0.0),
    ]
    for guess, right, expected in cases:
        assert meteor([guess], [right], intervals=False, wordnet=NoSynonyms()).value == pytest.approx(expected)
    found = meteor([one[0] for one in cases], [[one[1], "x y z"] for one in cases], wordnet=NoSynonyms())
    assert found.value == pytest.approx(np.mean([one[2] for one in cases]))
    assert found.interval is not None and math.isfinite(found.interval[0])


def test_meteor_of_a_run_is_that_of_its_answers_and_without_wordnet_that_is_said(folder, monkeypatch, typed, tmp_path):
    run = make(folder, "seq2seq", [("a b", "b a"), ("c d", "d c"), ("a d", "d a")] * 8, "data.target_tokenizer=words")
    (tmp_path / "own.tsv").write_text("source\ttarget\na b\tb a\nc d\td c\n")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    with pytest.raises(SeqloomError, match="WordNet, which is not on this machine: python -m nltk.downloader wordnet"):
        run.score_meteor(tmp_path / "own.tsv")
    _, err, code = typed("score", run.folder, "--meteor", "--on", "own.tsv")
    assert code == 2 and "WordNet" in err and len(err.splitlines()) == 1
    monkeypatch.setattr("seqloom.metrics.meteor.load_wordnet", NoSynonyms)
    told = run.score_meteor(tmp_path / "own.tsv")["scores"]["METEOR"]
    answers = [run.predict(text)[0].output for text in ("a b", "c d")]
    assert told["value"] == pytest.approx(meteor(answers, ["b a", "d c"], wordnet=NoSynonyms()).value)
    assert set(told["baselines"]) == {"copy", "most frequent"}
