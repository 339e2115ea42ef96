"""What an accuracy hides: how well each class is found, which is taken for which, and how right the confidence is.

All of it goes into the details of a score, as JSON has it: names, numbers and lists.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .labels import accuracy, confusion_matrix, per_class
from .score import Score

CLASSES = 200  # with more, the matrix is left out: it would have more cells than there are examples
BINS = 10  # of confidence


def class_accuracy(predictions: Sequence[str], targets: Sequence[str], *, intervals: bool = True) -> Score:
    """The accuracy; with intervals, its details are precision, recall and F1 of each class and the confusion matrix."""
    score = accuracy(predictions, targets, intervals=intervals)
    return replace(score, details=describe_classes(predictions, targets)) if intervals else score


def describe_classes(predictions: Sequence[str], targets: Sequence[str]) -> dict[str, Any]:
    """By class: precision, recall, F1 and examples; and the matrix, whose rows are the true classes."""
    scores = per_class(predictions, targets, intervals=False)
    classes = {
        str(label): {"precision": one.precision.value, "recall": one.recall.value, "f1": one.f1.value}
        | {"examples": one.count}
        for label, one in scores.items()
    }
    if len(classes) > CLASSES:
        return {"classes": classes}
    return {"classes": classes, "confusion": confusion_matrix(predictions, targets).counts.tolist()}


def calibrate(confidences: ArrayLike, right: ArrayLike, bins: int = BINS) -> dict[str, Any]:
    """How confident the answers were and how often they were right, in bins of equal width that are not empty.

    The error is the expected calibration error (Guo et al., 2017): the mean gap of the two, weighed by examples.
    """
    sure, hits = np.asarray(confidences, dtype=np.float64), np.asarray(right, dtype=np.float64)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    table = [
        {"confidence": float(sure[place == n].mean()), "accuracy": float(hits[place == n].mean())}
        | {"examples": int((place == n).sum())}
        for n in range(bins)
        if (place == n).any()
    ]
    gaps = [one["examples"] * abs(one["confidence"] - one["accuracy"]) for one in table]
    return {"error": float(sum(gaps) / max(len(sure), 1)), "bins": table}
