"""A recipe: everything a run is made from, read from TOML, changed from the command line, written back whole.

The task chooses the classes of its tables, `kind` those of [model] and its sides. This file holds them together:
recipes and files, overrides, and what is derived. It opens no data.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, Union

from pydantic import Field, TypeAdapter, ValidationError, create_model, model_validator

from ..architectures import ARCHITECTURES
from ..architectures import DEFAULT as DEFAULT_KIND
from ..arguments import describe_value
from ..errors import RecipeError
from . import owners, toml
from .builtin import builtin, read_builtin
from .contradictions import CHECKS, LABELERS
from .data import Data as Data
from .messages import MisplacedSetting, Setting, escape_text, explain_wrong_choice, fault, format_value, settings
from .model import SIDES, model_class, model_union
from .model import Model as Model
from .names import RENAMED_RECIPES
from .opening import OPENABLE, name_all, split_open, take_open
from .section import About as About
from .section import Section
from .start import FROM, adopt_settings, check_given, suggest_settings
from .tasks import DEFAULT, USES, Use
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
# What decides which other settings there are.
CHOOSING = ("task", "model.kind", *(f"model.{side}.kind" for side in SIDES))


class Recipe(Section):
    """Everything a run is made from. A mistake in it is a RecipeError of one sentence."""

    task: str = DEFAULT
    about: About = Field(default_factory=About, description="For whoever chooses a recipe; training reads none of it.")
    data: Data = Field(
        default_factory=Data, description="Where the examples come from and how they become tokens or numbers."
    )
    model: Model = Field(default_factory=lambda: Recipe().model, description="The network.")
    train: Train = Field(default_factory=Train, description="How the network learns.")
    search: Search = Field(default_factory=Search, description="How an output is written, one token after the other.")

    def __new__(cls, **values: Any) -> Self:
        """`Recipe()` has the class of its task and kinds."""
        return super().__new__(class_of(values) if cls is Recipe else cls)  # type: ignore[return-value]

    @classmethod
    def read(cls, name_or_path: str | Path, *overrides: str) -> "Recipe":
        """A built-in recipe by its name, or a TOML file, with `section.key=value` overrides."""
        if not isinstance(name_or_path, str | Path):
            raise RecipeError(
                f"a recipe is {describe_value(name_or_path)}, but a name was expected, or the path of a file"
            )
        text, place = _find(name_or_path)
        values = toml.parse(text, place)
        builtin_one = place == f"recipe {name_or_path}"
        values, open_names = take_open(values, str(values.get("task", DEFAULT)))
        try:
            recipe = _validate(values)
        except MisplacedSetting as error:
            raise RecipeError(f"{toml.locate_setting(text, place, error.path)}: {error}") from None
        if recipe.model.start and "kind" not in values["model"]:  # else it says itself what it starts with
            explicit = {name: _find_value(recipe, name) for name in settings(type(recipe)) if _is_said(values, name)}
            check_given(recipe._adopt(recipe.model.start), explicit, recipe.model.start)
            recipe = recipe.changed(FROM, recipe.model.start)
        explicit_names = () if builtin_one else name_all(values)
        recipe = recipe._remember_open(open_names, explicit_names, adapts=not builtin_one or bool(recipe.data.sample))
        return recipe.override(*overrides)

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Recipe":
        """The recipe of a dictionary such as a TOML file gives; only what says "auto" in it is left open."""
        if isinstance(values, dict):
            values, open_names = take_open(values, str(values.get("task", DEFAULT)))
        try:
            return _validate(values)._remember_open(open_names, (), adapts=False)
        except MisplacedSetting as error:
            raise RecipeError(str(error)) from None

    def override(self, *texts: str) -> "Recipe":
        """The recipe with `section.key=value` applied. Values are as in TOML; a bare word is text.

        Where a list may stand, a bare `a,b` is one. Where text is asked for, it is taken as it stands.
        """
        for text in texts:
            if not isinstance(text, str):
                raise RecipeError(f"a change is {describe_value(text)}, but a text was expected, as section.key=value")
        return self._with(dict(map(toml.split_assignment, texts)), toml.parse_value)

    def changed(self, name: str, value: object) -> "Recipe":
        """The recipe with one setting changed, such as `changed("train.steps", 1234)`."""
        return self._with({name: value}, _keep)

    def take_settings(self, other: "Recipe") -> "Recipe":
        """The recipe with what another one of the same task says: what stands in its file, or it was changed by. Of
        what a built-in one has by itself, only its sample counts, beside another."""
        names = [name for name in settings(type(other)) if name in other.__dict__["explicit"]]
        names += ["data.sample"] * bool(self.data.sample and other.data.sample)
        return self._apply({name: _find_value(other, name) for name in names}, _keep)

    def _with(self, news: Mapping[str, Any], parse: Any) -> "Recipe":
        """With a run to start from, its settings go before those that are given, which may not contradict them."""
        if not news.get(FROM):
            return self._apply(news, parse)
        deciding = ("task", "data.source_type", "train.objective")  # what can be taken along
        recipe = self._apply({name: news[name] for name in deciding if name in news}, parse)
        folder = parse(news[FROM], settings(type(recipe))[FROM])
        adopted = recipe._adopt(folder)
        recipe = recipe._apply(adopted | suggest_settings(folder, recipe.task), _keep)._apply(news, parse)
        check_given(adopted, {name: _find_value(recipe, name) for name in adopted}, folder)
        return recipe

    def _adopt(self, folder: str) -> dict[str, Any]:
        """The settings that come from the run, or the folder, that this one starts from."""
        return adopt_settings(folder, self.task, self.train.objective)

    def _apply(self, news: Mapping[str, Any], parse: Any) -> "Recipe":
        """What chooses classes goes first; what the chosen classes do not have is left out, and noted."""
        values = _values(self)
        news, open_names = split_open(str(news.get("task", self.task)), news)
        for name in (name for name in CHOOSING if name in news):
            _set(values, name, parse(news[name], settings(type(self))["task"]), news)
        try:
            chosen = class_of(values)
        except MisplacedSetting as error:
            raise RecipeError(str(error)) from None
        values, notes = self._fit_values(values, chosen, news)
        for name, value in news.items():
            _set(values, name, parse(value, toml.find_setting(chosen, name)), news)
        recipe = Recipe.of(values)
        recipe.__dict__["notes"] = (*self.notes, *notes)
        left = self.__dict__.get("left_open", frozenset()) - set(news) | open_names
        explicit = (self.__dict__.get("explicit", frozenset()) | set(news)) - open_names
        return recipe._remember_open(left, explicit, self.__dict__.get("adapts", False))

    def _remember_open(self, open_names: Iterable[str], explicit: Iterable[str], adapts: bool) -> "Recipe":
        """The same, remembering what it leaves open and what it says; with `adapts`, all else is open to own data."""
        self.__dict__ |= {"left_open": frozenset(open_names), "explicit": frozenset(explicit), "adapts": adapts}
        return self

    def find_open(self, own_data: bool = False) -> frozenset[str]:
        """The settings that the data is to settle; `own_data` takes the place of the recipe's own."""
        left: frozenset[str] = self.__dict__.get("left_open", frozenset())
        if not self.__dict__.get("adapts") or not (own_data or self.data.train):
            return left
        explicit = self.__dict__["explicit"]
        steps = {"train.steps"} if self.train.time else set()
        return (left | (set(OPENABLE.get(self.task, ())) - explicit)) - steps

    def settle(self, values: Mapping[str, Any], about: About) -> "Recipe":
        """The recipe with values for what was open, and nothing left open."""
        recipe = self._apply({name: value for name, value in values.items() if name in CHOOSING}, _keep)
        known = settings(type(recipe))  # a kind may lack what another has: the size of a linear one
        recipe = recipe._apply({name: value for name, value in values.items() if name in known}, _keep)
        copy = recipe.model_copy(update={"about": about})
        copy.__dict__["notes"] = self.notes
        return copy._remember_open((), (), adapts=False)

    def _fit_values(
        self, values: dict[str, Any], chosen: type["Recipe"], news: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """The values that the chosen class has settings for, and a note on others that were not at their default."""
        fitting: dict[str, Any] = {}
        left: dict[str, list[str]] = {}
        for name in settings(type(self)):
            table, key = _table(values, name), name.split(".")[-1]
            if key not in table:
                continue
            if name in CHOOSING or _takes(chosen, settings(type(self))[name], name):
                _table(fitting, name)[key] = table[key]
            elif name not in news and table[key] != _default(type(self), name):
                kind = chosen.kinds().get(name.rpartition(".")[0], "")
                owner = kind if kind and kind != _table(_values(self), name).get("kind", kind) else chosen.task_name()
                left.setdefault(owner, []).append(f"{name} = {format_value(table[key])}")
        return fitting, [f"left out, as {owner} has no such setting: {', '.join(all)}" for owner, all in left.items()]

    @property
    def notes(self) -> tuple[str, ...]:
        """What overrides left out of the recipe, a sentence each."""
        return self.__dict__.get("notes", ())

    def resolved(self) -> "Recipe":
        """With every setting filled in that follows from other settings; resolving again changes nothing.

        Steps that a time budget will decide, and what follows from them, stay open until they are known.
        """
        train = self.train.resolved(self.use.window, self.use.best)
        model = self.model.resolved()
        forced = {name: value for name, value in train.model_settings().items() if name in type(model).model_fields}
        return self.model_copy(update={"model": model.model_copy(update=forced), "train": train})

    @property
    def use(self) -> Use:
        """The classes of the task's tables."""
        return USES[self.task]

    @model_validator(mode="after")
    def _tables_fit(self) -> Self:
        """Settings of different tables do not contradict each other."""
        for check in CHECKS:
            check(self)
        return self

    def check_data(self) -> None:
        """Refuse a recipe that names no examples: it can be printed, but not trained."""
        if not self.data.sample and not self.data.train:
            raise RecipeError(
                "no examples are given: set data.train=FILE, or data.train=SOURCE,TARGET for two parallel files, "
                "or data.sample=dates for the built-in sample"
            )

    def to_toml(self, comments: bool) -> str:
        """All of it as TOML that reads back equal. Comments give help, choices, and what derived settings become."""
        choices = {"task": tuple(USES), "kind": list_kinds(self.task)}
        return toml.write(self, self.resolved(), comments, choices, self.find_open())

    @classmethod
    def schema(cls) -> dict[str, Any]:  # type: ignore[override]  # pydantic's own method of this name is deprecated
        """The JSON schema of a recipe, for editors that complete and check what is typed; of one task, or of all."""
        tasks = USES if cls is Recipe else [cls.task_name()]
        recipes = [_compose(task, model_union(USES[task].model)) for task in tasks]
        every: Any = Union[tuple(recipes)]  # noqa: UP007
        adapter: TypeAdapter[Any] = TypeAdapter(every)
        return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | adapter.json_schema()

    # --- of the class ---

    @classmethod
    def kinds(cls) -> dict[str, str]:
        """The architecture of each table that has one."""
        model: Any = cls.model_fields["model"].annotation
        tables = {"model": model} | {
            f"model.{side}": model.model_fields[side].annotation for side in SIDES if model.two_sided
        }
        return {name: table.model_fields["kind"].default for name, table in tables.items()}

    @classmethod
    def task_name(cls) -> str:
        return str(cls.model_fields["task"].default)

    @classmethod
    def explain_unknown(cls, path: Sequence[str]) -> str:
        return owners.explain_unknown(cls.task_name(), cls.kinds(), path, settings(cls))


def list_kinds(task: str) -> tuple[str, ...]:
    """The kinds that a task may have."""
    numbers = task == "forecast" or task in LABELERS
    return tuple(kind for kind in owners.find_kinds(task) if numbers or not ARCHITECTURES[kind].only_numbers)


def class_of(values: object) -> type[Recipe]:
    """The class of a recipe with these values: its task and kinds choose it."""
    task, model = (values.get("task", DEFAULT), values.get("model")) if isinstance(values, dict) else (DEFAULT, {})
    if task not in USES:
        raise explain_wrong_choice(["task"], tuple(USES), task)
    kinds = [DEFAULT_KIND]
    for path in (["model"], ["model", "encoder"], ["model", "decoder"]):
        table = model if len(path) == 1 or not isinstance(model, dict) else model.get(path[1])
        kind = table.get("kind", kinds[0]) if isinstance(table, dict) else kinds[0]
        if not isinstance(kind, str) or kind not in ARCHITECTURES:
            raise explain_wrong_choice([*path, "kind"], list_kinds(task), kind)
        kinds = [kind] if len(path) == 1 else [*kinds, kind]
    return _compose(task, model_class(USES[task].model, *kinds))


@cache
def _compose(task: str, model: Any) -> type[Recipe]:
    use = USES[task]
    tables = {"data": use.data, "train": use.train, "search": use.search, "model": model}
    described = {name: Recipe.model_fields[name].description for name in tables}
    fields: dict[str, Any] = {
        name: (one, Field(default_factory=one, description=described[name])) for name, one in tables.items()
    }
    fields["task"] = (Literal[task], Field(default=task, description=f"What is learned: here, to {use.does}."))
    return create_model(f"{task.title()}Recipe", __base__=Recipe, **fields)


def _validate(values: Any) -> Recipe:
    """The recipe of these values; what is wrong with them, as a MisplacedSetting."""
    chosen = class_of(values)
    try:
        return chosen.model_validate(values)
    except ValidationError as error:
        raise MisplacedSetting(*fault(chosen, error)) from None


def _values(table: Section) -> dict[str, Any]:
    """What a recipe was made from: all values, but not those of a side that are as in [model]."""
    values: dict[str, Any] = {}
    for name in type(table).model_fields:
        value = getattr(table, name)
        values[name] = _values(value) if isinstance(value, Section) else value
        for same in table.list_same_settings(name) if isinstance(value, Section) else ():
            values[name].pop(same)
    return values


def _set(values: dict[str, Any], name: str, value: object, news: Mapping[str, Any]) -> None:
    """Set one value. What is said of both sides holds for both; a later word takes back its rival."""
    section, _, key = name.rpartition(".")
    others = [f"model.{side}.{key}" for side in SIDES] if section == "model" else RIVALS.get(name, ()) if value else ()
    for other in others:
        above, _, rival = other.rpartition(".")
        if other not in news and (above == section or above.split(".")[-1] in values[section]):
            _table(values, other).pop(rival, None)
    _table(values, name)[key] = value


def _keep(value: object, setting: Setting) -> object:
    """A parser that returns the value unchanged."""
    return value


def _find_value(recipe: Section, name: str) -> Any:
    value: Any = recipe
    for key in name.split("."):
        value = getattr(value, key, None)
    return value


def _is_said(values: Any, name: str) -> bool:
    """Whether a setting stands in the tables of a file."""
    for key in name.split("."):
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    """The table in which a dotted name stands."""
    for section in name.split(".")[:-1]:
        values = values.setdefault(section, {})
    return values


def _takes(model: type[Section], setting: Setting, name: str) -> bool:
    """Whether there is such a setting that takes the same values."""
    other = settings(model).get(name)
    return other is not None and other._replace(help="") == setting._replace(help="")


def _default(model: type[Section], name: str) -> object:
    for key in name.split("."):
        field = model.model_fields[key]
        model = field.annotation  # type: ignore[assignment]
    return field.get_default(call_default_factory=True)


def _find(name_or_path: str | Path) -> tuple[str, str]:
    """A recipe's text, and where it stands. A built-in name goes before a file of that very name."""
    name, names = str(name_or_path), builtin()
    if name_or_path in names:
        return read_builtin(name), f"recipe {name}"
    if not os.path.isfile(name):
        _refuse_unknown(name, names)
    return toml.read(Path(name)), escape_text(name)


def _refuse_unknown(name: str, names: list[str]) -> None:
    """Refuse what looks like the name of a built-in recipe and is none."""
    stem = name.removesuffix(".toml")
    if stem in RENAMED_RECIPES:
        raise RecipeError(f"the recipe {stem} is now {RENAMED_RECIPES[stem]}")
    if stem in names:
        raise RecipeError(f"there is no file {name}; the built-in recipe is called {stem}")
    if stem == name and os.path.basename(name) == name:
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        choices = f"built in are {', '.join(names)}, and a file's name ends in .toml"
        raise RecipeError(f"there is no recipe {format_value(name)}; {hint}{choices}")
