"""The tasks there are, one line each."""

from collections.abc import Callable, Mapping
from importlib import import_module

from ..config.recipe import Recipe
from ..data.schema import FieldKind
from .task import Declaration


def declare_in_module(name: str) -> Callable[[Recipe], Declaration]:
    """What declares the task of the module of this name, which is imported only when a recipe is of this task."""

    def declare(recipe: Recipe) -> Declaration:
        declaration: Declaration = import_module(f".{name}", __package__).declare(recipe)
        return declaration

    return declare


TASKS: dict[str, Callable[[Recipe], Declaration]] = {
    "seq2seq": declare_in_module("seq2seq"),
    "transcribe": declare_in_module("transcribe"),
    "classify": declare_in_module("classify"),
    "tag": declare_in_module("tag"),
    "caption": declare_in_module("caption"),
    "language": declare_in_module("language"),
    "pretrain": declare_in_module("pretrain"),
    "music": declare_in_module("music"),
    "forecast": declare_in_module("forecast"),
    "draw": declare_in_module("draw"),
}


def declare(recipe: Recipe, fields: Mapping[str, FieldKind] | None = None) -> Declaration:
    """The task of a recipe; `fields` of one's own, by side, take the place of those that the recipe names."""
    declaration = TASKS[recipe.task](recipe)
    return declaration.with_fields(fields) if fields else declaration
