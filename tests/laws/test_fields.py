"""Laws of every field: JSON brings it back, a row is the same alone and among others, padding says nothing, what is
encoded can be decoded, and what is answered has a finite loss. A new field is tested by adding one line."""

import json

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.data.schema import read_field
from seqloom.fields import (
    TEXTS,
    Frames,
    Image,
    ImageTokens,
    Label,
    LabelSet,
    Number,
    Numbers,
    Sound,
    SpelledWordList,
    SymbolField,
    Tags,
    WordList,
)

CHANCE = np.random.default_rng(0)
SENTENCES = ["the cat sat", "a", "the dog, the cat and a mouse"]
IMAGES = [CHANCE.integers(0, 256, (1, 6, 4, 3), dtype=np.uint8) for _ in range(3)]
SERIES = [CHANCE.standard_normal((steps, 2)).astype(np.float32) for steps in (3, 1, 5)]
GAPS = [np.where(CHANCE.random(one.shape) < 0.3, np.nan, one).astype(np.float32) for one in SERIES]
SOUNDS = [CHANCE.uniform(-1, 1, samples).astype(np.float32) for samples in (1200, 300, 2500)]
FRAMES = [(CHANCE.random((steps, 88)) < 0.1).astype(np.uint8) for steps in (3, 1, 5)]
RECIPE = Recipe.of({"task": "classify"}).override("model.size=8", "data.source_type=image", "model.patch=2").resolved()
SETTINGS = RECIPE.data.model_copy(update={"characters": 6, "square": 2})

READ = {  # raw values of each field that can be read
    **{kind: (field, SENTENCES) for kind, field in TEXTS.items()},
    "word list": (WordList, SENTENCES),
    "spelled word list": (SpelledWordList, SENTENCES),
    "numbers": (Numbers, SERIES),
    "numbers with gaps": (Numbers, GAPS),
    "image": (Image, IMAGES),
    "frames": (Frames, FRAMES),
    "sound": (Sound, SOUNDS),
}
ANSWERED = {
    "label": (Label, ["x", "y", "x"]),
    "labels": (LabelSet, ["x, y", "-", "z"]),
    "number": (Number, ["1.5", "-3", "7"]),
    "tags": (Tags, ["A B", "C", "A A B"]),
}
ALL = READ | ANSWERED | {"image tokens": (ImageTokens, IMAGES)}


def fitted(case):
    kind, raws = case
    return kind.fit(iter(raws), SETTINGS), raws


@pytest.mark.parametrize("name", ALL)
def test_a_field_comes_back_from_json_and_reads_the_same(name):
    field, raws = fitted(ALL[name])
    again = read_field("side", type(field), json.loads(json.dumps(field.to_json())))
    for ours, theirs in zip(field.encode_many(raws), again.encode_many(raws), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(again) == len(field) and again.to_json() == field.to_json()


@pytest.mark.parametrize("name", ALL)
def test_many_values_are_encoded_as_each_alone_and_accepted(name):
    field, raws = fitted(ALL[name])
    assert not any(map(field.check, raws)) and field.check(None) and field.check(object())
    for raw, row in zip(raws, field.encode_many(raws), strict=True):
        np.testing.assert_array_equal(row, field.encode(raw))


@pytest.mark.parametrize("name", [name for name, (kind, _) in ALL.items() if issubclass(kind, SymbolField)])
def test_what_is_encoded_is_decoded(name):
    field, raws = fitted(ALL[name])
    for raw in raws:
        ids = field.encode(raw)
        back = field.decode(ids.tolist())
        np.testing.assert_array_equal(field.encode(back), ids)
        if field.is_text:
            assert back == field.normalize(raw)
        assert len(field.names(ids)) == len(ids)


@pytest.mark.parametrize("name", READ)
def test_a_row_is_the_same_alone_and_beside_longer_ones(name):
    field, raws = fitted(READ[name])
    model, encoded = RECIPE.model, field.encode_many(raws)
    torch.manual_seed(0)
    embed = field.embedding(model).eval()
    together, mask = field.collate(encoded, [0, 1, 2], model)
    vectors = embed(together.float() if together.dtype == torch.uint8 else together)
    assert mask.sum(1).tolist() == field.lengths(encoded, model).tolist() and vectors.shape[:2] == mask.shape
    for row, raw in enumerate(raws):
        alone, own = field.collate(encoded, [row], model)
        alone = embed(alone.float() if alone.dtype == torch.uint8 else alone)
        assert own.all() and alone.shape[-1] == field.features(model)
        torch.testing.assert_close(vectors[row][mask[row]], alone[0])
        assert len(field.element_names(raw, encoded.take([row]), model)) == own.sum()


@pytest.mark.parametrize("name", [name for name in ANSWERED if name != "tags"])
def test_an_answer_has_a_finite_loss_and_the_best_prediction_is_no_error(name):
    field, raws = fitted(ANSWERED[name])
    torch.manual_seed(0)
    head, encoded = field.head(4, RECIPE), field.encode_many(raws)
    features, target = torch.randn(3, 4), field.targets(encoded, [0, 1, 2])
    loss, count = head.loss(features, target)
    assert torch.isfinite(loss) and count == 3
    with torch.no_grad():
        expected = head(features)
    one = tuple(part[0] for part in expected) if isinstance(expected, tuple) else expected[0]
    [best] = field.predictions(one, 1)
    assert field.error(best, best.exact) == 0
