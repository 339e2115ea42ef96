"""The n-gram model against a dictionary-based one, and the laws of distributions."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from seqloom.baselines.language import NGram, compute_uniform_losses


def text(seed: int, length: int, vocabulary: int) -> np.ndarray:
    """Tokens of which some are frequent, most are rare, and each leans on the one before."""
    draw = np.random.default_rng(seed)
    steps = np.minimum(draw.geometric(0.3, length) - 1, vocabulary - 1)
    return np.where(draw.random(length) < 0.5, np.roll(steps, 1) // 2, steps)


class Spelled:
    """Interpolated modified Kneser–Ney with dictionaries, straight from the definition."""

    def __init__(self, tokens, vocabulary, order):
        self.vocabulary, self.order = vocabulary, order
        grams = {n: [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)] for n in range(1, order + 1)}
        self.counts = {order: Counter(grams[order])}
        for n in range(1, order):
            self.counts[n] = Counter({gram: 0 for gram in grams[n]})
            self.counts[n].update(gram[1:] for gram in set(grams[n + 1]))
        self.discounts = {n: self.estimate(list(self.counts[n].values())) for n in self.counts}
        self.followers = {n: defaultdict(list) for n in self.counts}
        for n, counts in self.counts.items():
            for gram, count in counts.items():
                self.followers[n][gram[:-1]].append(count)

    @staticmethod
    def estimate(counts):
        n1, n2, n3, n4 = (counts.count(n) for n in (1, 2, 3, 4))
        if 0 in (n1, n2, n3, n4):
            return lambda count: min(count, 0.5)
        y = n1 / (n1 + 2 * n2)
        best = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
        d1, d2, d3 = (min(max(d, 0.05), k) for k, d in enumerate(best, 1))
        return lambda count: {0: 0, 1: d1, 2: d2}.get(count, d3)

    def chance(self, token, context):
        n = len(context) + 1
        below = self.chance(token, context[1:]) if context else 1 / self.vocabulary
        followers = self.followers[n].get(context, [])
        total = sum(followers)
        if not total:
            return below
        count, discount = self.counts[n].get((*context, token), 0), self.discounts[n]
        return (count - discount(count)) / total + sum(map(discount, followers)) / total * below

    def losses(self, tokens):
        tokens = tuple(map(int, tokens))
        contexts = (tokens[max(0, i - self.order + 1) : i] for i in range(len(tokens)))
        return [-math.log(self.chance(token, context)) for token, context in zip(tokens, contexts, strict=True)]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [12, 200, 2000])
def test_the_losses_are_those_of_the_spelled_out_model(order, length):
    training, test = text(1, length, 20), text(2, 150, 20)
    ours = NGram.fit(training, 20, order).losses(test)
    assert ours == pytest.approx(Spelled(training.tolist(), 20, order).losses(test), rel=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one_and_are_the_ones_that_score(order):
    training = text(3, 1500, 30)
    model = NGram.fit(training, 40, order)  # ten tokens never occur
    for seed in range(200):
        draw = np.random.default_rng(seed)
        if seed % 2:  # contexts that were seen, and any others
            start = draw.integers(len(training) - 6)
            context = training[start : start + draw.integers(7)]
        else:
            context = draw.integers(40, size=draw.integers(7))
        chances = model.probabilities(context)
        assert chances.sum() == pytest.approx(1, abs=1e-12) and chances.min() > 0
        token = draw.integers(40)
        assert model.losses([*context, token])[-1] == pytest.approx(-math.log(chances[token]))


def test_order_one_gives_the_shares_of_the_tokens():
    chances = NGram.fit([0] * 70 + [1] * 30, 2, 1).probabilities([1, 1, 0])
    assert chances == pytest.approx([0.7, 0.3], abs=0.01)


def test_a_longer_memory_helps_where_the_text_has_one():
    training = np.tile([0, 1, 2, 0, 3, 2, 1], 100)
    means = [NGram.fit(training, 4, order).losses(training).mean() for order in (1, 2, 3)]
    assert means[0] > means[1] > means[2]


def test_a_uniform_model_knows_only_how_many_there_are():
    assert compute_uniform_losses([3, 1, 2], 65).tolist() == [math.log(65)] * 3


def test_what_was_never_seen_is_still_possible():
    losses = NGram.fit([0, 1] * 20, 1000, 3).losses([999, 998, 0, 1, 997])
    assert np.isfinite(losses).all()


def test_ids_beyond_the_vocabulary_are_refused():
    with pytest.raises(AssertionError, match="below the size"):
        NGram.fit([0, 5], 5, 1)
