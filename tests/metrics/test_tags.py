"""Tags against definitions and plain counting."""

import random

import numpy as np
import pytest

from seqloom.metrics import entity_f1, per_entity, tag_accuracy
from seqloom.metrics.score import BOOTSTRAP_SEED, RESAMPLES
from seqloom.metrics.tags import list_entities, spell_entities

CASES = 200
TAGS = ("O", "B-PER", "I-PER", "E-PER", "S-PER", "B-LOC", "I-LOC", "I-A-B", "B", "I")


def sentences(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Tags of any scheme in any order, most of them predicted rightly."""
    draw = random.Random(seed)
    some = draw.sample(TAGS, draw.randint(2, len(TAGS)))
    targets = [draw.choices(some, k=draw.randint(0, 8)) for _ in range(draw.randint(1, 8))]
    return [[t if draw.random() < 0.8 else draw.choice(some) for t in tags] for tags in targets], targets


def spans(tags: list[str]) -> set[tuple[str, int, int]]:
    """Entities by definition: all pairs of positions, those kept between which one entity begins and ends.

    As conlleval (Tjong Kim Sang and Buchholz 2000) has it: a tag begins an entity if it says so, or if what stands
    before it cannot go on into it.
    """
    parts = [(tag[0], tag[1:].removeprefix("-")) for tag in tags]

    def inside(at: int) -> bool:
        return 0 <= at < len(tags) and parts[at][0] != "O"

    def begins(at: int) -> bool:
        before = parts[at - 1] if inside(at - 1) else None
        return inside(at) and (parts[at][0] in "BS" or before is None or before[0] in "ES" or before[1] != parts[at][1])

    return {
        (parts[first][1], first, last)
        for first in range(len(tags))
        for last in range(first, len(tags))
        if begins(first)
        and all(inside(at) and not begins(at) for at in range(first + 1, last + 1))
        and (not inside(last + 1) or begins(last + 1))
    }


def test_entities_are_those_of_the_definition():
    for seed in range(CASES):
        for tags in sentences(seed)[0]:
            assert len(list_entities(tags)) == len(spans(tags)) and set(list_entities(tags)) == spans(tags)


def test_entity_f1_is_counted_by_hand():
    for seed in range(CASES):
        predictions, targets = sentences(seed)
        assert tag_accuracy(predictions, targets, intervals=False).value == pytest.approx(
            sum(p == t for a, b in zip(predictions, targets, strict=True) for p, t in zip(a, b, strict=True))
            / max(sum(map(len, targets)), 1)
        )
        claimed, there = (
            {(number, *span) for number, tags in enumerate(rows) for span in spans(tags)}
            for rows in (predictions, targets)
        )
        kinds = {kind for _, kind, _, _ in claimed | there}
        f1, support = {}, {}
        scores = per_entity(predictions, targets, intervals=False)
        assert set(scores) == kinds
        for kind in kinds:
            ours, theirs = ({span for span in found if span[1] == kind} for found in (claimed, there))
            both, support[kind] = len(ours & theirs), len(theirs)
            f1[kind] = 2 * both / (len(ours) + len(theirs))
            assert scores[kind].count == len(theirs)
            assert scores[kind].precision.value == pytest.approx(both / len(ours) if ours else 0, abs=1e-12)
            assert scores[kind].recall.value == pytest.approx(both / len(theirs) if theirs else 0, abs=1e-12)
        expected = {
            "micro": 2 * len(claimed & there) / max(len(claimed) + len(there), 1),
            "macro": sum(f1.values()) / max(len(kinds), 1),
            "weighted": sum(f1[kind] * support[kind] for kind in kinds) / max(len(there), 1),
        }
        for average, value in expected.items():
            ours = entity_f1(predictions, targets, average, intervals=False).value
            assert ours == pytest.approx(value, abs=1e-12)


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
