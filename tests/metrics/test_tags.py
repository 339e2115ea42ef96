"""Tags against seqeval and plain counting."""

import random
import warnings

import numpy as np
import pytest
from seqeval import metrics as seqeval_metrics
from seqeval.metrics.sequence_labeling import get_entities

from seqloom.metrics import entity_f1, per_entity, tag_accuracy
from seqloom.metrics.score import BOOTSTRAP_SEED, RESAMPLES
from seqloom.metrics.tags import entities, spell_entities

CASES = 200
TAGS = ("O", "B-PER", "I-PER", "E-PER", "S-PER", "B-LOC", "I-LOC", "I-A-B", "B", "I")


def sentences(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Tags of any scheme in any order, most of them predicted rightly."""
    draw = random.Random(seed)
    some = draw.sample(TAGS, draw.randint(2, len(TAGS)))
    targets = [draw.choices(some, k=draw.randint(0, 8)) for _ in range(draw.randint(1, 8))]
    return [[t if draw.random() < 0.8 else draw.choice(some) for t in tags] for tags in targets], targets


def test_entities_are_those_that_seqeval_finds():
    for seed in range(CASES):
        for tags in sentences(seed)[0]:
            theirs = [("" if kind == "_" else kind, first, last) for kind, first, last in get_entities(tags)]
            assert entities(tags) == theirs


def test_entity_f1_is_seqevals():
    for seed in range(CASES):
        predictions, targets = sentences(seed)
        assert tag_accuracy(predictions, targets, intervals=False).value == pytest.approx(
            sum(p == t for a, b in zip(predictions, targets, strict=True) for p, t in zip(a, b, strict=True))
            / max(sum(map(len, targets)), 1)
        )
        if not any(map(entities, predictions + targets)):
            assert entity_f1(predictions, targets).value == 0
            continue
        with warnings.catch_warnings():  # numpy's advice on how seqeval converts its sums
            warnings.simplefilter("ignore")
            for average in ("micro", "macro", "weighted"):
                theirs = seqeval_metrics.f1_score(targets, predictions, average=average, zero_division=0)
                ours = entity_f1(predictions, targets, average, intervals=False).value
                assert ours == pytest.approx(theirs, abs=1e-12)
            report = seqeval_metrics.classification_report(targets, predictions, output_dict=True, zero_division=0)
        for kind, row in per_entity(predictions, targets, intervals=False).items():
            theirs = report[kind or "_"]
            assert row.count == theirs["support"]
            assert row.precision.value == pytest.approx(theirs["precision"], abs=1e-12)
            assert row.recall.value == pytest.approx(theirs["recall"], abs=1e-12)


def test_whole_sentences_are_resampled():
    predictions, targets = sentences(11)
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = []
    for _ in range(RESAMPLES):
        rows = generator.integers(len(targets), size=len(targets))
        some = [predictions[row] for row in rows], [targets[row] for row in rows]
        drawn.append((entity_f1(*some, intervals=False).value, tag_accuracy(*some, intervals=False).value))
    for number, metric in enumerate((entity_f1, tag_accuracy)):
        expected = np.quantile([pair[number] for pair in drawn], [0.025, 0.975])
        assert metric(predictions, targets).interval == pytest.approx(tuple(expected), abs=1e-9)


def test_tags_that_spell_no_entities_are_told_apart():
    assert spell_entities({"O", "B-PER", "I-PER"})
    assert not spell_entities({"O"})
    assert not spell_entities({"NOUN", "O", "B-PER"})
