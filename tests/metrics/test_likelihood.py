"""Perplexity and bits against their closed forms."""

import math

import numpy as np
import pytest
import torch

from seqloom.metrics import bits_per_character, blocks, nats, perplexity


@pytest.mark.parametrize("size", [1, 2, 65, 33278])
def test_a_uniform_models_perplexity_is_the_size_of_its_vocabulary(size):
    counts = np.array([3, 10, 1])
    score = perplexity(counts * math.log(size), counts, "word")
    assert score.value == pytest.approx(size)
    assert score.interval == pytest.approx((size, size))
    assert bits_per_character(counts * math.log(size), counts).value == pytest.approx(math.log2(size), abs=1e-12)


def test_perplexity_is_torchmetrics():
    from torchmetrics.functional.text import perplexity as theirs  # seconds to load; not for every worker

    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(3, 7, 11, generator=generator, dtype=torch.float64)
        target = torch.randint(11, (3, 7), generator=generator)
        losses = -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
        ours = perplexity(losses.sum(1).numpy(), np.full(3, 7), "token", intervals=False)
        assert ours.value == pytest.approx(theirs(logits, target).item(), rel=1e-6)


def test_the_unit_is_said():
    for unit in ("token", "word", "subword", "character"):
        assert f"a {unit}" in perplexity([1.0], [1], unit).scale
        assert f"a {unit}" in nats([1.0], [1], unit).scale


def test_documents_count_by_their_length():
    assert nats([10.0, 2.0], [1, 3], "token").value == 3
    assert perplexity([10.0, 2.0], [1, 3], "token").value == pytest.approx(math.exp(3))


def test_the_interval_is_about_that_of_a_mean():
    losses = np.random.default_rng(0).exponential(2, 4000)
    score = nats(*blocks(losses, 1), "token")
    half = 1.96 * losses.std() / math.sqrt(4000)
    assert score.interval == pytest.approx((score.value - half, score.value + half), abs=half / 5)


def test_blocks_hold_the_whole_text():
    losses = np.random.default_rng(0).random(2503)
    sums, counts = blocks(losses, 1000)
    assert counts.tolist() == [1000, 1000, 503]
    assert sums == pytest.approx([losses[:1000].sum(), losses[1000:2000].sum(), losses[2000:].sum()])
