"""A head that begins as a logistic regression on what a body knows that was taught before."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from seqloom.config.recipe import Recipe
from seqloom.runs.run import load, train
from seqloom.tasks.linear_probe import PENALTIES, begin_with_probe, choose_penalty, fit_logistic

from ..recipes import texts
from .test_document_reading import TOPICS, documents, pretrain


def clouds(classes: int, count: int = 90, noise: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Points around one center a class."""
    draw = np.random.default_rng(0)
    labels = np.arange(count) % classes
    points = draw.normal(size=(classes, 6))[labels] + noise * draw.normal(size=(count, 6))
    return torch.from_numpy(points), torch.from_numpy(labels)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_the_regression_is_that_of_scikit_learn(classes, penalty):
    features, labels = clouds(classes)
    weight, bias = fit_logistic(features, labels, classes, penalty)
    theirs = LogisticRegression(C=1 / (penalty * len(labels)), tol=1e-10, max_iter=10_000).fit(features, labels)
    ours = torch.softmax(features @ weight.T + bias, -1).numpy()
    if classes == 2:  # one row of weights there, whose square counts once: two rows here, each half of it
        theirs = LogisticRegression(C=2 / (penalty * len(labels)), tol=1e-10, max_iter=10_000).fit(features, labels)
    np.testing.assert_allclose(ours, theirs.predict_proba(features), atol=1e-4)


def test_noise_asks_for_a_larger_penalty_than_what_is_plain():
    noisy, plain = (choose_penalty(*clouds(3, noise=noise), 3, seed=0) for noise in (30.0, 0.1))
    assert noisy == max(PENALTIES) and plain == min(PENALTIES)


def test_the_output_layer_answers_as_the_regression_on_features_as_they_are():
    features, labels = clouds(3)
    shifted, project = (5 + 3 * features).float(), torch.nn.Linear(6, 3)
    penalty = begin_with_probe(project, shifted, labels, seed=0)
    scaled = (features - features.mean(0)) / features.std()
    weight, bias = fit_logistic(scaled, labels, 3, penalty)
    torch.testing.assert_close(project(shifted).double(), scaled @ weight.T + bias, atol=1e-3, rtol=1e-3)


def test_a_classifier_knows_most_before_its_first_step(tmp_path):
    body = tmp_path / "body"
    more = ("train.steps=80", "train.validate_every=80", "train.learning_rate=0.02")
    list(train(pretrain("lstm", *more), body, examples=documents()))
    rows = [(text, list(TOPICS)[number % 2]) for number, (text,) in enumerate(documents()["train"])]
    examples = {"train": rows[:20], "validation": rows[20:40], "test": rows[20:]}
    still = (f"model.from={body}", "data.sample=", "train.steps=1", "train.learning_rate=1e-9")
    said = texts(train(Recipe.read("classify", *still), tmp_path / "probe", examples=examples))
    assert any("the head begins as a logistic regression on what the body knows of 20 " in line for line in said)
    assert load(tmp_path / "probe").scores["scores"]["accuracy"]["value"] == 1
    off = texts(train(Recipe.read("classify", *still, "train.linear_probe=false"), tmp_path / "off", examples=examples))
    assert not any("logistic" in line for line in off)
    deep = texts(train(Recipe.read("classify", *still, "model.hidden=4"), tmp_path / "deep", examples=examples))
    assert any("the head begins at random: model.hidden puts a layer before the labels" in line for line in deep)


def test_a_head_that_comes_along_is_kept(tmp_path):
    rows = [(text, list(TOPICS)[number % 2]) for number, (text,) in enumerate(documents()["train"])]
    examples = {"train": rows, "validation": rows[:6], "test": rows[:6]}
    small = ("data.sample=", "model.kind=gru", "model.size=8", "train.steps=2", "data.source_tokenizer=words")
    list(train(Recipe.read("classify", *small), tmp_path / "first", examples=examples))
    again = Recipe.read("classify", "data.sample=", f"model.from={tmp_path / 'first'}", "train.steps=1")
    assert not any("logistic" in line for line in texts(train(again, tmp_path / "second", examples=examples)))


def test_a_tagger_knows_most_before_its_first_step(tmp_path):
    """Words that nobody labeled stand where words stand that somebody did."""
    draw = np.random.default_rng(0)
    kinds = {"NOUN": [f"n{number}" for number in range(12)], "VERB": [f"v{number}" for number in range(12)]}
    sentences = [[("the", "DET")] for _ in range(400)]
    for sentence in sentences:
        for kind in ("NOUN", "VERB", "NOUN"):
            sentence.append((str(draw.choice(kinds[kind])), kind))
    words = [(" ".join(word for word, _ in sentence),) for sentence in sentences]
    body = ("data.sample=", "train.objective=bidirectional", "model.kind=gru", "model.bidirectional=true")
    body += ("model.merge=separate", "model.tied=false", "model.size=16", "model.depth=1", "data.window=32")
    body += ("data.target_tokenizer=spaced", "train.batch_tokens=256", "train.steps=150", "train.learning_rate=0.01")
    examples = {"train": words, "validation": words[:40], "test": words[:40]}
    list(train(Recipe.read("pretrain", *body), tmp_path / "body", examples=examples))
    pairs = [tuple("\t".join(column) for column in zip(*sentence, strict=True)) for sentence in sentences]
    examples = {"train": pairs[:4], "validation": pairs[4:8], "test": pairs[100:]}
    still = ("data.sample=", f"model.from={tmp_path / 'body'}", "train.steps=1", "train.learning_rate=1e-9")
    said = texts(train(Recipe.read("tag", *still), tmp_path / "probe", examples=examples))
    assert any("the head begins as a logistic regression on what the body knows of 16 " in line for line in said)
    accuracy = load(tmp_path / "probe").scores["scores"]["accuracy"]
    assert accuracy["value"] > 0.95 > accuracy["baselines"]["tag of the word"] + 0.1
