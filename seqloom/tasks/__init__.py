"""The tasks there are, one line each."""

from collections.abc import Callable, Mapping

from ..config.recipe import Recipe
from ..data.schema import FieldKind
from . import caption, classify, draw, forecast, language, music, pretrain, seq2seq, tag, transcribe
from .task import Declaration

TASKS: dict[str, Callable[[Recipe], Declaration]] = {
    "seq2seq": seq2seq.declare,
    "transcribe": transcribe.declare,
    "classify": classify.declare,
    "tag": tag.declare,
    "caption": caption.declare,
    "language": language.declare,
    "pretrain": pretrain.declare,
    "music": music.declare,
    "forecast": forecast.declare,
    "draw": draw.declare,
}


def declare(recipe: Recipe, fields: Mapping[str, FieldKind] | None = None) -> Declaration:
    """The task of a recipe; `fields` of one's own, by side, take the place of those that the recipe names."""
    declaration = TASKS[recipe.task](recipe)
    return declaration.with_fields(fields) if fields else declaration
