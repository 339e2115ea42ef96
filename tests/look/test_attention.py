"""Attention maps: the weights that the model really uses, with its tokens beside them."""

import json

import numpy as np
import pytest
import torch

from seqloom.errors import RunError
from seqloom.look.charts.base import render, save
from seqloom.look.charts.maps import attention_chart
from seqloom.look.measures.attention import AttentionMap
from seqloom.runs.run import load, train

from ..recipes import small


@pytest.fixture(
    scope="module",
    params=["model.kind=gru", "model.attention_style=luong", "model.kind=transformer", "model.attention=none"],
)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    list(train(small(folder, "train.steps=2", request.param), folder / "run"))
    return load(folder / "run")


def test_a_map_has_a_row_for_each_token_written_and_its_weights_sum_to_one(run):
    look = run.look("abcd", "dcba")
    if getattr(run.recipe.model, "attention", "") == "none":  # of a kind that need not attend
        assert look.missing["attention"] == "no part of this model attends"
        return
    found = look.measure("attention")
    assert found.source == list("abcd") and found.target == [*"dcba", "<eos>"]
    assert found.weights.shape == (len(found.names), 5, 4)
    assert np.allclose(found.weights.sum(-1), 1, atol=1e-5)
    assert len(found.names) == (1 if run.recipe.model.kind == "gru" else 4)


def test_looking_changes_no_answer(run):
    before = [p.output for p in run.predict("abcd", beam=2)]
    run.look("abcd").measure("attention")
    assert [p.output for p in run.predict("abcd", beam=2)] == before


def test_what_the_model_sees_is_the_weighted_sum_of_its_memory(tmp_path):
    """The map is not a picture beside the computation: with these weights the context comes out."""
    list(train(small(tmp_path, "train.steps=2", "model.attention_style=luong"), tmp_path / "run"))
    run = load(tmp_path / "run")
    weights = torch.from_numpy(run.look("abcd", "dcba").measure("attention").weights[0])
    batch = run.task.shape.inspect("abcd", "dcba").batch
    with torch.no_grad():
        memory, luong = run.model.source(*batch.source), run.model.decoder.layers[1]
        below, start = run.model.decoder.layers[0], run.model.decoder.initial_state(1, memory)
        h, _ = below(run.model.embed(batch.inputs), start[0])
        features, _ = run.model.features(batch.inputs, start)
        expected = luong.join(torch.cat([h, (weights @ memory.values[0])[None]], -1)).tanh()
    torch.testing.assert_close(features, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("text", ["", "a", "zzz", "a" * 60])
def test_strange_inputs_give_finite_maps(run, text):
    for found in run.look(text, "ab").measure("heads"):
        assert np.isfinite(found.weights).all()


def test_a_chart_says_the_tokens_and_is_saved_in_every_form(tmp_path):
    found = AttentionMap(['"', "\\", " ", "ü"], ["a", "<eos>"], np.full((2, 2, 4), 0.25, np.float32), ["one", "two"])
    chart = attention_chart(found)
    [rows] = json.loads(render(chart, ".json"))["datasets"].values()
    assert len(rows) == 3 * 8 and {row["x"] for row in rows} == {'"', "\\", "␣", "ü"}  # two maps and their mean
    for ending, beginning in ((".html", b"<!DOCTYPE html>"), (".png", b"\x89PNG"), (".svg", b"<svg"), (".json", b"{")):
        path = save(chart, tmp_path / f"map{ending}")
        assert path.read_bytes().lstrip().startswith(beginning)
    assert b"https://cdn" not in (tmp_path / "map.html").read_bytes()[:5000]
    with pytest.raises(RunError, match=".html"):
        save(chart, tmp_path / "map.doc")
