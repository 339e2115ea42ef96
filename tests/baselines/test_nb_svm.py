"""NB-SVM: its linear classifier against scikit-learn's, its weights against the formula."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from seqloom.baselines.nb_svm import INTERPOLATION, NBSVM

from .test_bags import pairs_too, reviews


def spell_out(texts: list[str], labels: list[str], asked: list[str], label: str) -> np.ndarray:
    """The score of one label against all others, by the published formula and scikit-learn's optimizer."""
    counter = CountVectorizer(analyzer=pairs_too, binary=True)
    x, mine = counter.fit_transform(texts).toarray(), np.array([one == label for one in labels])
    p, q = x[mine].sum(0) + 1, x[~mine].sum(0) + 1
    ratio = np.log((p / p.sum()) / (q / q.sum()))
    linear = LogisticRegression(C=1.0, tol=1e-9, max_iter=10_000).fit(x * ratio, mine)
    weight = linear.coef_[0]
    mixed = (1 - INTERPOLATION) * np.abs(weight).mean() + INTERPOLATION * weight
    return counter.transform(asked).toarray() @ (ratio * mixed) + INTERPOLATION * linear.intercept_[0]


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_formula_with_scikit_learns_classifier(seed):
    texts, labels = reviews(seed, 30)
    asked = reviews(seed + 100, 10)[0]
    found = NBSVM.fit(texts, labels).scores(asked)
    for place, label in enumerate("abc"):
        np.testing.assert_allclose(found[:, place], spell_out(texts, labels, asked, label), atol=1e-3)
    two = [(text, label) for text, label in zip(texts, labels, strict=True) if label != "c"]
    texts, labels = map(list, zip(*two, strict=True))
    model = NBSVM.fit(texts, labels)
    np.testing.assert_allclose(model.scores(asked)[:, 1], spell_out(texts, labels, asked, "b"), atol=1e-3)
    np.testing.assert_array_equal(model.scores(asked)[:, 0], -model.scores(asked)[:, 1])


def test_it_tells_apart_what_a_word_or_a_pair_tells_apart():
    texts = ["a good film", "a bad film", "good not really", "really not good"] * 5
    labels = ["+", "-", "+", "-"] * 5
    model = NBSVM.fit(texts, labels)
    assert model.predict(texts) == labels
    assert model.predict(["never seen"])[0] in labels
