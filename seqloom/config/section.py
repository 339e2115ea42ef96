"""What all tables of a recipe have in common, and the table that is only for people."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError, core_schema

T = TypeVar("T")


def setting(
    default: T,
    description: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
) -> T:
    """A setting of a table: its default, the sentence that people read about it, and the limits of a number."""
    return Field(default=default, description=description, ge=ge, gt=gt, le=le, lt=lt)


class Section(BaseModel):
    """One table: it cannot be changed, knows all of its keys, and takes no value for one of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)  # built as part of a recipe

    @classmethod
    def explain_unknown(cls, path: Sequence[str]) -> str:
        """Why there is no such setting in this tree of tables, if more is known than that."""
        return ""

    def list_same_settings(self, table: str) -> set[str]:
        """The settings of a table inside this one that are as in this one, so that they need not be written."""
        return set()


class Family(Section):
    """A table that has other settings for other tasks: one class for each family of tasks.

    A setting that only other families have cannot be written. Code that serves several tasks may still read it: it is
    at its default.
    """

    table: ClassVar[str] = ""  # what it is called in a recipe, if it has settings that are read only with others

    @model_validator(mode="after")
    def _all_read(self) -> Self:
        if self.table and (idle := find_idle(self)):
            from .messages import format_value

            name, limit = idle
            value = format_value(getattr(self, name))
            raise ValueError(f"{self.table}.{name} is {value}, but it is read only {limit.words}")
        return self

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            root = next(one for one in type(self).__mro__ if Family in one.__bases__)
            for other in _subclasses(root):
                if name in other.model_fields and "kind" not in other.model_fields:
                    return other.model_fields[name].get_default(call_default_factory=True)
        raise AttributeError(f"{type(self).__name__} has no setting {name}")


@dataclass(frozen=True)
class ReadIf:
    """A setting that nothing reads unless others are so: elsewhere it stays at its default."""

    holds: Callable[[Any], bool]  # of the table
    words: str  # when it is read


def find_idle(table: Section) -> tuple[str, ReadIf] | None:
    """A setting that is not at its default though nothing reads it, and when it would be read."""
    for name, field in type(table).model_fields.items():
        for limit in field.metadata:
            if isinstance(limit, ReadIf) and getattr(table, name) != field.default and not limit.holds(table):
                return name, limit
    return None


def _subclasses(root: type[Section]) -> Iterator[type[Section]]:
    for one in root.__subclasses__():
        yield one
        yield from _subclasses(one)


def _check_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a file's name of stray bytes, for one: a recipe could not be written with it
        raise ValueError("the text is not Unicode, so it cannot be written into a recipe") from None
    return text


def as_tuple(value: object) -> object:
    """One value need not be written as a list; a recipe holds what cannot be changed."""
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, str | float) else value


@dataclass(frozen=True, eq=False)
class OneOf:
    """The choices of a setting are the names in a table, as it is when a recipe is read, and what stands for none."""

    table: Mapping[str, object]
    none: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.none, *self.table)

    def check(self, name: str) -> str:
        if name not in self.names:
            raise PydanticCustomError("one_of", "no such name")
        return name

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "enum": list(self.names)}


Text = Annotated[str, AfterValidator(_check_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(as_tuple, json_schema_input_type=str | list[str])]


class About(Section):
    title: Text = setting("", "What this recipe does, in one line.")
    time: Text = setting("", "How long it takes, and on what.")
    expected: Text = setting("", "The score to expect.")
