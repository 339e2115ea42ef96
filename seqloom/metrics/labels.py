"""How good labels are: one label an example, or several at once; and which classes are mistaken for which.

What was claimed, what was there, and what was both are kept as pairs of an example and a class, so that one label,
several labels and entities in a sentence (`tags`) are the same count. This file knows labels, not what they label.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..arrays import Doubles
from .score import Draws, Score, limits, ratio, resample, score_sums

Average = Literal["macro", "micro", "weighted"]
SHARE = "share of examples, 0 to 1"


@dataclass(frozen=True)
class Confusion:
    """How often each class (row) was called each class (column)."""

    labels: tuple[Hashable, ...]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class ClassScores:
    """How well one class is found, and how many examples of it there are."""

    precision: Score
    recall: Score
    f1: Score
    count: int


@dataclass(frozen=True)
class LabelPairs:
    """Pairs of an example and a class: those claimed, those that are there, and those that are both."""

    classes: tuple[Hashable, ...]
    examples: int  # N
    example: NDArray[np.int64]  # of each pair
    cell: NDArray[np.int64]  # of each pair: its class, plus K if it is there, plus 2 K if it was claimed as well

    def tallies(self, times: Doubles) -> Doubles:
        """How many of each class were claimed, there, and both, each example counting so often: (R, N) → (R, 3, K)"""
        cells = 3 * len(self.classes)
        counted = [np.bincount(self.cell, weights=row[self.example], minlength=cells) for row in times]
        return np.reshape(counted, (len(times), 3, -1))


def accuracy(predictions: Sequence[Hashable], targets: Sequence[Hashable], *, intervals: bool = True) -> Score:
    """The share (0 to 1) of examples with the right label."""
    right = [[prediction == target, 1] for prediction, target in zip(predictions, targets, strict=True)]
    return score_sums(right, ratio, "higher", SHARE, intervals=intervals)


def subset_accuracy(
    predictions: Sequence[Collection[Hashable]], targets: Sequence[Collection[Hashable]], *, intervals: bool = True
) -> Score:
    """The share (0 to 1) of examples of which every label is right and none is missing."""
    return accuracy([frozenset(p) for p in predictions], [frozenset(t) for t in targets], intervals=intervals)


def f1(
    predictions: Sequence[Hashable],
    targets: Sequence[Hashable],
    average: Average = "macro",
    *,
    intervals: bool = True,
) -> Score:
    """F1 (0 to 1) of one label an example, averaged over the classes that occur."""
    return score_f1(find_labels(predictions, targets), average, intervals=intervals)


def multilabel_f1(
    predictions: Sequence[Collection[Hashable]],
    targets: Sequence[Collection[Hashable]],
    average: Average = "macro",
    *,
    intervals: bool = True,
) -> Score:
    """F1 (0 to 1) where an example has any number of labels."""
    return score_f1(find_sets(predictions, targets), average, intervals=intervals)


def confusion_matrix(predictions: Sequence[Hashable], targets: Sequence[Hashable]) -> Confusion:
    """Rows are the true classes, columns the predicted ones."""
    classes, claimed, there = _number_classes(predictions, targets)
    counts = np.bincount(there * len(classes) + claimed, minlength=len(classes) ** 2)
    return Confusion(classes, counts.reshape(len(classes), len(classes)))


def per_class(
    predictions: Sequence[Hashable], targets: Sequence[Hashable], *, intervals: bool = True
) -> dict[Hashable, ClassScores]:
    """Precision, recall and F1 of each class that occurs."""
    return score_classes(find_labels(predictions, targets), intervals=intervals)


def find_labels(predictions: Sequence[Hashable], targets: Sequence[Hashable]) -> LabelPairs:
    """One label an example."""
    classes, claimed, there = _number_classes(predictions, targets)
    rows = np.arange(len(claimed))
    right = claimed == there
    example = np.concatenate([rows, rows, rows[right]])
    cell = np.concatenate([claimed, there + len(classes), claimed[right] + 2 * len(classes)])
    return LabelPairs(classes, len(rows), example, cell)


def find_sets(
    predictions: Sequence[Collection[Hashable]],
    targets: Sequence[Collection[Hashable]],
    class_of: Callable[[Hashable], Hashable] = lambda label: label,
) -> LabelPairs:
    """Any number of labels an example, each once; what is counted as a class may be only a part of the label."""
    assert len(predictions) == len(targets), "as many predictions as targets"
    classes = tuple(sorted({class_of(label) for labels in (*predictions, *targets) for label in labels}, key=str))
    number = {label: position for position, label in enumerate(classes)}
    example: list[int] = []
    cell: list[int] = []
    for row, (claimed, there) in enumerate(zip(map(set, predictions), map(set, targets), strict=True)):
        for kind, labels in enumerate((claimed, there, claimed & there)):
            example.extend([row] * len(labels))
            cell.extend(number[class_of(label)] + kind * len(classes) for label in labels)
    return LabelPairs(classes, len(targets), np.array(example, dtype=np.int64), np.array(cell, dtype=np.int64))


def score_f1(pairs: LabelPairs, average: Average, *, intervals: bool) -> Score:
    """One F1 over all classes."""
    assert pairs.examples, "nothing to score: the caller has to see to it that there are examples"
    averaged, scale = AVERAGES[average]
    value = averaged(pairs.tallies(np.ones((1, pairs.examples))))
    draws = None
    if intervals:
        draws = Draws(resample(pairs.examples, lambda times: averaged(pairs.tallies(times))), pairs.examples)
    return Score(float(value[0]), limits(draws), "higher", scale, draws=draws)


def score_classes(pairs: LabelPairs, *, intervals: bool) -> dict[Hashable, ClassScores]:
    """Precision, recall and F1 of each class."""
    tallies = pairs.tallies(np.ones((1, pairs.examples)))
    values = _compute_rates(tallies)[0]
    drawn = resample(pairs.examples, lambda times: _compute_rates(pairs.tallies(times))) if intervals else None

    def score(rate: int, position: int) -> Score:
        draws = None if drawn is None else Draws(drawn[:, rate, position], pairs.examples)
        return Score(float(values[rate, position]), limits(draws), "higher", "0 to 1", draws=draws)

    return {
        label: ClassScores(score(0, position), score(1, position), score(2, position), int(tallies[0, 1, position]))
        for position, label in enumerate(pairs.classes)
    }


def _number_classes(
    predictions: Sequence[Hashable], targets: Sequence[Hashable]
) -> tuple[tuple[Hashable, ...], NDArray[np.int64], NDArray[np.int64]]:
    """The classes in order, and each label as its place among them."""
    assert len(predictions) == len(targets), "as many predictions as targets"
    classes = tuple(sorted({*predictions, *targets}, key=str))
    number = {label: position for position, label in enumerate(classes)}
    claimed, there = ([number[label] for label in labels] for labels in (predictions, targets))
    return classes, np.array(claimed, dtype=np.int64), np.array(there, dtype=np.int64)


def _divide(part: Doubles, whole: Doubles) -> Doubles:
    """Nothing out of nothing is 0, as in the field's other implementations."""
    return part / np.where(whole > 0, whole, 1)


def _compute_rates(tallies: Doubles) -> Doubles:
    """Precision, recall and F1 of each class: (R, 3, K) → (R, 3, K)"""
    claimed, there, both = np.moveaxis(tallies, -2, 0)
    return np.stack([_divide(both, claimed), _divide(both, there), _divide(2 * both, claimed + there)], -2)


def _average_macro(tallies: Doubles) -> Doubles:
    """A class that was neither drawn nor claimed says nothing."""
    occurs = tallies[..., 0, :] + tallies[..., 1, :] > 0
    return _divide(_compute_rates(tallies)[..., 2, :].sum(-1), occurs.sum(-1).astype(np.float64))


def _average_micro(tallies: Doubles) -> Doubles:
    claimed, there, both = np.moveaxis(tallies.sum(-1), -1, 0)
    return _divide(2 * both, claimed + there)


def _average_weighted(tallies: Doubles) -> Doubles:
    there = tallies[..., 1, :]
    return _divide((_compute_rates(tallies)[..., 2, :] * there).sum(-1), there.sum(-1))


AVERAGES: dict[Average, tuple[Callable[[Doubles], Doubles], str]] = {
    "macro": (_average_macro, "mean F1 of the classes, 0 to 1"),
    "micro": (_average_micro, "F1 over all labels, 0 to 1"),
    "weighted": (_average_weighted, "mean F1 of the classes, each as often as it occurs, 0 to 1"),
}
