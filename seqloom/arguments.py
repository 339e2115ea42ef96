"""What is given from Python, looked at where it comes in: it is of the kind that was asked for, or a sentence says so.

Knows nothing of models and data. Numbers of numpy are numbers, True and False are none.
"""

import math
import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .counts import format_count
from .errors import DataError, RunError, SearchError

MAX_DESCRIBED = 40  # characters of what was given


def describe_value(value: object) -> str:
    """A value in a few words, on one line."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return f"the text {ascii(value[:MAX_DESCRIBED])}" + ("…" if len(value) > MAX_DESCRIBED else "")
    if isinstance(value, int | float):
        return f"the number {float(value):g}"
    if shape := getattr(value, "shape", None):
        return f"an array of {' × '.join(map(str, shape))}"
    if isinstance(value, list | tuple | dict | set | bytes):
        return f"{type(value).__name__} with {format_count(len(value), 'element')}"
    return f"an object of the type {type(value).__name__}"


def check_whole(name: str, value: Any, least: int | None = None) -> int:
    """A whole number, as a way of searching is told with."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise SearchError(f"{name} is {describe_value(value)}, but a whole number was expected")
    if least is not None and number < least:
        raise SearchError(f"{name} is {number}, but it is at least {least}")
    return number


def check_real(name: str, value: Any) -> float:
    """Return a finite number, or raise the sentence that says what was given."""
    fits = isinstance(value, int | float) or (hasattr(value, "__float__") and not getattr(value, "shape", ()))
    if not fits or isinstance(value, bool):
        raise SearchError(f"{name} is {describe_value(value)}, but a number was expected")
    number = float(value)
    if not math.isfinite(number):
        raise SearchError(f"{name} is {number}, but a finite number was expected")
    return number


def explain_no_text(value: object) -> str:
    """What is wrong with something that is to be a text; nothing if it is one."""
    if not isinstance(value, str):
        return f"is {describe_value(value)}, but a text was expected"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return f"is {describe_value(value)}, which holds half of a surrogate pair and so is no text"
    return ""


def check_text(name: str, value: Any) -> str:
    if fault := explain_no_text(value):
        raise DataError(f"{name} {fault}")
    return str(value)


def check_texts(name: str, value: Any) -> tuple[str, ...]:
    """Several texts: a single one is not taken for its letters."""
    if not isinstance(value, list | tuple) or any(map(explain_no_text, value)):
        wrong = next(filter(explain_no_text, value)) if isinstance(value, list | tuple) else value
        raise SearchError(f"{name} is or holds {describe_value(wrong)}, but a list of texts was expected")
    return tuple(value)


def check_list(name: str, value: Any) -> list[Any]:
    """Return a list of any iterable, or raise the sentence that says what was given."""
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise DataError(f"{name} are {describe_value(value)}, but a list was expected")
    return list(value)


def check_path(name: str, value: Any) -> Path:
    """Return a path that a file or folder could have."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise RunError(f"{name} is {describe_value(value)}, but a path was expected")
    path = Path(value)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, not allowed, or with a NUL in it
        reason = error.strerror if isinstance(error, OSError) else None
        raise RunError(f"{describe_value(str(value))}: is not a usable path ({reason or error})") from None
    return path
