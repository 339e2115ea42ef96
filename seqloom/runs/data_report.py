"""What was read, in words: some examples, raw and as the model sees them, and all that was done to the data."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ..config.recipe import Recipe
from ..counts import format_count
from ..data.formats.tables import ENDINGS, TABLES
from ..data.inputs import ending_of
from ..data.pretokenized import SEPARATOR
from ..data.preview import Preview, SidePreview
from ..data.readers import make_image_reading
from ..errors import escape_unprintable
from ..tasks.task import Task, TaskData
from .folder import build_report
from .model_card import describe_data

WIDTH = 78  # of a line that shows an example
BETWEEN = "·"  # elements, which may hold blanks


def name_columns(recipe: Recipe, task: Task) -> dict[str, str]:
    """The columns of a table that each side comes from; nothing where files have no columns."""
    files, format = recipe.data.train, recipe.data.format
    if not files or recipe.task == "forecast":
        return {}
    if (ENDINGS.get(ending_of(files[0])) if format == "guess" else format) not in TABLES:
        return {}
    if task.schema.pictured:
        reading = make_image_reading(task.schema)
        return {
            side: reading.image if one.field.is_image else reading.caption for side, one in task.schema.sides.items()
        }
    return {side: ", ".join(one.columns) for side, one in task.schema.sides.items() if one.columns}


def describe_examples(task: Task, prepared: TaskData) -> Iterator[str]:
    """A few lines about each of some training examples."""
    columns = name_columns(task.recipe, task)
    for number, example in enumerate(task.shape.preview(prepared), 1):
        yield f"training example {number}"
        for side, preview in example.items():
            origin = f" ({columns[side]})" if side in columns else ""
            yield shorten(f"  {side}{origin}: {preview.raw.replace(SEPARATOR, ' ').strip()}")
            yield shorten(f"    read as {describe_length(preview)}: {f' {BETWEEN} '.join(preview.elements)}")


def describe_length(side: SidePreview) -> str:
    """How many elements the model reads."""
    if side.length < side.whole:
        return f"{side.length:,} of {side.whole:,} elements"
    return format_count(side.length, "element")


def shorten(text: str) -> str:
    """The text on one line that a terminal shows whole: control characters are escaped, what is too much is cut."""
    shown = escape_unprintable(text)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 1]}…"


def data_json(task: Task, prepared: TaskData) -> dict[str, Any]:
    """The examples and the whole report, for programs."""
    return {
        "task": task.recipe.task,
        "columns": name_columns(task.recipe, task),
        "examples": [preview_json(example) for example in task.shape.preview(prepared)],
        "report": build_report(task, prepared),
    }


def preview_json(example: Preview) -> dict[str, Any]:
    return {side: asdict(one) for side, one in example.items()}


def describe_all(task: Task, prepared: TaskData) -> Iterator[str]:
    """The examples, then the report."""
    yield from describe_examples(task, prepared)
    yield from (line.replace("**", "") for line in describe_data(build_report(task, prepared)))
