"""Bins of lengths against plain counting."""

import random

import pytest

from seqloom.metrics import exact_match, score_by_length


def answers(seed: int) -> tuple[list[str], list[str], list[int]]:
    draw = random.Random(seed)
    references = ["x" * draw.randint(0, 20) for _ in range(draw.randint(1, 60))]
    predictions = [text if draw.random() < 0.7 else "?" for text in references]
    return predictions, references, [len(text) for text in references]


def scored(predictions, references, intervals=False):
    def score(rows):
        return exact_match([predictions[r] for r in rows], [references[r] for r in rows], intervals=intervals)

    return score


@pytest.mark.parametrize("edges", [None, [5, 10, 15], [3]])
def test_each_bin_is_the_score_of_the_examples_of_its_lengths(edges):
    for seed in range(20):
        predictions, references, lengths = answers(seed)
        bins = score_by_length(lengths, scored(predictions, references), edges, bins=4)
        assert sum(one.count for one in bins) == len(lengths)
        for one in bins:
            rows = [row for row, length in enumerate(lengths) if one.shortest <= length <= one.longest]
            assert one.count == len(rows)
            assert one.score == scored(predictions, references)(rows)


def test_each_bin_has_an_interval_of_its_own():
    predictions, references, lengths = answers(3)
    for one in score_by_length(lengths, scored(predictions, references, intervals=True), bins=2):
        low, high = one.score.interval
        assert low < one.score.value < high


def test_bins_begin_at_the_edges():
    bins = score_by_length([1, 4, 5, 9, 30], scored("abcde", "abcde"), edges=[5, 10, 20])
    assert [(one.shortest, one.longest) for one in bins] == [(1, 4), (5, 9), (30, 30)]


def test_without_edges_bins_are_about_alike():
    lengths = random.Random(0).choices(range(1000), k=800)
    bins = score_by_length(lengths, scored([""] * 800, [""] * 800), bins=8)
    assert len(bins) == 8 and all(90 <= one.count <= 110 for one in bins)


def test_examples_of_one_length_are_never_parted():
    [bin] = score_by_length([7] * 50, scored([""] * 50, [""] * 50))
    assert (bin.shortest, bin.longest, bin.count) == (7, 7, 50)
