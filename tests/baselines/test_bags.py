"""Naive Bayes against scikit-learn's, on the same features."""

import random

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from seqloom.baselines.bags import NaiveBayes, split_words


def reviews(seed: int, count: int) -> tuple[list[str], list[str]]:
    """Texts of words that each class likes differently; some are empty."""
    draw = random.Random(seed)
    labels = ["a", "b", "c"] + draw.choices("abc", k=count)
    kinds = {"a": "good fine so . a", "b": "bad poor so . not good", "c": "so so ! so . is it ?"}
    return [" ".join(draw.choices(kinds[label].split(), k=draw.randint(0, 7))) for label in labels], labels


def test_naive_bayes_is_scikit_learns_on_words_and_pairs_that_occur():
    for seed in range(100):
        texts, labels = reviews(seed, 20)
        others = [text + " never seen good" for text in reviews(seed + 1000, 10)[0]]
        counter = CountVectorizer(analyzer=pairs_too, binary=True)
        theirs = MultinomialNB(alpha=0.5).fit(counter.fit_transform(texts), labels)
        expected = theirs.predict_joint_log_proba(counter.transform(others))
        model = NaiveBayes.fit(texts, labels, smoothing=0.5)
        assert model.scores(others) == pytest.approx(expected, abs=1e-9)
        assert model.predict(others) == theirs.classes_[expected.argmax(1)].tolist()


def pairs_too(text: str) -> list[str]:
    found = split_words(text)
    return found + [" ".join(pair) for pair in zip(found, found[1:], strict=False)]


def test_an_unknown_word_stands_between_its_neighbors():
    model = NaiveBayes.fit(["a b", "b a", "c"], ["x", "y", "z"])
    apart, nothing = model.scores(["a unknown b", "unknown"])
    without_pairs = model.evidence[:, [model.features.numbers[word] for word in "ab"]].sum(1)
    assert apart - nothing == pytest.approx(without_pairs)
    assert nothing == pytest.approx(np.log([1 / 3] * 3))


def test_texts_without_any_pair_are_classified():
    assert NaiveBayes.fit(["yes", "no"], [1, 0]).predict(["yes", "no no", "yes no yes"]) == [1, 0, 0]


def test_words_are_lower_cased_and_signs_stand_alone():
    assert split_words("It's GREAT!!  ÄB 1") == ["it", "'", "s", "great", "!", "!", "äb", "1"]
