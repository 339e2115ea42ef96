"""What a run is asked from Python, checked: inputs, texts, files, options."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..arguments import check_list, check_path, check_text, describe_value
from ..counts import format_count
from ..data.formats.folders import is_image
from ..data.formats.tables import SkippedRows, drop_faults
from ..errors import DataError, SearchError
from ..tasks.decoding_options import DecodingOptions
from ..tasks.task import Task


def split_inputs(task: Task, raw: Any) -> list[Any] | None:
    """Several inputs one by one; None if it is one. A `Path` is a file of inputs, unless it is an image to be read."""
    if isinstance(raw, Path) and not (task.reads_images and is_image(raw)):
        faulty, skip = SkippedRows(), task.recipe.data.on_bad_row == "skip"
        inputs = task.read_inputs(str(raw), skipped=faulty).inputs
        return [one.value for one in drop_faults(inputs, str(raw), skip, faulty, "input")]
    return task.shape.split_inputs(raw)


def accept_inputs(task: Task, inputs: Sequence[Any]) -> list[Any]:
    """Inputs as the task reads them; of several, it is said which one cannot be read."""
    accepted = []
    for number, raw in enumerate(inputs):
        try:
            accepted.append(task.shape.accept_input(raw))
        except DataError as error:
            if len(inputs) == 1:
                raise
            raise DataError(f"{error} (input {number}, counted from 0)") from None
    return accepted


def pair_texts(texts: Sequence[str], given: Any) -> list[tuple[Any, str]]:
    """Each text with what is given before it: one for all, or one for each."""
    checked = [check_text("a text to score", text) for text in check_list("the texts", texts)]
    several = list(given) if isinstance(given, list) else [given] * len(checked)
    if len(several) != len(checked):
        raise DataError(
            f"{format_count(len(several), 'input')} for {format_count(len(checked), 'text')}: one for all, or "
            "one for each"
        )
    return list(zip(several, checked, strict=True))


def check_options(options: DecodingOptions) -> DecodingOptions:
    """How answers are to be searched for, if that is what it is."""
    if not isinstance(options, DecodingOptions):
        raise SearchError(f"the options are {describe_value(options)}, but DecodingOptions were expected")
    return options


def check_files(files: Sequence[Path | str]) -> list[str]:
    """The names of files that are to be read; at least one."""
    if not files:
        raise DataError("no file is given to score on: the scores of the run's own test part are in `scores`")
    return [str(check_path("a file", file)) for file in files]
