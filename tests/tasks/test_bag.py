"""Words and pairs of words, their embeddings pooled, and a beginning as NB-SVM."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from seqloom.baselines.nb_svm import NBSVM
from seqloom.config.recipe import Recipe
from seqloom.data.ragged import Ragged
from seqloom.errors import RecipeError, RunError
from seqloom.fields.ngrams import WordPairs
from seqloom.runs.run import load, train
from seqloom.tasks.naive_bayes import TRUSTS, choose_trust, weigh_evidence

from ..preparing import prepare_task
from ..recipes import measured

SETTINGS = ("data.source_tokenizer=ngrams", "model.kind=bag", "model.size=6", "train.steps=6", "train.batch_tokens=128")
GOOD, BAD, OTHER = ("good", "fine", "not bad"), ("bad", "awful", "not good"), ("film", "plot", "day", "song")


def reviews(count: int = 200) -> list[tuple[str, str]]:
    """What a word says depends on the one before it."""
    chance = random.Random(0)
    rows = []
    for number in range(count):
        words = [chance.choice(OTHER) for _ in range(4)]
        words.insert(chance.randrange(5), chance.choice(BAD if number % 2 else GOOD))
        rows.append((" ".join(words), "sad" if number % 2 else "glad"))
    return rows


def recipe(*more: str) -> Recipe:
    return Recipe.of({"task": "classify"}).override(*SETTINGS, *more)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bag") / "run"
    list(train(recipe("train.learning_rate=0.01"), folder, examples=reviews()))
    return load(folder)


def test_tokens_are_words_and_pairs_that_training_has_seen():
    field = WordPairs.fit(["a b c", "b c!"], Recipe.of({"task": "classify"}).data)
    assert field.names(field.encode("a b c")) == ["a", "b", "a b", "c", "b c"]
    assert field.names(field.encode("c b x")) == ["c", "b", "<unk>"]
    assert field.names(field.encode("a b a b x y")) == ["a", "b", "a b", "<unk>"]  # each once
    assert field.decode(field.encode("a  b c")) == "a b c" and not len(field.encode(""))
    again = WordPairs.from_json(field.to_json())
    assert again.to_json() == field.to_json()
    with pytest.raises(RunError):
        WordPairs.from_json({"kind": "ngrams", "lowercase": True, "symbols": ["a"]})


def spell(rows):
    """Texts as numbers of their letters and pairs of letters, and how many there are."""
    letters = sorted({letter for text, _ in rows for letter in text})
    pairs = sorted({text[n : n + 2] for text, _ in rows for n in range(len(text) - 1)})
    numbers = {symbol: number for number, symbol in enumerate([*letters, *pairs])}
    texts = [[numbers[text[n : n + k]] for k in (1, 2) for n in range(len(text) - k + 1)] for text, _ in rows]
    return texts, len(numbers)


@pytest.mark.parametrize("names", ["bad good", "bad good so-so"])
def test_evidence_is_that_of_nb_svm(names):
    labels = names.split()
    rows = [(text.replace(" ", ""), labels[n % len(labels)]) for n, (text, _) in enumerate(reviews(60))]
    baseline = NBSVM.fit(*map(list, zip(*rows, strict=True)), cut=list)
    texts, symbols = spell(rows)
    ids = Ragged.of([[baseline.labels.index(label)] for _, label in rows])
    evidence, biases = weigh_evidence(Ragged.of(texts), ids, symbols, len(labels))
    sums = np.stack([evidence[sorted(set(text))].sum(0) for text in texts]) + biases
    theirs = baseline.scores([text for text, _ in rows])
    np.testing.assert_allclose(sums[:, 1], theirs[:, 1], atol=1e-6)
    np.testing.assert_allclose(sums, theirs, atol=1e-2 if len(labels) == 2 else 1e-6)  # of two, theirs is fitted once


def test_a_text_whose_label_is_not_known_counts_for_nothing():
    rows = [(text.replace(" ", ""), label) for text, label in reviews(60)]
    texts, symbols = spell(rows)
    ids = [[int(label == rows[0][1])] for _, label in rows]
    known = [n for n in range(len(rows)) if n % 4]
    some = Ragged.of([one if n % 4 else [-1] for n, one in enumerate(ids)])
    expected = weigh_evidence(Ragged.of([texts[n] for n in known]), Ragged.of([ids[n] for n in known]), symbols, 2)
    for one, other in zip(weigh_evidence(Ragged.of(texts), some, symbols, 2), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_the_trust_is_the_one_by_which_validation_is_likeliest():
    """Symbol 0 speaks for label 1, and is right in three of four texts: log 3 is what it should say."""
    source, labels = Ragged.of([[0]] * 8), Ragged.of([[1]] * 6 + [[0]] * 2)
    for says, best in ((np.log(3), 1.0), (np.log(3) / 2, 2.0), (4 * np.log(3), 0.25)):
        assert choose_trust(np.array([[0.0, says]]), np.zeros(2), 1.0, source, labels) == best
    assert choose_trust(np.zeros((1, 2)), np.zeros(2), 1.0, source, Ragged.of([[-1]] * 8)) == 1.0


def test_it_begins_as_naive_bayes_unless_that_is_refused(tmp_path):
    """Pairs decide here, and naive Bayes has them: hardly a step is needed; without it, a step teaches nothing."""
    accuracies = []
    for way in ("true", "false"):
        settings = f"model.naive_bayes={way}", "train.steps=1", "train.learning_rate=1e-6", "model.dropout=0"
        *_, last = train(recipe(*settings), tmp_path / way, examples=reviews())
        accuracies.append(last.final["scores"]["accuracy"]["value"])
    assert accuracies[0] > 0.9 > accuracies[1] + 0.1


def test_a_text_of_usual_length_begins_with_what_nb_svm_says_of_it():
    """Others with the same times the square root of the usual length over their own; all times one trust."""
    task, prepared = prepare_task(
        recipe("model.dropout=0", "model.embedding=6"), note=lambda line: None, examples=reviews()
    )
    model = task.shape.build().eval()
    assert task.initialize(model, lambda line: None)
    train, given = (prepared.splits[part].ids for part in ("train", "validation"))
    evidence, biases = weigh_evidence(train["source"], train["target"], len(task.source), 2)
    scale = np.sqrt(train["source"].lengths.mean() / given["source"].lengths)[:, None]
    said = np.stack([evidence[text].sum(0) for text in map(given["source"].__getitem__, range(len(scale)))]) * scale
    with torch.no_grad():
        ours = [model(torch.from_numpy(given["source"][n])[None].long(), full(n, given)) for n in range(len(scale))]
    gaps = np.concatenate([logits.numpy() for logits in ours])
    trusts = (gaps[:, 1] - gaps[:, 0]) / ((said + biases)[:, 1] - (said + biases)[:, 0])
    np.testing.assert_allclose(trusts, min(TRUSTS, key=lambda one: abs(one - trusts.mean())), rtol=0.1)
    notes = []
    other, _ = prepare_task(recipe("model.pool=max", "model.embedding=6"), note=lambda line: None, examples=reviews())
    assert not other.initialize(other.shape.build(), notes.append) and "sqrtn" in notes[0]


def full(row, given):
    return torch.ones(1, given["source"].lengths[row], dtype=torch.bool)


def test_padding_and_neighbors_change_nothing(run):
    texts = ["good film", "not good film day song plot", "bad"]
    together = [answers[0] for answers in run.task.shape.predict(run.model, texts)]
    alone = [run.predict(text)[0] for text in texts]
    assert [one.output for one in together] == [one.output for one in alone]
    np.testing.assert_allclose([one.score for one in together], [one.score for one in alone], atol=1e-5)
    x, mask = torch.randn(2, 4, 6), torch.tensor([[True, True, False, False], [True] * 4])
    spoiled = x.masked_fill(~mask[..., None], torch.nan)
    torch.testing.assert_close(run.model.encoder(x, mask).summary, run.model.encoder(spoiled, mask).summary)


def test_it_resumes_exactly(tmp_path):
    rows, changed = reviews(), recipe("train.checkpoint_every=2", "train.validate_every=3")
    list(train(changed, tmp_path / "whole", examples=rows))
    records = measured(train(changed, tmp_path / "cut", examples=rows))
    next(records)
    records.close()
    list(train(changed, tmp_path / "cut", examples=rows, resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


def test_only_texts_that_are_classified(tmp_path):
    for words in (["task=tag"], ["task=language"], ["data.source_type=numbers"], ["model.embedding=8"]):
        with pytest.raises(RecipeError):
            Recipe.of({"task": "classify"}).override(*words, "model.kind=bag", "model.size=6")
    with pytest.raises(RecipeError, match="ngrams"):
        Recipe.read("seq2seq", "data.source_tokenizer=ngrams")


def test_an_exported_bag_answers_alike(run, tmp_path):
    from seqloom.exchange.onnx import save

    save(run, tmp_path / "out")
    texts = [text for text, _ in reviews(6)] + ["Not GOOD, unheard-of"]
    done = subprocess.run([sys.executable, "predict.py", *texts], cwd=tmp_path / "out", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [run.predict(text)[0].output for text in texts]
