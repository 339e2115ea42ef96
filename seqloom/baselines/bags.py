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


def words(text: str) -> list[str]:
    """Lower-cased words, and every other sign for itself."""
    return WORD.findall(text.lower())


@dataclass(frozen=True)
class NaiveBayes(Generic[Label]):
    """How much each word, and each pair of neighbors, speaks for each class."""

    labels: tuple[Label, ...]
    numbers: dict[str, int]  # of each word
    pairs: Integers  # sorted: first word × number of words + second word
    prior: Doubles  # (K,)
    evidence: Doubles  # (K, words + pairs), in nats
    cut: Words

    @classmethod
    def fit(
        cls, texts: Sequence[str], labels: Sequence[Label], cut: Words = words, smoothing: float = 1.0
    ) -> "NaiveBayes[Label]":
        assert texts and len(texts) == len(labels), "a label for every text"
        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(word, len(numbers)) for word in cut(text)] for text in texts]
        text, first, joined = _flat(rows, len(numbers))
        pairs = _distinct(joined[joined != UNKNOWN])
        found, feature = _features(text, first, joined, pairs, len(numbers))
        known = tuple(sorted(set(labels), key=str))
        place = {label: position for position, label in enumerate(known)}
        classes = np.array([place[label] for label in labels])
        size = len(numbers) + len(pairs)
        counts = np.bincount(classes[found] * size + feature, minlength=len(known) * size).reshape(len(known), size)
        smooth = counts + smoothing
        prior = np.log(np.bincount(classes) / len(classes))
        return cls(known, numbers, pairs, prior, np.log(smooth / smooth.sum(1, keepdims=True)), cut)

    def scores(self, texts: Sequence[str]) -> Doubles:
        """The log-probability of each class together with the text's features, up to a constant a text: (N, K)"""
        rows = [[self.numbers.get(word, UNKNOWN) for word in self.cut(text)] for text in texts]
        found, feature = _features(*_flat(rows, len(self.numbers)), self.pairs, len(self.numbers))
        sums = [np.bincount(found, weights=weights[feature], minlength=len(texts)) for weights in self.evidence]
        return self.prior + np.stack(sums, 1)

    def predict(self, texts: Sequence[str]) -> list[Label]:
        return [self.labels[place] for place in self.scores(texts).argmax(1)]


def _flat(rows: Sequence[Sequence[int]], size: int) -> tuple[Integers, Integers, Integers]:
    """Of every word: its text, its number, and the number of the pair that it begins; UNKNOWN where it begins none."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    text = np.repeat(np.arange(len(rows)), lengths)
    first = np.fromiter((number for row in rows for number in row), dtype=np.int64, count=int(lengths.sum()))
    joined = np.full(len(first), UNKNOWN)
    begins = (text[:-1] == text[1:]) & (first[:-1] != UNKNOWN) & (first[1:] != UNKNOWN)
    joined[:-1][begins] = (first[:-1] * size + first[1:])[begins]
    return text, first, joined


def _features(
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
    once = _distinct(owner * total + feature)
    return once // total, once % total


def _distinct(values: Integers) -> Integers:
    """As `np.unique`, which looks for repeats in a hash table first and takes far longer than sorting on so many."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
