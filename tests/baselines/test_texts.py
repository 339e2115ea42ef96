"""Baselines against their plain definitions."""

import random

from seqloom.baselines import copy_and_most_frequent, most_frequent


def test_no_target_is_more_frequent_than_the_most_frequent():
    draw = random.Random(2)
    for _ in range(200):
        targets = [draw.choice("abcde") for _ in range(draw.randint(1, 30))]
        chosen = most_frequent(targets)
        assert all(targets.count(chosen) >= targets.count(other) for other in targets)


def test_of_equally_frequent_targets_the_first_counts():
    assert most_frequent(iter(["c", "a", "a", "c", "b"])) == "c"


def test_without_training_targets_the_usual_answer_is_empty():
    assert most_frequent([]) == ""


def test_each_baseline_answers_every_source():
    assert copy_and_most_frequent(["a", "", "ü 猫"], "b") == {
        "copy": ["a", "", "ü 猫"],
        "most frequent": ["b", "b", "b"],
    }
