"""What is watched while training goes on: the gradients that were used, the same after resuming, free when off."""

import json

import numpy as np
import pytest
import torch

from seqloom.look.places import list_levels
from seqloom.look.watching import (
    SPECTRUM,
    Watching,
    estimate_radius,
    list_layers,
    name_layer,
    read_watched,
    summarize_spectrum,
)
from seqloom.models import GenerationObjective, LabelingObjective
from seqloom.runs.run import load, train
from seqloom.training.update import backpropagate

from ..recipes import small
from .models import MODELS, SIDES, batch_for


@pytest.mark.parametrize("name", ["write lstm-bahdanau-additive", "label transformer-post"])
def test_norms_by_layer_are_those_of_the_gradients_and_of_the_moves(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    objective = GenerationObjective(model) if name.startswith("write") else LabelingObjective(model)
    watch = Watching(objective)
    before = watch.before()
    backpropagate(objective, [batch_for(model, SIDES["right"])])
    named = {key: p for key, p in model.named_parameters() if p.requires_grad}
    raw = {key: (torch.zeros_like(p) if p.grad is None else p.grad.clone()) for key, p in named.items()}
    total = float(torch.cat([g.flatten() for g in raw.values()]).norm())
    with torch.no_grad():
        for p in named.values():
            if p.grad is not None:
                p.grad *= 0.01  # as if it had been clipped
                p -= 0.1 * p.grad
    seen = watch.after(before, total)
    found = list_levels(model)
    for layer in watch.layers:
        own = [key for key in named if name_layer(key, found) == layer]
        norm = torch.cat([raw[key].flatten() for key in own]).norm()
        assert seen["gradients"][layer] == pytest.approx(float(norm), rel=1e-4)
        old = torch.cat([b.flatten() for b, key in zip(before, named, strict=True) if key in own]).norm()
        assert seen["updates"][layer] == pytest.approx(0.001 * float(norm / old), rel=1e-3)
    order = list_layers(found)
    assert [order.index(layer) for layer in watch.layers] == sorted(order.index(layer) for layer in watch.layers)
    assert bool(seen["spectra"]) == name.startswith("write")


def test_the_radius_and_the_singular_values_are_those_of_the_matrix():
    torch.manual_seed(0)
    for matrix in (torch.randn(16, 16), torch.diag(torch.tensor([0.5, -0.9])), torch.tensor([[0.0, -0.7], [0.7, 0.0]])):
        wanted = float(torch.linalg.eigvals(matrix).abs().max())
        assert estimate_radius(matrix) == pytest.approx(wanted, rel=0.01)
        assert summarize_spectrum(matrix)[:3:2] == pytest.approx(
            [float(torch.linalg.matrix_norm(matrix, n)) for n in (2, -2)], rel=1e-3
        )
    assert estimate_radius(torch.tensor([[0.0, 1.0], [0.0, 0.0]])) == 0.0
    assert len(summarize_spectrum(torch.randn(4, 6))) == len(SPECTRUM) - 1  # one that is not square has no eigenvalues


def records_of(folder):
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    timings = ("seconds", "tokens_per_second")
    return [{k: v for k, v in line.items() if k not in timings} for line in lines if line["kind"] != "note"]


def test_what_is_watched_is_recorded_and_comes_out_the_same_after_a_stop(tmp_path):
    """Stopped right after the checkpoint of a step that was watched: its record is told again, whole."""
    recipe = small(
        tmp_path, "train.watch_every=4", "train.checkpoint_every=4", "train.validate_every=8", "model.kind=lstm"
    )
    list(train(recipe, tmp_path / "whole"))
    for record in train(recipe, tmp_path / "cut"):
        if record.step == 8:
            break
    path = tmp_path / "cut" / "records.jsonl"
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"kind": "note"' not in line]
    path.write_text(lines[0])
    list(train(None, tmp_path / "cut", resume=True))
    whole, cut = records_of(tmp_path / "whole"), records_of(tmp_path / "cut")
    assert [line["step"] for line in whole] == [1, 4, 8, 10, 12] and cut == [whole[0], *whole[2:]]
    seen = read_watched(whole)
    assert seen.steps.tolist() == [4, 8, 12] and np.isfinite(seen.gradients).all() and (seen.spectra[..., 0] > 0).all()
    assert load(tmp_path / "whole").history.watched.layers == seen.layers


def test_watching_changes_no_weight_and_nothing_is_recorded_when_off(tmp_path):
    for every in (0, 3):
        list(train(small(tmp_path, f"train.watch_every={every}"), tmp_path / str(every)))
    on, off = ((tmp_path / every / "model.safetensors").read_bytes() for every in ("3", "0"))
    assert on == off
    assert "watched" not in (tmp_path / "0" / "records.jsonl").read_text()


def test_every_parameter_stands_in_a_layer_with_a_name():
    for make in MODELS.values():
        model = make()
        known = set(list_layers(list_levels(model)))
        assert {name_layer(name, list_levels(model)) for name, _ in model.named_parameters()} <= known
