"""Recipes as text: TOML files read and written, and `section.key=value` from a command line.

Works on any tree of pydantic models and knows no setting by name. A person's mistake is a RecipeError: one sentence
on one line, with the file and the line where there is one.
"""

import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..errors import RecipeError
from .messages import Setting, literal, plain, settings, shown, unknown

LARGEST = 1_000_000  # bytes: a file of data given by mistake is refused before it fills the memory
WIDTH = 100  # columns of a comment

# --- in --------------------------------------------------------------------------------------------------------------


def read(path: Path) -> str:
    """The text of a recipe's file."""
    place = plain(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise RecipeError(f"{place}: there is no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecipeError(f"{place}: the file cannot be read ({plain(reason)})") from None
    if len(content) > LARGEST:
        raise RecipeError(f"{place}: the file is longer than {LARGEST:,} bytes, so it can be no recipe")
    try:
        return content.decode("utf-8-sig")  # some editors of Windows put a mark in front
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RecipeError(f"{place}, line {line}: the file is not UTF-8, as TOML must be") from None


def parse(text: str, place: str) -> dict[str, Any]:
    """The values of a TOML text that stands at `place`."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise RecipeError(f"{place}: no recipe is nested so deeply") from None
    except ValueError as error:
        match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        if not match:
            raise RecipeError(f"{place}: this is not TOML ({plain(str(error))})") from None
        line = match[2] or text.rstrip().count("\n") + 1
        raise RecipeError(f"{place}, line {line}: this is not TOML ({plain(match[1])})") from None


def located(text: str, place: str, path: Sequence[str]) -> str:
    """The place with the line that gives a setting: where the shortest readable beginning of the text with it ends."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines, 1) if path[-1] in line), 1)
    for end in range(start, len(lines[: start + 1000]) + 1):
        try:
            value: Any = tomllib.loads("\n".join(lines[:end]))
        except ValueError:
            continue  # the middle of a value
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return f"{place}, line {end}"
    return place


def known(model: type[BaseModel], name: str) -> str:
    """A setting's dotted name, if it is one."""
    names = settings(model)
    if name in names:
        return name
    if inside := [other for other in names if other.startswith(f"{name}.")]:
        raise RecipeError(f"{name} is a table of settings; {inside[0]} is one of them")
    raise RecipeError(unknown(model, name.split(".")))


def assignment(model: type[BaseModel], text: str) -> tuple[str, object]:
    """The name and the value of `section.key=value`."""
    name, sign, value = text.partition("=")
    if not sign:
        raise RecipeError(f"{shown(text)} has no =, but a setting is given as section.key=value")
    name = known(model, name.strip())
    return name, _value(value, settings(model)[name])


def _value(text: str, setting: Setting) -> object:
    """What a person means by the right side: a value of TOML, or bare text, depending on what is asked for."""
    value = _toml(text)
    if setting.type is str and setting.many:
        if isinstance(value, list | str):
            return value  # in quotes, where a comma may be part of a name
        return [part.strip() for part in text.split(",")] if text.strip() else []
    if setting.type is str:
        return value if isinstance(value, str) else text  # a column called 1, a separator of two blanks
    if setting.many and value is None and "," in text:
        return [_value(part, setting) for part in text.split(",")]
    return text.strip() if value is None else value


def _toml(text: str) -> object:
    """The value that TOML reads, or None, of which it has none."""
    try:
        values = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return None
    return values["value"] if len(values) == 1 else None  # behind a line break, a text can hold more


# --- out -------------------------------------------------------------------------------------------------------------


Left = Callable[[str], bool]  # whether a setting is left out


def write(recipe: BaseModel, resolved: BaseModel, comments: bool, left: Left = lambda name: False) -> str:
    """A tree of settings as TOML. With comments: help, choices, and what `resolved` makes of it."""
    return "\n".join(_table(recipe, resolved, "", comments, left)) + "\n"


def _table(table: BaseModel, resolved: BaseModel, name: str, comments: bool, left: Left) -> Iterator[str]:
    """The lines of what stands in one table, then those of the tables in it."""
    declared = settings(type(table))
    for key, field in type(table).model_fields.items():
        inner = f"{name}.{key}" if name else key
        if left(inner):
            continue
        if key in declared:
            yield from _line(key, declared[key], getattr(table, key), getattr(resolved, key), comments)
            continue
        lines = list(_table(getattr(table, key), getattr(resolved, key), inner, comments, left))
        if lines:
            yield from ("", *(_comment(field.description or "") if comments else []), f"[{inner}]", *lines)


def _line(key: str, setting: Setting, value: object, final: object, comments: bool) -> Iterator[str]:
    if value is None:
        if comments:  # not given here: what holds instead, to be set apart by taking the # away
            yield f"# {key} = {literal(final)}"
        return
    if comments:
        choices = f" One of {', '.join(map(literal, setting.choices))}." if setting.choices else ""
        yield from _comment(setting.help + choices)
    yield f"{key} = {literal(value)}" + (f"  # derived: {literal(final)}" if comments and value != final else "")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
