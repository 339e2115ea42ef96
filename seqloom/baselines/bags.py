"""Naive Bayes on a bag of words and pairs of neighbors: what a text classifier must beat to have read anything.

Multinomial naive Bayes on whether a feature occurs (Wang and Manning, 2012). It is fitted, asked and forgotten: its
tables grow with the training texts, so they are not stored with a model. This file knows words, not where texts end.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ..arrays import Doubles, Integers

Label = TypeVar("Label", bound=Hashable)
Words = Callable[[str], Sequence[str]]

UNKNOWN = -1
WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Lower-cased words, and every other sign for itself."""
    return WORD.findall(text.lower())


@dataclass(frozen=True)
class WordPairs:
    """The words of some texts and the pairs of neighbors, by number: words first."""

    numbers: dict[str, int]  # of each word
    pairs: Integers  # sorted: first word × number of words + second word
    cut: Words

    def __len__(self) -> int:
        return len(self.numbers) + len(self.pairs)

    @classmethod
    def learn(cls, texts: Sequence[str], cut: Words) -> "tuple[WordPairs, Integers, Integers]":
        """All that occur in the texts; and of each occurrence its text and its number."""
        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(word, len(numbers)) for word in cut(text)] for text in texts]
        text, first, joined = flatten_words(rows, len(numbers))
        known = cls(numbers, sort_unique(joined[joined != UNKNOWN]), cut)
        return known, *list_features(text, first, joined, known.pairs, len(numbers))

    def find(self, texts: Sequence[str]) -> tuple[Integers, Integers]:
        """Of each known word and pair in the texts: its text and its number."""
        rows = [[self.numbers.get(word, UNKNOWN) for word in self.cut(text)] for text in texts]
        return list_features(*flatten_words(rows, len(self.numbers)), self.pairs, len(self.numbers))

    def add_up(self, texts: Sequence[str], weights: Doubles) -> Doubles:
        """The sum of the weights (K, features) of all that occurs in each text: (N, K)"""
        row, feature = self.find(texts)
        return np.stack([np.bincount(row, weights=one[feature], minlength=len(texts)) for one in weights], 1)


@dataclass(frozen=True)
class NaiveBayes(Generic[Label]):
    """How much each word, and each pair of neighbors, speaks for each class."""

    labels: tuple[Label, ...]
    features: WordPairs
    prior: Doubles  # (K,)
    evidence: Doubles  # (K, features), in nats

    @classmethod
    def fit(
        cls, texts: Sequence[str], labels: Sequence[Label], cut: Words = split_words, smoothing: float = 1.0
    ) -> "NaiveBayes[Label]":
        assert texts and len(texts) == len(labels), "a label for every text"
        features, row, feature = WordPairs.learn(texts, cut)
        known = tuple(sorted(set(labels), key=str))
        place = {label: position for position, label in enumerate(known)}
        classes = np.array([place[label] for label in labels])
        size = len(features)
        counts = np.bincount(classes[row] * size + feature, minlength=len(known) * size).reshape(len(known), size)
        smooth = counts + smoothing
        prior = np.log(np.bincount(classes) / len(classes))
        return cls(known, features, prior, np.log(smooth / smooth.sum(1, keepdims=True)))

    def scores(self, texts: Sequence[str]) -> Doubles:
        """The log-probability of each class together with the text's features, up to a constant a text: (N, K)"""
        return self.prior + self.features.add_up(texts, self.evidence)

    def predict(self, texts: Sequence[str]) -> list[Label]:
        return [self.labels[place] for place in self.scores(texts).argmax(1)]


def flatten_words(rows: Sequence[Sequence[int]], size: int) -> tuple[Integers, Integers, Integers]:
    """Of every word: its text, its number, and the number of the pair that it begins; UNKNOWN where it begins none."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    text = np.repeat(np.arange(len(rows)), lengths)
    first = np.fromiter((number for row in rows for number in row), dtype=np.int64, count=int(lengths.sum()))
    joined = np.full(len(first), UNKNOWN)
    begins = (text[:-1] == text[1:]) & (first[:-1] != UNKNOWN) & (first[1:] != UNKNOWN)
    joined[:-1][begins] = (first[:-1] * size + first[1:])[begins]
    return text, first, joined


def list_features(
    text: Integers, first: Integers, joined: Integers, pairs: Integers, size: int
) -> tuple[Integers, Integers]:
    """Every known feature of every text, once: the text and the feature of each."""
    places = np.searchsorted(pairs, joined)
    known = joined != UNKNOWN
    known[known] = np.append(pairs, UNKNOWN)[places[known]] == joined[known]
    single = first != UNKNOWN
    owner = np.concatenate([text[single], text[known]])
    feature = np.concatenate([first[single], places[known] + size])
    total = size + len(pairs)
    once = sort_unique(owner * total + feature)
    return once // total, once % total


def sort_unique(values: Integers) -> Integers:
    """As `np.unique`, which looks for repeats in a hash table first and takes far longer than sorting on so many."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
