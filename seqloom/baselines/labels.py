"""Labels without learning, or hardly any: by chance, by habit, by word, by the mean and spread of a series.

What is learned here are a few counts or means. The bag of words, which learns more, is in `bags`.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles

Label = TypeVar("Label", bound=Hashable)


def predict_uniform(labels: Iterable[Label], count: int, seed: int = 0) -> list[Label]:
    """Any label of those in training, each as likely as the other."""
    known = sorted(set(labels), key=str)
    return [known[draw] for draw in np.random.default_rng(seed).integers(len(known), size=count)]


@dataclass(frozen=True)
class TagOfWord(Generic[Label]):
    """Every word gets the tag it has most often in training, an unknown one the tag most frequent overall."""

    most_frequent: Label
    tags: dict[str, Label]  # only of words whose tag is not the most frequent one

    @classmethod
    def fit(cls, sentences: Iterable[Sequence[str]], tags: Iterable[Sequence[Label]]) -> "TagOfWord[Label]":
        counts: defaultdict[str, Counter[Label]] = defaultdict(Counter)
        overall: Counter[Label] = Counter()
        for words, sentence_tags in zip(sentences, tags, strict=True):
            overall.update(sentence_tags)
            for word, tag in zip(words, sentence_tags, strict=True):
                counts[word][tag] += 1
        [(most_frequent, _)] = overall.most_common(1)
        best = {word: tag_counts.most_common(1)[0][0] for word, tag_counts in counts.items()}
        return cls(most_frequent, {word: tag for word, tag in best.items() if tag != most_frequent})

    def predict(self, sentences: Iterable[Sequence[str]]) -> list[list[Label]]:
        return [[self.tags.get(word, self.most_frequent) for word in words] for words in sentences]


@dataclass(frozen=True)
class NearestCentroid(Generic[Label]):
    """The class whose average series is nearest, where a series is the mean and the spread of each variable."""

    labels: tuple[Label, ...]
    centroids: Doubles  # (K, 2 V), in units of `spread`
    spread: Doubles  # (2 V,): how far the training series are apart in each feature

    @classmethod
    def fit(cls, series: Sequence[ArrayLike], labels: Sequence[Label]) -> "NearestCentroid[Label]":
        """Series (T, V) of any lengths, with gaps (NaN) or without."""
        features = _compute_features(series)
        deviation = features.std(0)
        spread = np.where(deviation > 0, deviation, 1)
        known = tuple(sorted(set(labels), key=str))
        number = {label: place for place, label in enumerate(known)}
        classes = np.array([number[label] for label in labels])
        centroids = [features[classes == place].mean(0) / spread for place in range(len(known))]
        return cls(known, np.array(centroids), spread)

    def predict(self, series: Sequence[ArrayLike]) -> list[Label]:
        features = _compute_features(series) / self.spread
        distances = ((features[:, None] - self.centroids) ** 2).sum(-1)
        return [self.labels[place] for place in distances.argmin(1)]


def _compute_features(series: Sequence[ArrayLike]) -> Doubles:
    """Mean and standard deviation of each variable; 0 for a variable of which nothing is known: (N, 2 V)"""
    rows = []
    for one in series:
        values = np.asarray(one, dtype=np.float64)
        values = values.reshape(len(values), -1)
        known = ~np.isnan(values)
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, values, 0).sum(0) / count
        spread = np.sqrt(np.where(known, (values - mean) ** 2, 0).sum(0) / count)
        rows.append(np.concatenate([mean, spread]))
    return np.array(rows)
