"""What the examples of a task consist of: its sides, where each stands in a file, and the field that each becomes.

Preparing data knows a field by the two protocols here, and by nothing else.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqloom.config.recipe import Data
from seqloom.data.ragged import Ragged
from seqloom.errors import RunError

Raw = Any  # one side of one example as it is read: a text, or an array whose first axis is its length
COLUMN_SEPARATOR = " | "  # between the columns of a source that has several


class FittedField(Protocol):
    """A field that has learned from training rows: raw values to numbers."""

    suffixes: int
    unknown: int | None

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def normalize(self, raw: Raw) -> Raw: ...

    def describe(self, raw: Raw) -> str: ...

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]: ...

    def encode_many(self, raws: Sequence[Raw]) -> Ragged: ...

    def balance(self, counts: NDArray[np.int64]) -> dict[str, int]: ...

    def to_json(self) -> dict[str, Any]: ...


class FieldKind(Protocol):
    """A kind of field before it has learned anything: its class."""

    kind: str
    is_image: bool
    per_element: bool
    endings: frozenset[str]

    def fit(self, raws: Iterator[Raw], settings: Data, /) -> Any: ...

    def from_json(self, values: dict[str, Any], /) -> Any: ...

    def check(self, raw: Raw, /) -> str: ...

    def convert(self, value: Any, /) -> Raw: ...


class KnownField:
    """A field that was fitted before, in the place of its kind: it is not fitted again."""

    def __init__(self, kind: FieldKind, field: FittedField) -> None:
        self.field = field
        self.kind, self.is_image, self.per_element = kind.kind, kind.is_image, kind.per_element
        self.endings = kind.endings
        self.from_json, self.check, self.convert = kind.from_json, kind.check, kind.convert

    def fit(self, raws: Iterator[Raw], settings: Data, /) -> Any:
        return self.field


class Side(NamedTuple):
    """One side of an example."""

    columns: tuple[str, ...]  # of a table, joined
    field: FieldKind


def read_field(side: str, field: FieldKind, values: object) -> Any:
    """A fitted field of this kind from JSON; RunError in one sentence if a file says something else."""
    if not isinstance(values, dict):
        raise RunError(f"the {side} is not a table of settings but of type {type(values).__name__}")
    if values.get("kind") != field.kind:
        raise RunError(f"the kind of the {side} is {values.get('kind')!r:.50}, but the recipe says {field.kind!r}")
    return field.from_json(values)


def find_no_fault(raws: Sequence[Raw]) -> str:
    """The check of a schema that accepts every example."""
    return ""


@dataclass(frozen=True)
class Schema:
    """The sides of an example, in order; the first decides what counts as the same example in two parts."""

    task: str
    data: Data
    sides: dict[str, Side]
    label: str = ""  # the side that drawn parts are to have in equal shares
    shared: tuple[str, ...] = ()  # sides that learn from one another, and get one field
    fault: Callable[[Sequence[Raw]], str] = find_no_fault  # what is wrong with an example, in a sentence
    dataset: Callable[["Schema"], Any] | None = None  # where examples of files come from, if not from rows with columns
    ordered: bool = False  # whether the examples are one text, divided where a share of it ends instead of drawn
    limited: bool = True  # whether data.max_length holds
    known: str = ""  # a sum over the fields that were fitted before, if they were
    keys: dict[str, str] = field(default_factory=dict)  # columns that are read beside the sides, to divide rows by

    def with_keys(self) -> "Schema":
        """The same with the columns that say how rows are divided, by what they say: the group, or the time."""
        columns = {"group": self.data.group, "time": self.data.split_time}
        return replace(self, keys={name: column for name, column in columns.items() if column})

    def reuse_fields(self, fields: Mapping[str, FittedField]) -> "Schema":
        """The same with fields that are not fitted any more; a side that is not named is fitted as before."""
        content = json.dumps({name: field.to_json() for name, field in fields.items()}, sort_keys=True)
        sides = {
            name: Side(side.columns, KnownField(side.field, fields[name])) if name in fields else side
            for name, side in self.sides.items()
        }
        shared = () if fields.keys() >= {*self.shared} else self.shared  # what learns nothing has a field of its own
        return replace(self, sides=sides, shared=shared, known=hashlib.sha256(content.encode()).hexdigest())

    def read_fields(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that were kept as JSON, by side."""
        return {name: read_field(name, side.field, saved[name]) for name, side in self.sides.items()}

    @property
    def pictured(self) -> bool:
        """Whether arrays of a file are images."""
        return any(side.field.is_image for side in self.sides.values())

    def only(self, *names: str) -> "Schema":
        """A schema of some sides alone, for examples that have no answer yet."""
        return Schema(self.task, self.data, {name: self.sides[name] for name in names})

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of a table that are read."""
        return tuple(name for side in self.sides.values() for name in side.columns)
