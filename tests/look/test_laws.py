"""Laws of every measure on every kind of model: finite wherever padding stands, and watching changes nothing."""

import dataclasses
from copy import deepcopy

import numpy as np
import pytest
import torch

from seqloom.look.measures.attention import compute_attention_maps
from seqloom.look.measures.attribution import METHODS, find_decision
from seqloom.look.measures.faithfulness import measure_faithfulness
from seqloom.look.measures.gates import record_traces
from seqloom.look.measures.gradients import compute_gradient_flow, compute_query_key_value
from seqloom.look.measures.jacobians import compute_decays
from seqloom.look.measures.next_tokens import predict_next_tokens
from seqloom.look.measures.norms import measure_shrinkage
from seqloom.look.measures.order import measure_order_sensitivity
from seqloom.look.measures.positions import compute_position_vectors
from seqloom.look.measures.reading import take_row
from seqloom.look.measures.receptive_field import (
    compute_influence_by_lag,
    compute_memory_length,
    compute_receptive_field,
)
from seqloom.look.measures.spectra import compute_spectra

from .models import MODELS, SIDES, batch_for

TALKS = ("rnn-relu", "peephole-full", "gru-before", "minlstm", "zoneout", "orthogonal", "projected", "linear", "widths")
SOME = [name for name in MODELS if name.split(" ")[0] != "talk"] + [f"talk {name}" for name in TALKS]
FEW = ("label gru-both", "label pooled", "tag transformer-window", "write lstm-bahdanau-additive", "talk convolution")


def attributions(model, batch):
    asked = find_decision(model, batch)
    found = [method(asked) for method in METHODS.values()]
    return found, measure_faithfulness(asked, found[0], orders=2)


MEASURES = {
    "attention": compute_attention_maps,
    "gates": record_traces,
    "gradients": compute_gradient_flow,
    "query key value": compute_query_key_value,
    "jacobians": compute_decays,
    "spectra": lambda model, batch: compute_spectra(model),
    "norms": measure_shrinkage,
    "field": compute_receptive_field,
    "lag": compute_influence_by_lag,
    "next": predict_next_tokens,
    "attribution": attributions,
    "positions": lambda model, batch: compute_position_vectors(model, 8),
    "order": measure_order_sensitivity,
}


def numbers(found):
    """Every number in what a measure gives."""
    if dataclasses.is_dataclass(found):
        found = [getattr(found, field.name) for field in dataclasses.fields(found)]
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, np.ndarray):
        yield from found.ravel().tolist()
    elif isinstance(found, list | tuple):
        for one in found:
            yield from numbers(one)
    elif isinstance(found, float | int):
        yield found


@pytest.mark.parametrize("name", SOME)
def test_every_measure_is_finite_on_every_model(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    batch = batch_for(model, SIDES["between"])
    for measure, function in MEASURES.items():
        assert np.isfinite(list(numbers(function(model, batch)))).all(), measure


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", FEW)
def test_every_measure_is_finite_wherever_padding_stands(name, side):
    torch.manual_seed(0)
    model = MODELS[name]()
    batch = batch_for(model, SIDES[side])
    alone = batch._replace(
        inputs=batch.inputs[1:2],
        mask=batch.mask[1:2],
        target=batch.target[1:2],
        source=tuple(one[1:2] for one in batch.source),
    )
    for measure, function in MEASURES.items():
        assert np.isfinite(list(numbers(function(model, alone)))).all(), measure


@pytest.mark.parametrize("name", FEW[1:4])
def test_watching_changes_nothing(name):
    torch.manual_seed(0)
    model = MODELS[name]().train()
    model.encoder.eval() if hasattr(model, "encoder") else model.decoder.eval()
    before, modes = deepcopy(model.state_dict()), [part.training for part in model.modules()]
    chance = torch.get_rng_state()
    for measure, function in MEASURES.items():
        function(model, batch_for(model, SIDES["left"]))
        assert torch.equal(torch.get_rng_state(), chance), measure
        assert [part.training for part in model.modules()] == modes, measure
        assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items()), measure
        assert all(parameter.grad is None for parameter in model.parameters()), measure
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules()), measure


def test_a_single_row_has_no_padding_and_an_empty_one_is_one_wide():
    model = MODELS["write lstm-bahdanau-additive"]()
    batch = batch_for(model, SIDES["between"])
    alone = take_row(batch, 1)
    assert alone.inputs.tolist() == [batch.inputs[1, SIDES["between"][1]].tolist()] and alone.mask.all()
    nothing = take_row(batch_for(model, SIDES["nothing"]), 2)
    assert nothing.inputs.shape == (1, 1) and not nothing.mask.any() and not nothing.source[1].any()


def test_a_memory_reaches_as_far_as_the_share_that_is_asked_for():
    assert compute_memory_length(np.array([1.0, 0.5, 0.04, 0.06, 0.01]), 0.05) == 3
    assert compute_memory_length(np.zeros(4)) == compute_memory_length(np.zeros(0)) == 0
