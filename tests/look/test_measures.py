"""The smaller measures: norms, next symbols, vectors, probes, positions, schedules, order, cost."""

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.config.recipe import Train
from seqloom.errors import DataError, RunError
from seqloom.layers.base import Encoder, Pointwise, Stack, last_pool, mean_pool
from seqloom.layers.cells import CELLS
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical, Normal
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.look.measures.costs import measure_body_costs
from seqloom.look.measures.next_tokens import predict_next_tokens
from seqloom.look.measures.norms import measure_shrinkage
from seqloom.look.measures.order import measure_order_sensitivity, measure_swaps, shuffle
from seqloom.look.measures.positions import compute_position_vectors
from seqloom.look.measures.probes import fit_probes
from seqloom.look.measures.reading import Names, make_batch
from seqloom.look.measures.schedules import compute_learning_rates, read_curves
from seqloom.look.measures.vectors import Vectors
from seqloom.models import Batch, Labeler
from seqloom.training.schedules import learning_rate_at

from .models import MODELS, SIDES, batch_for

close = np.testing.assert_allclose


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_a_norm_shrinks_by_the_spread_of_what_it_is_given():
    norm = nn.LayerNorm(16)
    nn.init.constant_(norm.weight, 2.0)
    x = torch.randn(2, 5, 16) * 8
    x = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True, unbiased=False) * 8  # a spread of exactly 8
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool()
    [found] = measure_shrinkage(Stack(Pointwise(norm)), make_batch(x, mask))
    close((found.spread, found.size, found.gradient), (8, 2 / 8, 2 / 8), rtol=1e-4)
    [rms] = measure_shrinkage(Stack(Pointwise(nn.RMSNorm(16))), make_batch(torch.full((1, 3, 16), 4.0)))
    close((rms.spread, rms.size), (4, 1 / 4), rtol=1e-4)


def test_the_gradient_through_a_norm_shrinks_as_told():
    norm, x = nn.LayerNorm(400).double(), (torch.randn(1, 1, 400).double() * 5).requires_grad_()
    direction = torch.randn(400).double()
    [gradient] = torch.autograd.grad((norm(x) * direction).sum(), x)
    [found] = measure_shrinkage(Stack(Pointwise(norm)), make_batch(x.detach()))
    close(found.gradient, (gradient.norm() / direction.norm()).item(), rtol=0.02)


def test_next_symbols_are_the_softmax_at_each_temperature():
    model = MODELS["write lstm-luong-dot"]()
    batch = batch_for(model, SIDES["right"])
    found = predict_next_tokens(model, batch, top=3, temperatures=(0, 0.5, 1.0))
    with torch.no_grad():
        logits, _ = model.eval()(batch.inputs[:1], model.initial_state(1, *(part[:1] for part in batch.source)))
    close(found.probabilities[2], logits[0].softmax(-1).topk(3).values, rtol=1e-4)
    close(found.probabilities[1], (2 * logits[0]).softmax(-1).topk(3).values, rtol=1e-4)
    close(found.probabilities[0], np.eye(3)[[0] * 6])
    close(found.entropy[2], torch.distributions.Categorical(logits=logits[0]).entropy() / np.log(2), rtol=1e-4)
    expected = nn.functional.cross_entropy(logits[0], batch.target[0], reduction="none") / np.log(2)
    close(found.surprise, expected, rtol=1e-4)
    assert found.name_symbols(list("abcdefghijkl"))[0][0] == "abcdefghijkl"[logits[0, 0].argmax()]


def test_a_head_of_numbers_has_no_next_symbol():
    model = Labeler(
        nn.Embedding(5, 4), Encoder(Stack(Pointwise(nn.Linear(4, 4))), mean_pool), Normal(4, 1), per_element=False
    )
    with pytest.raises(RunError, match="a Normal head gives no distribution"):
        predict_next_tokens(model, Batch(torch.tensor([[1]]), torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1)))


def test_neighbors_analogies_and_the_map():
    symbols = ["king", "queen", "man", "woman", "stone"]
    space = Vectors(np.array([[1, 1, 0.0], [1, -1, 0], [0.1, 1, 0], [0.1, -1, 0], [0, 0, 3]]), symbols)
    assert space.analogy("man", "woman", "king").symbols[0] == "queen"
    near = space.neighbors("king", 2)
    assert near.symbols == ["man", "queen"] and near.cosines[0] == pytest.approx(1.1 / np.sqrt(2 * 1.01))
    found = space.map()
    centered = space.values - space.values.mean(0)
    values = np.linalg.eigvalsh(centered.T @ centered)[::-1]
    close(found.explained, values[:2] / values.sum())
    close((found.places**2).sum(0), values[:2])
    assert space.map(["king"]).places.tolist() == [[0, 0]]
    with pytest.raises(DataError, match="'pawn' is not in the vocabulary of 5 symbols"):
        space.neighbors("pawn")
    assert Vectors(TokenEmbedding(3, 1).weight, list("abc")).map().places.shape == (3, 2)


def test_a_probe_finds_what_is_there_and_not_what_is_not():
    layer = Stack(*(recurrent_encoder(CELLS["gru"], 8, [16, 16], merge="none").layers))
    batches = [make_batch(torch.randn(40, 6, 8)) for _ in range(2)]
    there = [(batch.inputs[..., 0] > 0).long() for batch in batches]
    chance = [torch.randint(2, (40, 6)) for _ in batches]
    found, guessed = fit_probes(layer, batches, there), fit_probes(layer, batches, chance)
    assert [probe.name for probe in found] == ["layer 1", "layer 2"]
    assert found[0].accuracy > 0.85 > found[0].majority + 0.2
    assert all(abs(probe.accuracy - 0.5) < 0.15 for probe in guessed)
    assert found[0].elements == 24 * 6
    assert fit_probes(layer, [], []) == []


def test_positions_are_those_of_the_model():
    [waves] = compute_position_vectors(
        transformer(6, TransformerConfig(6, 1, 2, positions="sinusoidal"), causal=True), 10
    )
    angle = np.arange(10)[:, None] * 10000.0 ** (-np.arange(0, 6, 2) / 6)
    close(waves.values[:, ::2], np.sin(angle), atol=1e-6)
    close(waves.values[:, 1::2], np.cos(angle), atol=1e-6)
    close(np.diag(waves.alike), 1)
    net = transformer(6, TransformerConfig(6, 1, 2, positions="learned", max_positions=7), causal=True)
    [learned] = compute_position_vectors(net, 10)
    close(learned.values, net.layers[0].table.detach().numpy())
    [rotary] = compute_position_vectors(transformer(8, TransformerConfig(8, 1, 2, positions="rotary"), causal=True), 10)
    turned = np.array([np.cos(2.0) - np.sin(2.0), np.sin(2.0) + np.cos(2.0)])
    close(rotary.values[2, :2], turned, rtol=1e-5)
    close(np.diag(rotary.alike, 3), rotary.alike[0, 3], atol=1e-6)  # only distances count


def test_rates_are_the_training_loops_own():
    settings = Train(steps=3000, warmup=10)
    found = compute_learning_rates(settings, 100)
    assert found.steps[0] == 1 and found.steps[-1] == 3000 and len(found.steps) == 100
    close(found.rates, [learning_rate_at(int(step), settings.resolved()) for step in found.steps])


def test_curves_leave_out_what_is_no_number():
    step = {"kind": "step", "step": 10, "loss": 2.0, "gradient_norm": None}
    validation = {
        "kind": "validation",
        "step": 20,
        "loss": 1.0,
        "gradient_norm": 0.5,
        "scores": {"loss": 1.5, "exact": None},
    }
    found = read_curves([step, validation])
    assert found.training.tolist() == [[10, 2], [20, 1]] and found.validation.tolist() == [[20, 1.5]]
    assert found.gradients.tolist() == [[20, 0.5]] and found.scores["exact"].shape == (0, 2)


def bag(order: bool) -> Labeler:
    layer = recurrent_encoder(CELLS["gru"], 4, [6], merge="none") if order else Stack(Pointwise(nn.Linear(4, 6)))
    return Labeler(
        nn.Embedding(9, 4), Encoder(layer, last_pool if order else mean_pool), Categorical(6, 3), per_element=False
    )


def test_a_bag_of_words_knows_no_order_and_a_recurrence_does():
    batch = Batch(torch.randint(9, (8, 6)), SIDES["right"][[0, 1, 2, 0, 1, 2, 0, 0]], torch.randint(3, (8,)))
    plain = measure_order_sensitivity(bag(order=False), batch)
    close(plain.shuffled, plain.ordered, rtol=1e-5)
    assert np.abs(measure_order_sensitivity(bag(order=True), batch).shuffled - plain.ordered).max() > 1e-3
    pair = Batch(torch.tensor([[1, 2, 3]]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([1]))
    close(measure_swaps(bag(order=False), pair, ["1", "2", "3"]).costs, 0, atol=1e-6)
    assert (np.abs(measure_swaps(bag(order=True), pair, ["1", "2", "3"]).costs) > 1e-6).all()


def test_a_label_goes_with_its_element():
    layer = Stack(Pointwise(nn.Linear(4, 6)))
    model = Labeler(nn.Embedding(9, 4), Encoder(layer, mean_pool), Categorical(6, 3), per_element=True)
    batch = Batch(torch.randint(9, (3, 6)), SIDES["between"], torch.randint(3, (3, 6)))
    found = measure_order_sensitivity(model, batch)
    close(found.shuffled, found.ordered, rtol=1e-5)


def test_what_comes_after_nothing_but_the_past_is_asked_at_the_end_alone():
    model = MODELS["talk gru"]()
    batch = batch_for(model, SIDES["right"])
    with torch.no_grad():
        logits = model.eval()(batch.inputs, model.initial_state(3), batch.mask)[0]
    ends = [(row, int(length) - 1) for row, length in enumerate(batch.mask.sum(1))]
    expected = [nn.functional.cross_entropy(logits[place], batch.target[place]).item() for place in ends]
    close(measure_order_sensitivity(model, batch, orders=1).ordered, np.mean(expected), rtol=1e-5)


def test_shuffling_keeps_the_elements_and_the_padding():
    mask, x = SIDES["between"], torch.arange(18).view(3, 6)
    found = shuffle(x, mask, torch.Generator().manual_seed(1))
    assert torch.equal(found[~mask], x[~mask]) and not torch.equal(found, x)
    assert all(sorted(found[row, mask[row]].tolist()) == x[row, mask[row]].tolist() for row in range(3))


def test_costs_count_parameters_and_what_is_kept():
    bodies = {
        "gru": lambda: recurrent_encoder(CELLS["gru"], 8, [8], merge="none"),
        "lstm": lambda: recurrent_encoder(CELLS["lstm"], 8, [8], merge="none"),
    }
    found = measure_body_costs(bodies, 8, lengths=(8, 16), repeats=1)
    by = {(cost.body, cost.length): cost for cost in found}
    assert by["lstm", 8].parameters == 4 * (8 * 8 + 8 * 8 + 8)
    assert by["gru", 8].parameters == 3 * (8 * 8 + 8 * 8 + 2 * 8)
    assert all(cost.forward > 0 and cost.training > 0 for cost in found)
    assert 1.5 < by["lstm", 16].memory / by["lstm", 8].memory < 2.5
    assert Names(["a"], ["b"], ["c"]).of("source") == ["c"]
