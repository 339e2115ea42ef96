"""Baselines of labels against their definitions and scikit-learn."""

import random

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid as TheirCentroid

from seqloom.baselines.labels import NearestCentroid, TagOfWord, predict_uniform


def test_chance_gives_every_label_about_as_often():
    drawn = predict_uniform(["b", "a", "a", "a", "c"], 3000)
    assert set(drawn) == {"a", "b", "c"}
    assert all(900 < drawn.count(label) < 1100 for label in "abc")
    assert drawn == predict_uniform(["c", "b", "a"], 3000) != predict_uniform(["c", "b", "a"], 3000, seed=1)


def test_each_word_gets_its_most_frequent_tag_and_an_unknown_one_the_usual():
    draw = random.Random(1)
    for _ in range(200):
        sentences = [draw.choices("vwxyz", k=draw.randint(1, 6)) for _ in range(6)]
        tags = [[draw.choice("NVA") for _ in words] for words in sentences]
        pairs = [pair for words, given in zip(sentences, tags, strict=True) for pair in zip(words, given, strict=True)]
        model = TagOfWord.fit(sentences, tags)
        for word in "vwxyz":
            [[tag]] = model.predict([[word]])
            relevant = [t for w, t in pairs if w == word] or [t for _, t in pairs]
            assert all(relevant.count(tag) >= relevant.count(other) for other in "NVA")
        assert all(sum(t == model.most_frequent for _, t in pairs) >= sum(t == o for _, t in pairs) for o in "NVA")
        assert model.predict([["unknown", "words"], []]) == [[model.most_frequent] * 2, []]


def test_the_nearest_centroid_is_scikit_learns_on_scaled_means_and_spreads():
    for seed in range(50):
        draw = np.random.default_rng(seed)
        labels = draw.integers(3, size=40)
        labels[:3] = 0, 1, 2
        series = [draw.normal(label, 1 + label, (draw.integers(2, 9), 4)) * [1, 10, 100, 0] for label in labels]
        features = np.array([np.concatenate([one.mean(0), one.std(0)]) for one in series])
        scale = np.where(features[:30].std(0) > 0, features[:30].std(0), 1)
        theirs = TheirCentroid().fit(features[:30, features[:30].std(0) > 0] / scale[scale != 1], labels[:30])
        expected = theirs.predict(features[30:, features[:30].std(0) > 0] / scale[scale != 1])
        assert NearestCentroid.fit(series[:30], labels[:30].tolist()).predict(series[30:]) == expected.tolist()


def test_a_gap_in_a_series_is_left_out():
    whole, gappy = np.array([[1.0], [3.0]]), np.array([[1.0], [np.nan], [3.0]])
    model = NearestCentroid.fit([whole, whole + 5], ["low", "high"])
    assert NearestCentroid.fit([gappy, gappy + 5], ["low", "high"]).centroids == pytest.approx(model.centroids)
    assert model.predict([gappy, np.full((3, 1), np.nan), [5.0, 9.0]]) == ["low", "low", "high"]
