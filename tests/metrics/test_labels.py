"""Labels against scikit-learn and against scoring every resample anew."""

import random
import warnings

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.preprocessing import MultiLabelBinarizer

from seqloom.metrics import accuracy, confusion_matrix, f1, multilabel_f1, per_class, subset_accuracy
from seqloom.metrics.score import BOOTSTRAP_SEED, RESAMPLES

CASES = 200
AVERAGES = ("macro", "micro", "weighted")


def labels(seed: int) -> tuple[list[str], list[str]]:
    """Predictions that are right about half of the time; some classes are only predicted, or never."""
    draw = random.Random(seed)
    classes = "abcdefgh"[: draw.randint(1, 8)]
    targets = draw.choices(classes, k=draw.randint(1, 30))
    return [t if draw.random() < 0.5 else draw.choice(classes + "z") for t in targets], targets


def sets(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    draw = random.Random(seed)
    count = draw.randint(1, 20)
    targets = [draw.sample("abcdef", draw.randint(0, 3)) for _ in range(count)]
    predictions = [t if draw.random() < 0.4 else draw.sample("abcdefg", draw.randint(0, 3)) for t in targets]
    return predictions, targets


def test_accuracy_and_f1_are_scikit_learns():
    for seed in range(CASES):
        predictions, targets = labels(seed)
        assert accuracy(predictions, targets, intervals=False).value == sklearn_metrics.accuracy_score(
            targets, predictions
        )
        for average in AVERAGES:
            theirs = sklearn_metrics.f1_score(targets, predictions, average=average, zero_division=0)
            assert f1(predictions, targets, average, intervals=False).value == pytest.approx(theirs, abs=1e-12)


def test_several_labels_at_once_are_scored_as_scikit_learn_does():
    for seed in range(CASES):
        predictions, targets = sets(seed)
        coder = MultiLabelBinarizer().fit(predictions + targets)
        if not len(coder.classes_):
            continue
        claimed, there = coder.transform(predictions), coder.transform(targets)
        assert subset_accuracy(predictions, targets, intervals=False).value == pytest.approx(
            sklearn_metrics.accuracy_score(there, claimed)
        )
        for average in AVERAGES:
            theirs = sklearn_metrics.f1_score(there, claimed, average=average, zero_division=0)
            ours = multilabel_f1(predictions, targets, average, intervals=False).value
            assert ours == pytest.approx(theirs, abs=1e-12)


def test_the_confusion_matrix_has_true_classes_as_rows():
    for seed in range(CASES):
        predictions, targets = labels(seed)
        ours = confusion_matrix(predictions, targets)
        with warnings.catch_warnings():  # scikit-learn warns of a single class
            warnings.simplefilter("ignore")
            theirs = sklearn_metrics.confusion_matrix(targets, predictions, labels=ours.labels)
        assert ours.labels == tuple(sorted({*predictions, *targets}))
        assert ours.counts.tolist() == theirs.tolist()


def test_the_table_of_classes_is_scikit_learns():
    for seed in range(CASES):
        predictions, targets = labels(seed)
        ours = per_class(predictions, targets, intervals=False)
        theirs = sklearn_metrics.precision_recall_fscore_support(targets, predictions, labels=[*ours], zero_division=0)
        for number, row in enumerate(ours.values()):
            values = (row.precision.value, row.recall.value, row.f1.value, row.count)
            assert values == pytest.approx([column[number] for column in theirs], abs=1e-12)


@pytest.mark.parametrize("average", AVERAGES)
def test_the_interval_is_that_of_scoring_every_resample_anew(average):
    several = [labels(seed) for seed in range(5)]
    predictions, targets = (np.array(sum((pair[side] for pair in several), [])) for side in (0, 1))
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = []
    for _ in range(RESAMPLES):
        rows = generator.integers(len(targets), size=len(targets))
        drawn.append(f1(predictions[rows].tolist(), targets[rows].tolist(), average, intervals=False).value)
    whole = f1(predictions.tolist(), targets.tolist(), average)
    assert whole.interval == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=1e-9)


def test_each_class_has_intervals_around_its_values():
    predictions, targets = labels(7)
    for row in per_class(predictions * 5, targets * 5).values():
        for score in (row.precision, row.recall, row.f1):
            low, high = score.interval
            assert low <= score.value <= high


def test_the_order_of_labels_and_their_repetition_do_not_matter():
    assert subset_accuracy([["a", "b"], ["b", "b"]], [("b", "a"), {"b"}]).value == 1


def test_labels_may_be_numbers():
    assert f1([1, 2, 10], [1, 2, 10]).value == 1
    assert confusion_matrix([1, 2, 2], [1, 2, 1]).counts.tolist() == [[1, 1], [0, 1]]


def test_one_prediction_too_few_is_refused():
    for metric in (accuracy, f1, multilabel_f1, confusion_matrix):
        with pytest.raises((ValueError, AssertionError)):
            metric(["a"], ["a", "b"])
