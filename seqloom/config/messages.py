"""What each setting allows, in words, and the sentence for a name or value that does not fit.

Works on any tree of pydantic models and knows no setting by name. Every sentence is one line: what a person gave is
shown with its control characters escaped and its length cut.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from .section import OneOf, Section

LONGEST = 80  # characters of a value that are shown
ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

# --- values ----------------------------------------------------------------------------------------------------------


def literal(value: object) -> str:
    """A value as TOML writes it, on one line; what TOML does not know, as Python writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(ESCAPES.get(character) or _escape_character(character) for character in value)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{escape_text(str(key))} = {literal(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, int) and abs(value) >= 10**100:
        return hex(value)  # Python refuses to write very long ones in tens
    return escape_text(repr(value))


def escape_text(text: str) -> str:
    """A text without quotes, on one line."""
    return "".join(map(_escape_character, text))


def format_value(value: object) -> str:
    """A value within a sentence."""
    return _cut(literal(value))


def _escape_character(character: str) -> str:
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# --- settings --------------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """The declaration of one setting."""

    help: str
    type: Any  # of one value: str, int, float, bool, or a Literal of texts
    limits: tuple[object, ...]
    many: bool  # whether there may be a list of such values

    @property
    def choices(self) -> tuple[str, ...]:
        listed = [limit.names for limit in self.limits if isinstance(limit, OneOf)]
        return listed[0] if listed else get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def allowed(self) -> str:
        """The values it takes, in words."""
        if self.choices:
            return "one of " + ", ".join(map(literal, self.choices))
        if self.many and self.type is str:
            return "text or a list of texts"
        noun = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}[self.type]
        one = " ".join([noun, *filter(None, map(_limit, self.limits))])
        return f"{one}, or a list of them" if self.many else one


def _limit(limit: object) -> str:
    match limit:
        case Ge(low):
            return f"from {low}"
        case Gt(low):
            return f"from above {low}"
        case Le(high):
            return f"to {high}"
        case Lt(high):
            return f"to below {high}"
    return ""


@cache
def settings(model: type[Section], prefix: str = "") -> dict[str, Setting]:
    """Every setting of a tree of models by its dotted name, in the order of declaration."""
    by_name: dict[str, Setting] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            by_name |= settings(field.annotation, f"{prefix}{name}.")
        else:
            by_name[prefix + name] = _setting(field)
    return by_name


def _setting(field: FieldInfo) -> Setting:
    declared: Any = field.annotation
    notes: list[object] = [field]
    help = field.description or ""
    # A list is `tuple[Text, ...]`; one or a list of them is `Width | tuple[Width, ...]`. Both name the value first.
    many = get_origin(declared) in (tuple, Union, UnionType)
    if many:
        declared, *notes = get_args(get_args(declared)[0])
    limits = (limit for note in notes if isinstance(note, FieldInfo) for limit in note.metadata)
    return Setting(help, declared, tuple(limits), many)


class MisplacedSetting(ValueError):
    """A setting that does not fit the others: the sentence and where the setting stands."""

    def __init__(self, path: Sequence[str], sentence: str) -> None:
        super().__init__(sentence)
        self.path = tuple(path)


# --- faults ----------------------------------------------------------------------------------------------------------


def fault(model: type[Section], error: ValidationError) -> tuple[tuple[str, ...], str]:
    """Where the first fault is, and its sentence. Unknown names go first: they often explain the rest."""
    faults = error.errors(include_url=False)
    first = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    path, value = tuple(map(str, first["loc"])), first["input"]
    if first["type"] in ("extra_forbidden", "invalid_key"):
        return path, explain_unknown_setting(model, path)
    declared = settings(model)
    known = next((path[:end] for end in range(len(path), 0, -1) if ".".join(path[:end]) in declared), ())
    name = ".".join(known)
    if first["type"] == "value_error":  # one of our own validators, of a setting or of a whole table
        wrong = first["ctx"]["error"]
        sentence = str(wrong)
        if isinstance(wrong, MisplacedSetting):
            return wrong.path, sentence
        return (known, f"{name}: {sentence}") if known else (path, sentence)
    if known:
        # A list is at fault where it is not even one value, and in one of its items: that one tells more.
        value = max(faults, key=lambda one: len(one["loc"]) if one["loc"][: len(known)] == known else 0)["input"]
        return known, explain_wrong_value(name, declared[name].allowed, declared[name].choices, value)
    if first["type"] == "model_type":
        return path, f"{'.'.join(path) or 'a recipe'} must be a table of settings, not {format_value(value)}"
    return path, explain_unknown_setting(model, (*path, str(value)))  # a key that is not even Unicode


def explain_wrong_value(name: str, allowed: str, choices: Sequence[str], value: object) -> str:
    """The sentence for a value that is not allowed."""
    near = get_close_matches(value, choices, 1) if isinstance(value, str) else []
    hint = f"; did you mean {literal(near[0])}?" if near else ""
    return f"{name} must be {allowed}, not {format_value(value)}{hint}"


def explain_wrong_choice(path: Sequence[str], choices: Sequence[str], value: object) -> "MisplacedSetting":
    """The same where the value decides what else there is."""
    allowed = "one of " + ", ".join(map(literal, choices))
    return MisplacedSetting(path, explain_wrong_value(".".join(path), allowed, choices, value))


def explain_unknown_setting(model: type[Section], path: Sequence[str]) -> str:
    """The error sentence for a setting that does not exist."""
    name, section, names = ".".join(path), ".".join(path[:-1]), list(settings(model))
    simple = all(part.isidentifier() for part in path)
    if why := model.explain_unknown(path):
        return why
    there_is = f"there is no setting {_cut(name) if simple else format_value(name)}"
    if near := _nearest(path, names):
        return f"{there_is}; did you mean {near}?"
    if section and (here := _children(names, section)):
        return f"{there_is}; those of [{section}] are {', '.join(here)}"
    return f"{there_is}; there are {', '.join(_children(names, ''))}"


def _nearest(path: Sequence[str], names: Iterable[str]) -> str:
    """The setting or table meant by a name: its last part counts most, where it stands decides between namesakes."""
    paths = {tuple(parts[:end]) for parts in (name.split(".") for name in names) for end in range(1, len(parts) + 1)}
    *section, last = path
    like = {known: _likeness(last, known[-1]) for known in paths}
    close = [known for known in sorted(paths) if like[known] >= 0.6]
    place = ".".join(section)
    best = max(close, key=lambda known: like[known] + 0.3 * _likeness(place, ".".join(known[:-1])), default=())
    return ".".join(best)


def _likeness(one: str, other: str) -> float:
    """From 0 to 1; long texts are names of nothing, and comparing them would take long."""
    return SequenceMatcher(None, one[:LONGEST], other).ratio()


def _children(names: Iterable[str], section: str) -> list[str]:
    """The settings and tables directly in a section, in order."""
    prefix = f"{section}." if section else ""
    inside = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return list(dict.fromkeys(name.split(".")[0] for name in inside))
