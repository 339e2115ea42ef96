"""Non-local blocks: from a recipe to the network, and what they do there."""

import numpy as np
import pytest
import torch

from seqloom import Recipe, load, train
from seqloom.errors import RecipeError
from seqloom.layers.attention import NonLocal
from seqloom.layers.non_local import NonLocalLayer

FEW = ("model.size=8", "train.steps=2", "train.validate_every=2", "model.non_local=2")


def test_over_a_sequence_it_is_the_block_over_the_places_of_an_image():
    layer = NonLocalLayer(6)
    torch.nn.init.normal_(layer.look.out.weight)
    image = torch.randn(2, 6, 3, 4)
    expected = layer.look(image).flatten(2).mT
    torch.testing.assert_close(layer(image.flatten(2).mT)[0], expected)
    mask = torch.arange(12) < 7
    found, _ = layer(image.flatten(2).mT, mask=mask.expand(2, 12))
    alone, _ = layer(image.flatten(2).mT[:, :7])
    torch.testing.assert_close(found[:, :7], alone)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A classifier of images, a dark one and a bright one, hardly trained."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    chance = np.random.default_rng(0)
    examples = [
        (chance.integers(low, low + 100, (8, 8, 1)).astype(np.uint8), name)
        for low, name in ((0, "dark"), (150, "bright")) * 12
    ]
    settings = ("data.source_type=image", "data.image_size=8", "model.kind=gru", "model.patch=4")
    list(train(Recipe.of({"task": "classify"}).override(*FEW, *settings), folder, examples=examples))
    return load(folder)


def test_a_recipe_puts_them_in_front_of_what_reads_an_image(images):
    assert sum(isinstance(part, NonLocal) for part in images.model.encoder.layer.modules()) == 2
    assert isinstance(images.model.encoder.layer.layers[0], NonLocalLayer)
    picture = np.full((8, 8, 1), 200, np.uint8)
    assert {one.output for one in images.predict(picture)} <= {"dark", "bright"}
    [found] = [one for one in images.look(picture).measure("heads") if one.kind == "itself"]
    np.testing.assert_allclose(found.weights.sum(-1), 1, rtol=1e-5)


def test_they_are_refused_where_nothing_may_look_ahead():
    with pytest.raises(RecipeError, match="with model.causal no element sees those behind it"):
        Recipe.of({"task": "tag"}).override("model.non_local=1", "model.causal=true")
