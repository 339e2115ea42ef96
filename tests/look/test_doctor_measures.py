"""What a diagnosis is made from, against what is known: closed forms, delay lines, windows, drawn labels."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.config.recipe import Recipe
from seqloom.layers.base import Encoder, last_pool
from seqloom.layers.cells import CELLS
from seqloom.layers.heads import Categorical, Mean, Normal
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.look.doctor.dependence import Dependence, estimate_information, measure_dependence
from seqloom.look.doctor.evidence import compute_blind_loss, compute_entropy, measure_mixing, measure_most_frequent
from seqloom.look.doctor.findings import compute_saved_share
from seqloom.look.doctor.memory import MemoryReach, measure_memory
from seqloom.look.doctor.perturbation import Perturbation, choose_lags, perturb_by_lag
from seqloom.models import Batch, Labeler

SYMBOLS, LENGTH = 5, 12


def everywhere(inputs):
    return torch.ones(inputs.shape[:2], dtype=torch.bool)


def drawn(rows=400, seed=0):
    return torch.randint(SYMBOLS, (rows, LENGTH), generator=torch.Generator().manual_seed(seed))


def delay_line(steps):
    """Answers with the symbol it read so many steps before the last: a register that everything is shifted along."""
    size = SYMBOLS * (steps + 1)
    layer = recurrent_encoder(CELLS["rnn-identity"], SYMBOLS, [size], merge="none")
    model = Labeler(
        nn.Embedding(SYMBOLS, SYMBOLS), Encoder(layer, last_pool), Categorical(size, SYMBOLS), per_element=False
    )
    cell = layer.layers[0].cell
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    nn.init.eye_(model.embed.weight)
    nn.init.eye_(cell.W.weight)
    cell.U.weight.data[SYMBOLS:, :-SYMBOLS] = torch.eye(size - SYMBOLS)
    model.head.project.weight.data[:, -SYMBOLS:] = 20 * torch.eye(SYMBOLS)
    return model


@pytest.mark.parametrize("steps", [0, 3, 7])
def test_a_delay_line_remembers_exactly_as_long_as_it_is(steps):
    x = drawn(64)
    found = perturb_by_lag(delay_line(steps), Batch(x, everywhere(x), x[:, -1 - steps]))
    assert found.length == steps == measure_memory(delay_line(steps), Batch(x, everywhere(x), x[:, 0])).length
    np.testing.assert_allclose(found.moved[found.lags == steps], 1, atol=1e-4)
    np.testing.assert_allclose(found.moved[found.lags != steps], 0, atol=1e-6)


def test_padding_does_not_count_as_a_step():
    x = torch.nn.functional.pad(drawn(64), (0, 5))
    mask = torch.arange(LENGTH + 5).expand(len(x), -1) < LENGTH
    assert perturb_by_lag(delay_line(3), Batch(x, mask, x[:, 0])).length == 3


def test_what_is_far_counts_where_it_tells_a_share_of_what_the_best_does():
    """Of swaps a fifth, of bits a half, of gradients a thousandth: the furthest such lag, not the first or the best."""
    lags = np.array([0, 1, 2, 3, 5, 8, 13])
    moved = Perturbation(lags, np.array([0.1, 0.5, 0.05, 0.2, 0.101, 0.099, 0.0]))
    assert moved.length == 5 and Perturbation(lags, np.zeros(7)).length == 0
    assert Dependence(np.array([0.2, 1.0, 0.0, 0.51, 0.0, 0.49])).reach == 3 and Dependence(np.zeros(4)).reach == 0
    gradient = np.array([0.5, 1.0, 0.0, 0.0011, 0.0009])
    assert MemoryReach(moved, gradient).length == 5  # where anything is used, swaps tell
    unmoved = Perturbation(lags, 0.19 * moved.moved)
    assert MemoryReach(unmoved, gradient).length == 3  # where nothing is yet, gradients do


def test_a_window_cannot_remember_more_than_it_sees():
    """Whatever it has learned: of a new Transformer the gradient tells, and it ends where the window does."""
    torch.manual_seed(0)
    x = torch.randint(SYMBOLS, (32, 40))
    for window, depth in ((4, 1), (4, 2), (9, 1)):
        body = Encoder(transformer(8, TransformerConfig(8, depth, 2, window=window), causal=True), last_pool)
        model = Labeler(nn.Embedding(SYMBOLS, 8), body, Categorical(8, 3), per_element=False)
        found = measure_memory(model, Batch(x, everywhere(x), x[:, 0] % 3))
        assert found.length <= depth * (window - 1)
        assert (found.sway.moved[found.sway.lags > depth * (window - 1)] == 0).all()
        assert (found.influence[depth * (window - 1) + 1 :] == 0).all()


def test_near_lags_are_all_asked_and_far_ones_in_small_steps():
    lags = choose_lags(500, also=[333, 900])
    assert (lags[:16] == np.arange(16)).all() and 333 in lags and lags[-1] == 499
    assert (lags[17:] / lags[16:-1] < 1.2).all() and len(lags) < 70


@pytest.mark.parametrize("lag", [0, 4, 9])
def test_the_answer_depends_on_the_element_it_is_made_of(lag):
    x = drawn(2000)
    found = measure_dependence([Batch(x, everywhere(x), x[:, -1 - lag])], per_element=False)
    assert found.reach == lag and found.bits[lag] == pytest.approx(math.log2(SYMBOLS), rel=0.02)
    assert (np.delete(found.bits, lag) == 0).all()


def test_an_answer_to_every_element_depends_on_what_came_so_long_before():
    x = drawn(300)
    found = measure_dependence([Batch(x, everywhere(x), torch.roll(x, 2, 1))], per_element=True)
    assert found.reach == 2 and found.bits[2] > 2 and (found.bits[[0, 1, 3]] == 0).all()


def test_nothing_depends_on_drawn_labels_however_many_and_however_few_the_rows():
    chance = np.random.default_rng(0)
    for rows in (60, 300, 4000):
        for symbols, labels in ((2, 2), (60, 24)):  # of which most pairs never occur
            read, told = chance.integers(symbols, size=rows), chance.integers(labels, size=rows)
            assert estimate_information(read, told) == 0


def test_the_blind_loss_of_labels_is_their_entropy():
    labels = torch.tensor([0] * 50 + [1] * 30 + [2] * 20)
    x = torch.zeros(100, 3, dtype=torch.long)
    model = delay_line(1)
    shares = np.array([0.5, 0.3, 0.2])
    assert compute_blind_loss(model, [Batch(x, everywhere(x), labels)]) == pytest.approx(
        -(shares * np.log(shares)).sum()
    )
    assert compute_entropy(np.array([4, 4])) == pytest.approx(math.log(2))


@pytest.mark.parametrize("head", [Mean, Normal])
def test_the_blind_loss_of_numbers_is_their_spread(head):
    torch.manual_seed(0)
    target = 3 + 2 * torch.randn(500, 1)
    layer = recurrent_encoder(CELLS["gru"], 4, [6], merge="none")
    make = Mean(6, 1, 1) if head is Mean else Normal(6, 1)
    model = Labeler(nn.Embedding(SYMBOLS, 4), Encoder(layer, last_pool), make, per_element=False)
    x = torch.zeros(500, 3, dtype=torch.long)
    told = target[:, None] if head is Mean else target
    variance = float(target.var(correction=0))
    expected = variance if head is Mean else 0.5 * math.log(2 * math.pi * math.e * variance)
    assert compute_blind_loss(model, [Batch(x, everywhere(x), told)]) == pytest.approx(expected, rel=0.1)


def test_batches_in_order_of_their_labels_are_not_mixed():
    x, labels = drawn(640), torch.arange(640) // 128
    mixed = torch.randperm(640, generator=torch.Generator().manual_seed(0))

    def batches(order):
        return [Batch(x[rows], everywhere(x[rows]), labels[rows]) for rows in order.split(32)]

    assert measure_mixing(batches(torch.arange(640))) == 0
    assert measure_mixing(batches(mixed)) == pytest.approx(1, abs=0.03)
    assert measure_mixing([Batch(x, everywhere(x), torch.randn(640, 1))] * 5) is None


def test_the_variety_of_few_targets_is_mended_by_half_a_degree_of_freedom_each():
    """Miller (1955): the entropy that is counted, and (classes − 1) / 2n."""
    rows = [[0, 0, 0, 1], [1, 1, 1, 0], [0] * 7 + [1], [1] * 7 + [0]]
    batches = [
        Batch(torch.zeros(len(row), 2).long(), torch.ones(len(row), 2).bool(), torch.tensor(row)) for row in rows
    ]
    found = [compute_entropy(np.bincount(row)) + 1 / (2 * len(row)) for row in rows]
    assert measure_mixing(batches) == pytest.approx(np.mean(found) / math.log(2))


def test_what_was_saved_is_a_share_of_the_blind_loss_or_of_a_density_what_the_spread_lost():
    assert compute_saved_share(0.5, 2.0) == pytest.approx(0.75) and compute_saved_share(3.0, 2.0) == pytest.approx(-0.5)
    for blind in (-1.5, 0.0):  # a spread of a quarter: ln 4 less surprise
        assert compute_saved_share(blind - math.log(4), blind) == pytest.approx(0.75)
        assert compute_saved_share(blind, blind) == pytest.approx(0)


def test_a_model_that_says_the_same_to_everything_is_seen():
    model, x = delay_line(0), drawn()
    labels = (x[:, 0] == 0).long()
    nn.init.zeros_(model.head.project.weight)
    model.head.project.bias.data[0] = 1
    found = measure_most_frequent(model, [Batch(x, everywhere(x), labels)])
    assert found.answers == 1 and found.targets == pytest.approx(float((labels == 0).float().mean()))


def test_recurrent_weights_start_as_many_times_as_large_as_the_gain_says():
    def built(*settings):
        torch.manual_seed(0)
        recipe = Recipe.of({"task": "classify"}).override("model.size=8", *settings)
        return recipe.model.side("encoder").build_cell()(4, 8)

    for kind in ("rnn", "lstm", "gru"):
        plain, large = (built(f"model.kind={kind}", f"model.init_gain={gain}") for gain in (1, 3))
        torch.testing.assert_close(large.U.weight, 3 * plain.U.weight)
        torch.testing.assert_close(large.W.weight, plain.W.weight)
