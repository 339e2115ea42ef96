"""Attention of every kind: uniform where nothing distinguishes, masked where nothing may be seen."""

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.layers.attention import Pooling
from seqloom.layers.base import Encoder
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.look.measures.attention import AttentionMap, compute_attention_maps
from seqloom.look.measures.reading import Names, make_batch
from seqloom.models import Batch

from .models import MODELS, SIDES, batch_for

close = np.testing.assert_allclose


def blind(net):
    """Queries and keys of zero: every place is as good as another."""
    for name, parameter in net.named_parameters():
        if "project" in name or "key" in name or "query" in name or "queries" in name:
            nn.init.zeros_(parameter)
    return net


@pytest.mark.parametrize(("causal", "window"), [(False, 0), (True, 0), (False, 2), (True, 3)])
def test_blind_attention_is_uniform_over_what_may_be_seen(causal, window):
    net = blind(transformer(8, TransformerConfig(12, 2, 3, window=window), causal=causal))
    x, mask = torch.randn(1, 7, 8), torch.tensor([[0, 1, 1, 1, 1, 1, 0]]).bool()
    [found] = compute_attention_maps(net, make_batch(x, mask))
    distance = np.arange(5)[:, None] - np.arange(5)
    shown = distance >= 0 if causal else np.ones((5, 5), bool)
    if window:
        shown &= distance < window if causal else np.abs(distance) <= window
    close(found.weights, np.broadcast_to(shown / shown.sum(1, keepdims=True), (6, 5, 5)), rtol=1e-6)
    assert found.names == [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3)]
    close(found.entropy, np.log2(shown.sum(1)).mean(), rtol=1e-5)


def test_a_summary_by_learned_queries_is_shown():
    pool = blind(Pooling(8, 2))
    net = Encoder(transformer(8, TransformerConfig(8, 1, 2), causal=False), pool)
    own, summary = compute_attention_maps(net, make_batch(torch.randn(1, 4, 8), torch.tensor([[1, 1, 1, 0]]).bool()))
    assert summary.target == ["query 1", "query 2"] and summary.names == ["layer 1"]
    close(summary.weights, np.full((1, 2, 3), 1 / 3), rtol=1e-6)
    assert own.weights.shape == (2, 3, 3)


def test_a_writer_shows_all_it_looks_at_with_its_tokens():
    torch.manual_seed(0)
    model = MODELS["write about pooled"]()
    batch = batch_for(model, SIDES["right"])
    names = Names(list("<bcdef"), list("bcdef>"), list("uvwxyz"))
    titles = {found.title: found for found in compute_attention_maps(model, batch, names)}
    assert list(titles) == [
        "Attention pooling of the encoder",
        "Self-attention of the decoder",
        "Attention of the decoder over the source",
    ]
    over = titles["Attention of the decoder over the source"]
    assert over.target == list("bcdef>") and over.source == ["u"]  # the source's mask shows one element
    own = titles["Self-attention of the decoder"]
    assert own.source == own.target == list("<bcdef")
    for found in titles.values():
        close(found.weights.sum(-1), 1, rtol=1e-5)


def test_a_part_can_be_picked():
    weights = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)
    whole = AttentionMap(list("abcde"), list("wxyz"), weights, ["1", "2", "3"])
    part = whole.pick(1).between(slice(1, 3), slice(2, None))
    assert part.names == ["2"] and part.source == list("cde") and part.target == list("xy")
    close(part.weights[0], weights[1, 1:3, 2:])


def test_left_padding_moves_no_weight():
    """A causal layer moves its padding away inside; the map is still that of the sequence alone."""
    torch.manual_seed(0)
    model = MODELS["talk transformer-pre"]()
    tokens = torch.tensor([[3, 4, 5]])
    padded = Batch(
        torch.cat([torch.zeros(1, 2, dtype=torch.long), tokens], 1),
        torch.tensor([[0, 0, 1, 1, 1]]).bool(),
        torch.zeros(1, 5),
    )
    plain = Batch(tokens, torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, 3))
    [one], [other] = (compute_attention_maps(model, batch) for batch in (padded, plain))
    close(one.weights, other.weights, rtol=1e-5)
