"""Attention over a picture, word by word; and what order is worth, pair by pair."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from seqloom.config.recipe import Recipe
from seqloom.look.charts.base import render
from seqloom.look.charts.picture import SHADE, encode_png, make_picture_url, picture_chart
from seqloom.look.measures.attention import AttentionMap, Picture
from seqloom.look.measures.order import measure_order_sensitivity, measure_swaps
from seqloom.look.measures.reading import compute_loss, take_row
from seqloom.runs.run import load, train

from .models import MODELS, SIDES, batch_for


@pytest.mark.parametrize("shape", [(5, 7, 3), (4, 4, 1), (3, 2, 4)])
def test_a_png_holds_the_pixels(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    read = np.asarray(Image.open(io.BytesIO(encode_png(pixels))))
    np.testing.assert_array_equal(read.reshape(*shape[:2], -1), pixels[..., : 3 if shape[2] >= 3 else 1])


def rows_of(chart):
    return [row for rows in json.loads(render(chart, ".json"))["datasets"].values() for row in rows]


def test_each_word_has_its_picture_bright_where_it_looked():
    picture = Picture(np.zeros((5, 6, 3), np.uint8), 2)  # the last row of squares is cut off
    assert picture.grid == (3, 3)
    weights = np.full((2, 2, 9), 0.05, np.float32)
    weights[:, 0, 4], weights[:, 1, 8] = 0.6, 0.6
    names = [str(n) for n in range(1, 10)]
    rows = rows_of(picture_chart(AttentionMap(names, ["a", "b"], weights, ["one", "two"], picture=picture)))
    assert {row["map"] for row in rows} == {"mean of all", "one", "two"} and len(rows) == 3 * 2 * 9
    bright = {(row["word"], row["place"]) for row in rows if row["shade"] == 0}
    assert bright == {("1. a", 4), ("2. b", 8)}
    dim = next(row for row in rows if row["place"] == 0)
    assert dim["shade"] == pytest.approx(SHADE * (1 - 0.05 / 0.6), abs=1e-3)
    middle = next(row for row in rows if row["place"] == 4)
    assert middle["x"] == middle["y"] == 2 * 132 / 6


def test_a_caption_is_drawn_over_its_picture_and_the_picture_is_the_one_that_was_given(tmp_path):
    pictures = [np.random.default_rng(n).integers(0, 255, (1, 8, 8, 3), np.uint8) for n in range(8)]
    examples = [(picture, word) for picture, word in zip(pictures, ["red", "blue"] * 4, strict=True)]
    recipe = Recipe.of({"task": "caption"}).override("model.size=8", "model.patch=4", "train.steps=2")
    list(train(recipe, tmp_path / "run", examples={part: examples for part in ("train", "validation", "test")}))
    look = load(tmp_path / "run").look(pictures[3], "red")
    np.testing.assert_array_equal(look.picture.pixels, pictures[3][0])
    spec = json.loads(render(look.attention(), ".json"))
    assert make_picture_url(Picture(pictures[3][0], 4)) in json.dumps(spec)
    assert {row["word"] for row in rows_of(look.attention())} == {"1. r", "2. e", "3. d", "4. (end)"}
    assert render(look.attention(), ".svg").startswith(b"<svg")


@pytest.mark.parametrize("name", ["label gru-both", "tag lstm-both", "write lstm-luong-dot", "talk mingru"])
def test_a_swap_costs_what_the_swapped_input_costs_more(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    about = name.startswith("write")
    batch = take_row(batch_for(model, SIDES["right"]), 2 if about else 0)  # whose source is the longest
    read = batch.source[0] if about else batch.inputs
    found = measure_swaps(model, batch, [str(n) for n in range(read.shape[1])])
    moved = read.clone()
    moved[:, [0, 1]] = moved[:, [1, 0]]
    other = batch._replace(source=(moved, batch.source[1])) if about else batch._replace(inputs=moved)
    if name.startswith("tag"):
        target = batch.target.clone()
        target[:, [0, 1]] = target[:, [1, 0]]
        other = other._replace(target=target)
    if name.startswith("talk"):  # what comes last stays, and alone counts
        assert len(found.costs) == read.shape[1] - 2
        ends = torch.zeros_like(batch.mask)
        ends[:, -1] = True
        told = [
            model.head.loss(model.features(b.inputs, model.initial_state(1), b.mask)[0], b.target, ends)[0]
            for b in (batch, other)
        ]
        wanted = float((told[1] - told[0]).detach())
    else:
        assert len(found.costs) == read.shape[1] - 1
        wanted = float((compute_loss(model.eval(), other) - compute_loss(model, batch)).detach())
    assert found.costs[0] == pytest.approx(wanted, abs=1e-5)
    assert len(found.costs) and np.isfinite(measure_order_sensitivity(model, batch).cost)
