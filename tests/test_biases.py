"""`model.bias=false`: no part of any network learns a bias, and where one stands nothing is added."""

import pytest
import torch
from torch import nn

from seqloom import Recipe
from seqloom.architectures.build import build_forecaster, build_labeler
from seqloom.layers.crf import CRF
from seqloom.layers.embeddings import NumberEmbedding, PatchEmbedding
from seqloom.layers.heads import Categorical, Quantiles

from .recipes import forecasting, small_seq2seq

KINDS = ("rnn", "lstm", "peephole", "coupled", "gru", "orthogonal", "mingru", "minlstm", "convolution", "transformer")
MASK = torch.ones(2, 4, dtype=torch.bool)


def resolved(task, *settings):
    return Recipe.of({"task": task}).override("model.size=8", "model.bias=false", *settings).resolved().model


def biases(net):
    """What is learned under such a name, and where such a name does not stand for zeros."""
    learned = [name for name, _ in net.named_parameters() if "bias" in name]
    return learned + [name for name, buffer in net.named_buffers() if "bias" in name and buffer.any()]


@pytest.mark.parametrize("kind", KINDS)
def test_what_reads_and_writes_has_none(kind):
    """With a bridge between sides of different sizes, and an attention with a bias of its own."""
    model = resolved("seq2seq", f"model.kind={kind}", "model.encoder.size=16")
    net = small_seq2seq(model, 9, 9)
    assert not biases(net)
    logits, _ = net(torch.ones(2, 3, dtype=torch.long), net.initial_state(2, torch.ones(2, 4, dtype=torch.long), MASK))
    logits[..., 5].sum().backward()
    assert all(weight.grad is not None for name, weight in net.named_parameters() if not name.startswith("decoder.U"))


@pytest.mark.parametrize("settings", [["model.layer_norm=true", "model.kind=lstm"], ["model.merge=project"], []])
def test_what_labels_has_none_with_all_that_stands_around_it(settings):
    model = resolved("classify", "model.pool=attention", "model.hidden=6", *settings)
    net = build_labeler(model, PatchEmbedding(1, 4, 8), lambda features: Categorical(features, 3), each=False)
    assert not biases(net)
    features = torch.zeros(2, 8)
    assert not net.eval().head(features).any()  # nothing comes of nothing


def test_a_field_of_tags_and_gru_d_have_none():
    model = resolved("tag", "data.source_type=numbers", "model.kind=gru-d", "model.causal=true")
    net = build_labeler(model, nn.Identity(), lambda features: CRF(features, 3), each=True, inputs=6)
    assert not biases(net)
    cell = net.encoder.layer.layers[0].cell
    assert cell.fade_x.shape == (1, 2)  # by the gap alone
    assert net.features(torch.zeros(2, 4, 6), MASK).shape == (2, 4, 8)


@pytest.mark.parametrize("kind", ["gru", "linear"])
def test_forecasts_have_none(kind):
    model = forecasting(f"model.kind={kind}", "model.bias=false").model
    net = build_forecaster(model, 2, 8, lambda features: Quantiles(features, 3, 2, model.quantiles))
    assert not biases(net)


def test_sides_may_differ():
    model = Recipe.of({"task": "seq2seq"}).override("model.size=8", "model.encoder.bias=false").resolved().model
    net = small_seq2seq(model, 9, 9)
    assert not biases(net.source) and biases(net.decoder) and biases(net.head)


def test_an_embedding_of_numbers_has_none():
    model = resolved("classify")
    net = build_labeler(model, NumberEmbedding(3, 8), lambda features: Categorical(features, 3), each=False)
    assert not biases(net.embed) and not net.embed(torch.zeros(1, 2, 3)).any()
