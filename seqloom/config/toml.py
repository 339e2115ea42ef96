"""Recipes as text: TOML files read and written, and `section.key=value` from a command line.

Works on any tree of pydantic models and knows no setting by name. A person's mistake is a RecipeError: one sentence
on one line, with the file and the line where there is one.
"""

import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from ..errors import RecipeError
from .messages import Setting, escape_text, explain_unknown_setting, format_value, literal, settings
from .opening import AUTO
from .section import Section

LARGEST = 1_000_000  # bytes: a file of data given by mistake is refused before it fills the memory
WIDTH = 79  # columns of a comment

# --- in --------------------------------------------------------------------------------------------------------------


def read(path: Path) -> str:
    """The text of a recipe's file."""
    place = escape_text(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise RecipeError(f"{place}: there is no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecipeError(f"{place}: the file cannot be read ({escape_text(reason)})") from None
    if len(content) > LARGEST:
        raise RecipeError(f"{place}: the file is longer than {LARGEST:,} bytes, which is too long for a recipe")
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
        raise RecipeError(f"{place}: the file is nested too deeply for a recipe") from None
    except ValueError as error:
        match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        if not match:
            raise RecipeError(f"{place}: this is not TOML ({escape_text(str(error))})") from None
        line = match[2] or text.rstrip().count("\n") + 1
        raise RecipeError(f"{place}, line {line}: this is not TOML ({escape_text(match[1])})") from None


def locate_setting(text: str, place: str, path: Sequence[str]) -> str:
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


def find_setting(model: type[Section], name: str) -> Setting:
    """The setting of a dotted name, if it is one."""
    names = settings(model)
    if name in names:
        return names[name]
    if inside := [other for other in names if other.startswith(f"{name}.")]:
        raise RecipeError(f"{name} is a table of settings; {inside[0]} is one of them")
    raise RecipeError(explain_unknown_setting(model, name.split(".")))


def split_assignment(text: str) -> tuple[str, str]:
    """The name and the text of the value in `section.key=value`."""
    name, sign, value = text.partition("=")
    if not sign:
        raise RecipeError(f"{format_value(text)} has no =, but a setting is given as section.key=value")
    return name.strip(), value


def parse_value(text: str, setting: Setting) -> object:
    """What a person means by the right side: a value of TOML, or bare text, depending on what is asked for."""
    value = _toml(text)
    if setting.type is str and setting.many:
        if isinstance(value, list | str):
            return value  # in quotes, where a comma may be part of a name
        return [part.strip() for part in text.split(",")] if text.strip() else []
    if setting.type is str:
        return value if isinstance(value, str) else text  # a column called 1, a separator of two blanks
    if setting.many and value is None and "," in text:
        return [parse_value(part, setting) for part in text.split(",")]
    return text.strip() if value is None else value


def _toml(text: str) -> object:
    """The value that TOML reads, or None, of which it has none; .3 is a number here."""
    text = re.sub(r"^(\s*[+-]?)(\.\d)", r"\g<1>0\2", text)
    try:
        values = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return None
    return values["value"] if len(values) == 1 else None  # behind a line break, a text can hold more


# --- out -------------------------------------------------------------------------------------------------------------


def write(
    recipe: Section,
    resolved: Section,
    comments: bool,
    choices: Mapping[str, Sequence[str]],
    open_names: Set[str] = frozenset(),
) -> str:
    """A tree of settings as TOML. With comments: help, choices, and what `resolved` makes of it.

    `choices` are those of settings that decide which others there are; what is `opened` is left to the data.
    """
    return "\n".join(_table(recipe, resolved, "", comments, choices, open_names)) + "\n"


def _table(
    table: Section,
    resolved: Section,
    name: str,
    comments: bool,
    choices: Mapping[str, Sequence[str]],
    open_names: Set[str],
    same: Set[str] = frozenset(),
) -> Iterator[str]:
    """The lines of what stands in one table, then those of the tables in it; what is the `same` above, as comments."""
    declared = settings(type(table))
    fields = type(table).model_fields
    for key in sorted(fields, key=lambda key: key not in declared):  # tables go last
        value, final = getattr(table, key), getattr(resolved, key)
        inner = f"{name}.{key}" if name else key
        if key in same:
            yield from [f"# {key} = {literal(final)}"] * comments
        elif key in declared:
            if comments:
                one_of = choices.get(key, declared[key].choices)
                yield from _comment(
                    declared[key].help + (f" One of {', '.join(map(literal, one_of))}." if one_of else "")
                )
            if inner in open_names:
                yield f'{key} = "{AUTO}"'
                continue
            derived = comments and value != final
            yield f"{key} = {literal(value)}" + (f"  # derived: {literal(final)}" if derived else "")
        else:
            lines = list(_table(value, final, inner, comments, choices, open_names, table.list_same_settings(key)))
            if lines:
                yield from ("", *(_comment(fields[key].description or "") if comments else []), f"[{inner}]", *lines)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
