"""The tasks there are, one line each."""

from collections.abc import Callable, Mapping
from importlib import import_module

from ..config.recipe import Recipe
from ..data.schema import FieldKind
from .task import Declaration


def of_module(name: str) -> Callable[[Recipe], Declaration]:
    """What declares the task of the module of this name, which is imported only when a recipe is of this task."""

    def declare(recipe: Recipe) -> Declaration:
        declaration: Declaration = import_module(f".{name}", __package__).declare(recipe)
        return declaration

    return declare


TASKS: dict[str, Callable[[Recipe], Declaration]] = {
    "seq2seq": of_module("seq2seq"),
    "transcribe": of_module("transcribe"),
    "classify": of_module("classify"),
    "tag": of_module("tag"),
    "caption": of_module("caption"),
    "language": of_module("language"),
    "pretrain": of_module("pretrain"),
    "music": of_module("music"),
    "forecast": of_module("forecast"),
    "draw": of_module("draw"),
}


def declare(recipe: Recipe, fields: Mapping[str, FieldKind] | None = None) -> Declaration:
    """The task of a recipe; `fields` of one's own, by side, take the place of those that the recipe names."""
    declaration = TASKS[recipe.task](recipe)
    return declaration.with_fields(fields) if fields else declaration
