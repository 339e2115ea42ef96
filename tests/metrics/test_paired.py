"""Verdicts on paired scores: rarely a winner where there is none, and one where there is, as often as was said."""

from itertools import product
from math import comb

import numpy as np
import pytest

from seqloom.metrics.paired import (
    LEVEL,
    POWER,
    compute_bootstrap_interval,
    compute_sign_flip_p,
    correct_holm,
    count_needed_seeds,
    estimate_needed_seeds,
    flip_signs,
    judge,
)

TRIALS = 200
NOISE = 3 * (LEVEL * (1 - LEVEL) / TRIALS) ** 0.5  # three standard deviations of a share of 5 % among as many


def test_flips_of_signs_are_all_tried():
    chance = np.random.default_rng(0)
    for count in (1, 3, 7):
        values = chance.standard_normal(count)
        sums = [
            abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
            for signs in product((-1, 1), repeat=count)
        ]
        expected = np.mean([one >= abs(values.sum()) - 1e-12 for one in sums])
        assert compute_sign_flip_p(values) == pytest.approx(expected)
    assert len(np.unique(flip_signs(5), axis=0)) == 32


def test_differences_of_one_size_are_a_sign_test():
    """Of n equal differences with k of one sign, the p-value is that of throwing coins."""
    for n, k in ((8, 8), (8, 7), (10, 9), (9, 5)):
        values = [1.0] * k + [-1.0] * (n - k)
        tail = sum(comb(n, j) for j in range(max(k, n - k), n + 1)) / 2**n
        assert compute_sign_flip_p(values) == pytest.approx(min(1.0, 2 * tail))


def test_many_seeds_are_drawn_and_agree_with_all():
    values = np.random.default_rng(1).standard_normal(16) + 0.4
    exact = compute_sign_flip_p(values)
    drawn = compute_sign_flip_p(np.append(values, 0.0))  # a difference of zero changes no sum, but there are 17
    assert drawn == pytest.approx(exact, abs=0.01)


def test_holm_is_what_it_says():
    assert correct_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_holm([0.5, 0.6]) == [1.0, 1.0]
    assert correct_holm([0.02]) == [0.02]


def test_fewer_than_six_seeds_give_no_verdict_however_large_the_difference():
    for seeds in range(1, 9):
        verdict = judge({"a": [100.0 + n for n in range(seeds)], "b": [float(n * n) for n in range(seeds)]}, True)
        assert (verdict.winner == "a") == (seeds >= 6)
        if seeds < 6:
            assert f"no verdict is possible with {seeds} seed" in verdict.sentence and verdict.seeds_needed == 6
    assert [count_needed_seeds(others) for others in (1, 2, 3, 9)] == [6, 7, 7, 9]
    many = {name: [float(place + 10 * (name == "a"))] * 6 for place, name in enumerate("abcd")}
    assert judge(many, True).winner is None and judge({k: v * 2 for k, v in many.items()}, True).winner == "a"


def test_lower_may_be_better():
    scores = {"a": [1.0] * 8, "b": [float(n) for n in range(2, 10)]}
    assert judge(scores, higher=False).winner == "a" and judge(scores, higher=True).winner == "b"


def test_equal_scores_have_no_winner_and_no_number_of_seeds_would_help():
    verdict = judge({"a": [1.0, 2.0] * 4, "b": [2.0, 1.0] * 4}, True)
    assert verdict.winner is None and verdict.seeds_needed is None and "more than 1,000" in verdict.sentence


def test_the_interval_is_that_of_means():
    values = np.random.default_rng(0).normal(3, 2, 40)
    low, high = compute_bootstrap_interval(values)
    half = 1.96 * values.std() / 40**0.5
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1)


def simulate(trials, variants, seeds, gap=0.0, share=0.7, seed=0):
    """Shares of comparisons in which the first variant wins, and in which any does.

    A seed makes all variants better or worse alike; `gap` is what the first has over the others, in standard deviations
    of a difference.
    """
    chance, first, any_ = np.random.default_rng(seed), 0, 0
    for _ in range(trials):
        common = share * chance.standard_normal(seeds)
        own = chance.standard_normal((variants, seeds))
        own[0] += gap * 2**0.5
        winner = judge({str(n): (common + own[n]).tolist() for n in range(variants)}, True).winner
        first, any_ = first + (winner == "0"), any_ + (winner is not None)
    return first / trials, any_ / trials


@pytest.mark.parametrize("variants", [2, 3, 5])
@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_where_nothing_differs_hardly_anything_wins(variants, seeds):
    assert simulate(TRIALS, variants, seeds, seed=seeds + variants)[1] <= LEVEL + NOISE


def test_where_nothing_differs_two_variants_win_as_often_as_they_may():
    """Of two variants the level is reached, not just kept: a test that never says anything would keep it, too."""
    assert abs(simulate(1000, 2, 10)[1] - LEVEL) <= 3 * (LEVEL * (1 - LEVEL) / 1000) ** 0.5


def test_a_tie_of_the_best_is_no_winner_although_another_is_worse():
    chance = np.random.default_rng(0)
    wins = 0
    for _ in range(TRIALS):
        table = chance.standard_normal((3, 8))
        table[2] -= 10
        wins += judge({str(n): row.tolist() for n, row in enumerate(table)}, True).winner is not None
    assert wins / TRIALS <= LEVEL + NOISE


@pytest.mark.parametrize(("variants", "effect"), [(2, 1.5), (2, 0.8), (3, 1.2), (4, 0.9)])
def test_planted_differences_win_as_often_as_is_said(variants, effect):
    planted = np.array([effect - 1, effect + 1])  # of mean `effect` and, by n − 1, a spread of √2
    needed = estimate_needed_seeds(planted, variants - 1)
    spread = float(planted.std(ddof=1))
    won, _ = simulate(TRIALS, variants, needed, gap=effect / spread)
    assert won >= POWER - 3 * (POWER * (1 - POWER) / TRIALS) ** 0.5
    assert simulate(TRIALS, variants, max(6, needed // 3), gap=effect / spread)[0] < POWER  # and not with far fewer
