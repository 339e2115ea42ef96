"""Classes one by one and calibration, beside scikit-learn and beside a count by hand."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from seqloom.metrics.classes import CLASSES, calibrate, class_accuracy


def drawn(count, classes, seed):
    chance = np.random.default_rng(seed)
    true = [f"class {n}" for n in chance.integers(0, classes, count)]
    told = [one if chance.random() < 0.6 else f"class {chance.integers(0, classes + 1)}" for one in true]
    return told, true


@pytest.mark.parametrize(("count", "classes"), [(200, 4), (30, 12), (3, 2)])
def test_the_details_are_those_of_scikit_learn(count, classes):
    told, true = drawn(count, classes, seed=count)
    details = class_accuracy(told, true).to_json()
    names = list(details["classes"])
    assert details["confusion"] == confusion_matrix(true, told, labels=names).tolist()
    rates = precision_recall_fscore_support(true, told, labels=names, zero_division=0)
    for kind, expected in zip(("precision", "recall", "f1", "examples"), rates, strict=True):
        assert [details["classes"][name][kind] for name in names] == pytest.approx(expected)


def test_a_baseline_has_no_details_and_very_many_classes_no_matrix():
    told, true = drawn(50, 3, seed=0)
    assert class_accuracy(told, true, intervals=False).details == {}
    many = [str(n) for n in range(CLASSES + 1)]
    assert set(class_accuracy(many, many).details) == {"classes"}


def test_the_calibration_error_is_the_mean_gap_of_confidence_and_accuracy():
    chance = np.random.default_rng(0)
    sure = chance.random(500)
    right = chance.random(500) < sure**2  # too sure everywhere
    found = calibrate(sure, right, bins=5)
    gap = 0.0
    for low in (0, 0.2, 0.4, 0.6, 0.8):
        inside = (sure >= low) & (sure < low + 0.2)
        gap += inside.sum() / 500 * abs(sure[inside].mean() - right[inside].mean())
    assert found["error"] == pytest.approx(gap) and found["error"] > 0.1
    assert sum(one["examples"] for one in found["bins"]) == 500
    assert calibrate([1.0, 1.0], [True, True])["error"] == 0 and calibrate([1.0], [False])["error"] == 1
