"""A field of a person's own: visits to pages, each with its seconds. One class, and everything else comes with it."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from seqloom import Recipe, load, train
from seqloom.data.ragged import Ragged
from seqloom.errors import DataError, RecipeError, RunError
from seqloom.fields import ArrayField
from seqloom.layers.embeddings import TokenEmbedding

from .recipes import measured


class VisitEmbedding(nn.Module):
    """The vector of a page, and a product of the time spent on it."""

    def __init__(self, pages, size):
        super().__init__()
        self.pages, self.seconds = TokenEmbedding(pages, size), nn.Linear(1, size)

    def forward(self, visits):
        return self.pages(visits[..., 0].long()) + self.seconds(visits[..., 1:])


class Visits(ArrayField):
    """A raw value is a list of (page, seconds); pages are numbers from 1."""

    kind = "visits"
    dtype = np.dtype(np.float32)
    shape = (2,)

    def __init__(self, pages, longest):
        self.pages, self.longest = pages, longest

    @classmethod
    def fit(cls, raws, settings):
        visits = np.concatenate(list(raws))
        return cls(int(visits[:, 0].max()), float(visits[:, 1].max()))

    @classmethod
    def from_json(cls, values):
        return cls(values["pages"], values["longest"])

    def to_json(self):
        return {"kind": self.kind, "pages": self.pages, "longest": self.longest}

    def __len__(self):
        return self.pages + 1

    @classmethod
    def check(cls, raw):
        shape = np.shape(raw)
        return "" if len(shape) == 2 and shape[1] == 2 else "is no list of visits, each a page and its seconds"

    def encode_many(self, raws):
        return Ragged.stack([np.asarray(raw, np.float32) for raw in raws])

    def collate(self, encoded, rows, model):
        visits, mask = super().collate(encoded, rows, model)
        return visits / torch.tensor([1, self.longest]), mask

    def embedding(self, model, body="encoder"):
        return VisitEmbedding(len(self), model.embedding)

    def element_names(self, raw, encoded, model):
        return [f"page {int(page)}" for page, _ in raw]


def visits(count, seed=0):
    """Who stays long on page 3 buys; other pages and short looks at it mean nothing."""
    chance = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        pages, seconds = chance.integers(1, 6, 5), chance.uniform(0, 60, 5)
        bought = ((pages == 3) & (seconds > 30)).any()
        examples.append((list(zip(pages.tolist(), seconds.tolist(), strict=True)), "buys" if bought else "leaves"))
    return examples


RECIPE = Recipe.of({"task": "classify"}).override(
    *("model.kind=gru", "model.size=32", "train.steps=250", "train.batch_tokens=640", "train.learning_rate=0.01"),
    *("train.validate_every=50", "train.checkpoint_every=50"),
)
FIELDS = {"source": Visits}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "run"
    list(train(RECIPE, folder, examples=visits(1000), fields=FIELDS))
    return folder


def test_it_learns_and_answers(run):
    found = load(run, fields=FIELDS)
    scores = found.scores["scores"]["accuracy"]
    assert scores["value"] > 0.9 > scores["baselines"]["most frequent"]
    [long], [short] = (found.predict([(1, 5.0), (3, seconds)], beam=1) for seconds in (58.0, 1.0))
    assert (long.output, short.output) == ("buys", "leaves")


def test_padding_and_neighbors_change_nothing(run):
    found = load(run, fields=FIELDS)
    alone = found.predict([(3, 50.0)], beam=2)
    together, _ = found.predict_many([[(3, 50.0)], [(1, 5.0)] * 9], beam=2)
    assert [one.output for one in alone] == [one.output for one in together]
    np.testing.assert_allclose([one.score for one in alone], [one.score for one in together], atol=1e-5)


def test_it_is_looked_into_and_diagnosed(run):
    found = load(run, fields=FIELDS)
    look = found.look([(1, 5.0), (3, 50.0)])
    assert look.names.of("inputs") == ["page 1", "page 3"]
    assert look.gradients() and found.diagnose(visits(1000), seconds=0) is not None


def test_it_resumes_to_the_same_bits(tmp_path):
    short = RECIPE.override("train.steps=4", "train.checkpoint_every=1")
    given = {"examples": visits(60), "fields": FIELDS}
    list(train(short, tmp_path / "whole", **given))
    records = measured(train(short, tmp_path / "cut", **given))
    next(records)
    records.close()
    list(train(short, tmp_path / "cut", resume=True, **given))
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "cut/model.safetensors").read_bytes()


def test_a_folder_names_its_kind_but_never_brings_it(run):
    assert json.loads((run / "task.json").read_text())["fields"]["source"]["kind"] == "visits"
    with pytest.raises(RunError, match="the source is 'visits', but the recipe says 'characters'"):
        load(run)


def test_what_it_cannot_read_is_refused_in_its_own_words(run, tmp_path):
    with pytest.raises(DataError, match="an input is no list of visits"):
        load(run, fields=FIELDS).predict([1, 2, 3])
    with pytest.raises(DataError, match="example 1 of train: the source is no list of visits"):
        list(train(RECIPE, tmp_path / "run", examples=[([(1, 2.0)], "buys"), ("text", "leaves")] * 9, fields=FIELDS))
    with pytest.raises(RecipeError, match="there is no side 'pages'"):
        list(train(RECIPE, tmp_path / "run", examples=visits(9), fields={"pages": Visits}))


def test_its_numbers_are_scaled_by_what_training_had():
    field = Visits.fit(iter([np.array([[1, 10.0], [2, 40.0]])]), None)
    tensor, mask = field.collate(field.encode_many([[(2, 20.0)], [(1, 40.0), (1, 0.0)]]), [0, 1], None)
    torch.testing.assert_close(tensor, torch.tensor([[[2, 0.5], [0, 0]], [[1, 1.0], [1, 0.0]]]))
    assert mask.tolist() == [[True, False], [True, True]]
