"""How far bodies see: exactly as far as they are built to."""

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.layers.base import Pointwise, Stack
from seqloom.layers.cells import CELLS
from seqloom.layers.convolution import convolution
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.look.measures.reading import SOURCE, make_batch
from seqloom.look.measures.receptive_field import compute_influence_by_lag, compute_receptive_field

from .models import MODELS, SIDES, batch_for

PAST = np.tril(np.ones((9, 9), bool))
DISTANCE = np.arange(9)[:, None] - np.arange(9)
BODIES = {
    "gru": (lambda: recurrent_encoder(CELLS["gru"], 4, [6], merge="none"), PAST),
    "both ways": (lambda: recurrent_encoder(CELLS["lstm"], 4, [6]), np.ones((9, 9), bool)),
    "convolution": (lambda: convolution(4, 6, 2, 3, causal=True), (DISTANCE >= 0) & (DISTANCE < 5)),
    "convolution around": (lambda: convolution(4, 6, 2, 3, causal=False), np.abs(DISTANCE) < 3),
    "transformer": (lambda: transformer(4, TransformerConfig(6, 1, 2), causal=False), np.ones((9, 9), bool)),
    "causal transformer": (lambda: transformer(4, TransformerConfig(6, 2, 2), causal=True), PAST),
    "window": (
        lambda: transformer(4, TransformerConfig(6, 2, 2, window=3), causal=True),
        (DISTANCE >= 0) & (DISTANCE < 5),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_sees_what_it_may_and_nothing_else(name):
    torch.manual_seed(0)
    make, seen = BODIES[name]
    found = compute_receptive_field(make(), make_batch(torch.randn(1, 9, 4)))
    assert ((found.influence > 0) == seen).all()


def test_influence_is_the_norm_of_the_jacobian():
    torch.manual_seed(0)
    layer, x = recurrent_encoder(CELLS["gru"], 4, [6], merge="none"), torch.randn(1, 5, 4)
    found = compute_receptive_field(layer, make_batch(x), directions=300).influence
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x, layer.initial_state(1))[0][0], x)[
        :, :, 0
    ]  # (T, D, S, D)
    expected = jacobian.square().sum((1, 3)).sqrt().numpy()
    np.testing.assert_allclose(found, expected, rtol=0.2, atol=1e-6)


def test_what_lies_so_far_back_moves_the_last_output_so_much():
    """A recurrence that halves its state at each step halves the influence with each lag, in every row of the batch."""
    torch.manual_seed(0)
    layer = recurrent_encoder(CELLS["rnn-identity"], 4, [4], merge="none")
    nn.init.eye_(layer.layers[0].cell.U.weight).data.mul_(0.5)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]]).bool()
    found = compute_influence_by_lag(layer, make_batch(torch.randn(3, 6, 4), mask))
    np.testing.assert_allclose(found / found[0], 0.5 ** np.arange(4), rtol=1e-5)


def test_long_sequences_ask_some_outputs_only():
    layer = Stack(Pointwise(nn.Linear(4, 4)))
    found = compute_receptive_field(layer, make_batch(torch.randn(1, 200, 4)), at_most=5)
    assert found.influence.shape == (5, 200) and found.outputs == ["1", "50", "100", "150", "200"]


def test_a_writer_can_be_asked_about_its_source():
    torch.manual_seed(0)
    model = MODELS["write lstm-bahdanau-additive"]()
    batch = batch_for(model, SIDES["right"])
    batch = batch._replace(source=(batch.source[0], batch.source[1].flip(0)))
    about = compute_receptive_field(model, batch, side=SOURCE)
    assert about.influence.shape == (6, 6) and (about.influence > 0).all()
    label = compute_receptive_field(MODELS["label gru-both"](), batch_for(MODELS["label gru-both"](), SIDES["right"]))
    assert label.influence.shape == (1, 6)
