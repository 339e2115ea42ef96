"""An architecture of somebody else: a cell, its settings and one line in the union, as CONTRIBUTING.md says."""

import tomllib
from functools import partial
from typing import Literal

import pytest
from pydantic import Field
from torch import Tensor, nn

from seqloom import load, train
from seqloom.architectures import ARCHITECTURES
from seqloom.architectures.recurrent import ZoneoutSettings
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.layers.cells import Cell, Entries, MakeCell

from .recipes import small


class LeakyCell(Cell):
    """h = (1 − a) h + a tanh(W x + U h): an echo state network's unit, trained."""

    def __init__(self, inputs: int, size: int, leak: float) -> None:
        super().__init__(inputs, size)
        self.leak = leak
        self.W, self.U = nn.Linear(inputs, size), nn.Linear(size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        return ((1 - self.leak) * h + self.leak * (x + self.U(h)).tanh(),)


class Leaky(ZoneoutSettings):
    kind: Literal["leaky"] = "leaky"
    leak: float = Field(default=0.5, gt=0, le=1, description="The share of the state that a step replaces.")

    def cell(self) -> MakeCell:
        return partial(LeakyCell, leak=self.leak)


@pytest.fixture
def registered():
    ARCHITECTURES["leaky"] = Leaky
    yield
    del ARCHITECTURES["leaky"]


def test_it_trains_and_answers(registered, tmp_path):
    recipe = small(tmp_path, "model.kind=leaky", "model.leak=0.25", "model.decoder.kind=lstm", "train.steps=4")
    list(train(recipe, tmp_path / "run"))
    run = load(tmp_path / "run")
    cells = [part for part in run.model.modules() if isinstance(part, LeakyCell)]
    assert cells and all(cell.leak == 0.25 for cell in cells)
    assert run.recipe.model.side("decoder").kind == "lstm" and len(run.predict("abc", beam=2)) == 2


def test_its_settings_are_shown_checked_and_asked_for(registered):
    recipe = Recipe.read("classify", "model.kind=leaky", "model.leak=1")
    text = recipe.to_toml(comments=True)
    assert "# The share of the state that a step replaces." in text and '"leaky"' in text
    assert Recipe.of(tomllib.loads(text)) == recipe
    assert any("leak" in one.get("properties", {}) for one in Recipe.schema()["$defs"].values())
    with pytest.raises(RecipeError, match="model.leak must be a number from above 0 to 1, not 2"):
        recipe.override("model.leak=2")
    with pytest.raises(RecipeError, match="^lstm has no setting leak; leaky has$"):
        recipe.override("model.kind=lstm", "model.leak=0.5")


def test_without_the_line_there_is_no_such_kind():
    with pytest.raises(RecipeError, match='model.kind must be one of .*, not "leaky"'):
        Recipe.read("classify", "model.kind=leaky")
