"""What is no plain text can be looked into as well: images, chords, and sources with a tag."""

import json

import numpy as np
import pytest
from PIL import Image

from seqloom.config.recipe import Recipe
from seqloom.look.charts.base import render
from seqloom.runs.run import load, train

QUICK = ("model.size=16", "train.steps=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("inputs")
    chance = np.random.default_rng(0)
    for name, light in (("dark", 0), ("light", 150)):
        (made / "images" / name).mkdir(parents=True)
        for number in range(12):
            pixels = (chance.integers(0, 100, (12, 12, 3)) + light).astype(np.uint8)
            Image.fromarray(pixels).save(made / "images" / name / f"{number}.png")
    piece = [[60 + n % 5, 64 + n % 5] for n in range(12)]
    (made / "chords.json").write_text(json.dumps({part: [piece] * 4 for part in ("train", "valid", "test")}))
    rows = [f"{word},{word[::-1]},{way}" for word in ("abc", "bca", "cab", "aab") for way in ("same", "turned")]
    (made / "tagged.csv").write_text("\n".join(["word,answer,way", *rows * 4]) + "\n")
    return made


def settings(folder, case):
    images = ("classify", f"data.train={folder / 'images'}", "data.source_type=image", "data.image_size=12")
    return {
        "image-lstm": [*images, "model.kind=lstm"],
        "image-transformer": [*images, "model.kind=transformer", "model.heads=2"],
        "chords": ["chorales", f"data.train={folder / 'chords.json'}", "train.bptt_window=8"],
        "tagged": [
            *("seq2seq", f"data.train={folder / 'tagged.csv'}", "data.source=word", "data.target=answer"),
            "data.tag=way",
        ],
    }[case]


@pytest.mark.parametrize("case", ["image-lstm", "image-transformer", "chords", "tagged"])
def test_every_view_that_fits_is_drawn(folder, case, tmp_path, typed):
    list(train(Recipe.read(*settings(folder, case), *QUICK), tmp_path / "run"))
    look = load(tmp_path / "run").look()
    assert {"model", "gradients", "curves", "field"} <= set(look.views)
    assert ("order" in look.views) == (not case.startswith("image"))
    for name, draw in look.views.items():
        assert len(render(draw(), ".json")) > 100, name
    if case == "tagged":
        assert {"<same>", "<turned>", "a"} <= set(look.measure("embedding").symbols)
        assert look.names.source[0] in ("<same>", "<turned>")
    _, err, code = typed("look", "run", "--view", "model", "--out", "model.svg")
    assert code == 0 and (tmp_path / "model.svg").stat().st_size > 1000, err


def test_chords_are_read_as_they_are_written(folder, tmp_path, typed):
    list(train(Recipe.read(*settings(folder, "chords"), *QUICK), tmp_path / "run"))
    assert load(tmp_path / "run").look("60 64\n62 65\n-").batch.mask.shape == (1, 3)
    _, err, code = typed("look", "run", "sixty", "--view", "model")
    assert code == 2 and err.startswith("error: line 1: 'sixty'"), err
