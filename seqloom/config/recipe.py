"""A recipe: everything a run is made from, read from TOML, changed from the command line, written back whole.

The settings themselves are declared in `settings/`, with their help. This file holds them together: built-in recipes
and files, overrides, what is derived, and the words of `seqloom recipes`. It knows no torch and opens no data.
"""

import os
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from ..arguments import described
from ..errors import RecipeError
from . import toml as toml
from .body import Body as Body
from .data import Data as Data
from .messages import Misplaced, fault, plain, shown
from .model import Model as Model
from .model import Part as Part
from .renamed import RENAMED_RECIPES
from .section import About as About
from .section import Section
from .tasks import FORECASTERS, LABELERS, USES, Name, unread, useless
from .train import Search as Search
from .train import Train as Train
from .train import seconds as seconds

# Two ways to say one thing: whoever says the one later takes back the other, so that `train.time=5m` on the command
# line replaces the steps of the file. Said in one breath, they contradict each other and are refused.
RIVALS = {
    "data.sample": ("data.train", "data.validation", "data.test"),
    "data.train": ("data.sample",),
    "train.steps": ("train.time",),
    "train.time": ("train.steps",),
}
# What is said of both sides holds for both, even if one side was set apart before.
SIDES = {f"model.{key}": (f"model.encoder.{key}", f"model.decoder.{key}") for key in Body.model_fields}


class Recipe(Section):
    """Everything a run is made from. A mistake in it is a RecipeError of one sentence."""

    task: Name = Field(
        default="seq2seq",
        description="What is learned: " + ", or ".join(f"to {use.does}" for use in USES.values()) + ".",
    )
    about: About = Field(default=About(), description="For whoever chooses a recipe; training reads none of it.")
    data: Data = Field(default=Data(), description="Where the examples come from and how they become tokens.")
    model: Model = Field(default=Model(), description="The network: the settings of both its sides.")
    train: Train = Field(default=Train(), description="How the network learns.")
    search: Search = Field(default=Search(), description="How an output is written, one token after the other.")

    @classmethod
    def read(cls, name_or_path: str | Path, *overrides: str) -> "Recipe":
        """A built-in recipe by its name, or a TOML file, with `section.key=value` overrides."""
        if not isinstance(name_or_path, str | Path):
            raise RecipeError(f"a recipe is {described(name_or_path)}, but a name was expected, or the path of a file")
        text, place = _find(name_or_path)
        values = toml.parse(text, place)
        try:
            recipe = cls.model_validate(values)
        except ValidationError as error:
            path, sentence = fault(cls, error)
            raise RecipeError(f"{toml.located(text, place, path)}: {sentence}") from None
        return recipe.override(*overrides)

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Recipe":
        """The recipe of a dictionary such as a TOML file gives."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise RecipeError(fault(cls, error)[1]) from None

    def override(self, *texts: str) -> "Recipe":
        """The recipe with `section.key=value` applied. Values are as in TOML; a bare word is text.

        Where a list may stand, a bare `a,b` is one. Where text is asked for, it is taken as it stands.
        """
        for text in texts:
            if not isinstance(text, str):
                raise RecipeError(f"a change is {described(text)}, but a text was expected, as section.key=value")
        return self._with(dict(toml.assignment(Recipe, text) for text in texts))

    def changed(self, name: str, value: object) -> "Recipe":
        """The recipe with one setting changed, such as `changed("train.steps", 1234)`."""
        return self._with({toml.known(Recipe, name): value})

    def _with(self, news: dict[str, object]) -> "Recipe":
        values = self.model_dump(exclude_none=True)
        for name, value in news.items():
            for other in SIDES.get(name, RIVALS.get(name, ()) if value else ()):
                if other not in news:
                    _table(values, other).pop(other.split(".")[-1], None)
            _table(values, name)[name.split(".")[-1]] = value
        return Recipe.of(values)

    def resolved(self) -> "Recipe":
        """With every setting filled in that follows from other settings; resolving again changes nothing.

        Steps that a time budget will decide, and what follows from them, stay open until they are known.
        """
        use = USES[self.task]
        model = self.model.resolved(use.encodes, use.decodes, use.ahead)
        if unread(self.task, "model.embedding"):  # nothing follows for what is not there
            model = model.model_copy(update={"embedding": self.model.embedding})
        return self.model_copy(update={"model": model, "train": self.train.resolved(use.window, use.best)})

    @model_validator(mode="after")
    def _possible(self) -> Self:
        use = USES[self.task]
        if name := next(useless(self, self.task), ""):
            raise Misplaced(
                name.split("."), f"{name} is set, but it means nothing to a recipe whose task is to {use.does}"
            )
        if not use.ahead and (self.model.bidirectional or self.model.encoder.bidirectional):
            raise Misplaced(
                ["model", "bidirectional"],
                f"model.bidirectional is true, but a recipe whose task is to {use.does} may not see the future",
            )
        self._check_numbers()
        if fault := self.model.fault(use.encodes, use.decodes, use.ahead):
            raise Misplaced(["model"], fault)
        return self

    def _check_numbers(self) -> None:
        """What reads numbers gets them, in pieces that fit."""
        model, use = self.model, USES[self.task]
        kinds = [model.side("encoder").kind] * use.encodes + [model.side("decoder").kind] * use.decodes
        labeled = self.task in LABELERS and self.data.source_type == "numbers"
        if "gru-d" in kinds and self.task not in FORECASTERS and not labeled:
            told = f"a recipe whose task is to {use.does}"
            but = f"{told}, and data.source_type is {self.data.source_type!r}" if self.task in LABELERS else told
            raise Misplaced(
                ["model", "kind"],
                f'model.kind "gru-d" reads numbers of which some are missing, as series have them, but this is {but}',
            )
        if "gru-d" in kinds and model.patch_length > 1:
            raise Misplaced(
                ["model", "patch_length"], 'model.patch_length is set, but kind "gru-d" reads one row after the other'
            )
        if self.task == "forecast" and self.data.context % model.patch_length:
            raise Misplaced(
                ["model", "patch_length"],
                f"model.patch_length is {model.patch_length}, which does not divide data.context, "
                f"{self.data.context}, evenly",
            )

    def check_data(self) -> None:
        """Refuse a recipe that names no examples: it can be printed, but not trained."""
        if not self.data.sample and not self.data.train:
            raise RecipeError(
                "no examples are given: say data.train=FILE, or data.train=SOURCE,TARGET for two parallel files, "
                "or data.sample=dates for the built-in sample"
            )

    def to_toml(self, comments: bool) -> str:
        """All of it as TOML that reads back equal. Comments give help, choices, and what derived settings become."""
        return toml.write(self, self.resolved(), comments, lambda name: unread(self.task, name))

    @classmethod
    def schema(cls) -> dict[str, Any]:  # type: ignore[override]  # pydantic's own method of this name is deprecated
        """The JSON schema of a recipe, for editors that complete and check what is typed."""
        return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | cls.model_json_schema()


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    """The table in which a dotted name stands."""
    for section in name.split(".")[:-1]:
        values = values.setdefault(section, {})
    return values


class Summary(NamedTuple):
    """A recipe in the words of `seqloom recipes`."""

    title: str
    size: str
    time: str
    data: str


def describe(name: str) -> Summary:
    """What a recipe does, how large its model is, how long it takes, and on what data."""
    recipe = Recipe.read(name)
    use = USES[recipe.task]
    sides = [recipe.model.side("encoder")] * use.encodes + [recipe.model.side("decoder")] * use.decodes
    size = " → ".join(dict.fromkeys(side.shape for side in sides))
    data = f"sample {recipe.data.sample}" if recipe.data.sample else ", ".join(recipe.data.train) or "your own files"
    return Summary(recipe.about.title, size, recipe.about.time, data)


def builtin() -> list[str]:
    """The names of the built-in recipes."""
    files = resources.files("seqloom").joinpath("recipes").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def _find(name_or_path: str | Path) -> tuple[str, str]:
    """A recipe's text, and where it stands. A built-in name goes before a file of that very name."""
    given, names = str(name_or_path), builtin()
    if name_or_path in names:
        file = resources.files("seqloom").joinpath("recipes", f"{given}.toml")
        return file.read_text(encoding="utf-8"), f"recipe {given}"
    if not os.path.isfile(given):
        _refuse_unknown(given, names)
    return toml.read(Path(given)), plain(given)


def _refuse_unknown(given: str, names: list[str]) -> None:
    """Refuse what looks like the name of a built-in recipe and is none."""
    stem = given.removesuffix(".toml")
    if stem in RENAMED_RECIPES:
        raise RecipeError(f"the recipe {stem} is now {RENAMED_RECIPES[stem]}")
    if stem in names:
        raise RecipeError(f"there is no file {given}; the built-in recipe is called {stem}")
    if stem == given and os.path.basename(given) == given:
        near = get_close_matches(given, names, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        choices = f"built in are {', '.join(names)}, and a file's name ends in .toml"
        raise RecipeError(f"there is no recipe {shown(given)}; {hint}{choices}")
