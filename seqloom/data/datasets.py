"""Where the examples of a recipe come from: files of somebody's own, a sample built into seqloom, or Python."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqloom.arguments import described
from seqloom.config.data import are_parallel
from seqloom.data.files import digest, files_by_part
from seqloom.data.formats.tables import Skipped, format_of, named_split
from seqloom.data.layout import JOINED, Layout
from seqloom.data.raws import FAULTS
from seqloom.data.raws import fault_of as fault_in
from seqloom.data.readers import Example, read_files
from seqloom.errors import DataError

PARTS = ("train", "validation", "test")


class Origin(ABC):
    """Examples by part; `train` is always among the parts."""

    parts: tuple[str, ...]
    names: tuple[str, ...]  # of the files, as they appear in messages

    @abstractmethod
    def content(self) -> dict[str, list[str]]:
        """What the examples are, as digests: equal if and only if the examples are."""

    @abstractmethod
    def read(self, part: str, skipped: Skipped) -> Iterator[Example]: ...


class Files(Origin):
    def __init__(self, layout: Layout) -> None:
        self._layout, self._files = layout, files_by_part(layout.data, "examples are")
        self.parts = tuple(self._files)
        if len({are_parallel(getattr(layout.data, part), layout.data.format) for part in self.parts}) > 1:
            raise DataError("of data.train, data.validation and data.test some are two parallel files and some are not")
        self.names = tuple(name for groups in self._files.values() for files in groups for name in files)

    def content(self) -> dict[str, list[str]]:
        """The formats, which may depend on the names, and the digests of the files."""
        format = self._layout.data.format
        return {
            part: [sum for files in groups for sum in self._digests(files, format_of(files, format))]
            for part, groups in self._files.items()
        }

    def _digests(self, files: Sequence[str], format: str) -> list[str]:
        if format != "sheets":
            return [format, *map(digest, files)]
        index, split = named_split(files[0])
        return [format, split, digest(index), digest(files[1])]

    def read(self, part: str, skipped: Skipped) -> Iterator[Example]:
        for files in self._files[part]:
            yield from read_files(files, self._layout, skipped)


class Sample(Origin):
    def __init__(self, name: str) -> None:
        from seqloom.data.samples import SAMPLES  # what samples are made from takes a while to import

        if name not in SAMPLES:
            raise DataError(f"the sample {name!r} is one of series of numbers, which the task forecast reads")
        self._examples = SAMPLES[name]()
        self.parts = tuple(self._examples)
        self.names = (name,)

    def content(self) -> dict[str, list[str]]:
        return {part: [digest_of(examples)] for part, examples in self._examples.items()}

    def read(self, part: str, skipped: Skipped) -> Iterator[Example]:
        return iter(self._examples[part])


class Given(Origin):
    """Examples from Python, by part: tuples with one value a side."""

    def __init__(self, layout: Layout, examples: Mapping[str, Sequence[Example]]) -> None:
        unknown = set(examples) - set(PARTS)
        if unknown or not examples.get("train"):
            raise DataError("examples from Python are a list, or lists by part: train, and perhaps validation and test")
        for part, rows in examples.items():
            for number, row in enumerate(rows):
                if sentence := fault_of(row, layout):
                    raise DataError(f"example {number} of {part}: {sentence}")
        self._examples = examples
        self.parts = tuple(examples)
        self.names = ("Python",)

    def content(self) -> dict[str, list[str]]:
        return {part: [digest_of(examples)] for part, examples in self._examples.items()}

    def read(self, part: str, skipped: Skipped) -> Iterator[Example]:
        return iter(self._examples[part])


def origin_of(layout: Layout, examples: object = None) -> Origin:
    if examples is not None:
        return Given(layout, from_python(examples, layout))
    if layout.data.sample:
        return Sample(layout.data.sample)
    files: Origin = (layout.origin or Files)(layout)
    return files


def from_python(examples: Any, layout: Layout) -> dict[str, list[Example]]:
    """Rows, a data frame, or either by part, as lists of tuples."""
    by_part = examples if isinstance(examples, Mapping) and set(examples) <= set(PARTS) else {"train": examples}
    by_part = {part: [rows] if isinstance(rows, str) else rows for part, rows in by_part.items()}
    kinds = [side.kind for side in layout.sides.values()]
    return {part: [_example(row, kinds) for row in _rows(rows, layout)] for part, rows in by_part.items()}


def _rows(rows: Any, layout: Layout) -> Iterable[Any]:
    """The rows of a list, or of a data frame with the columns of the recipe (pandas, polars: whatever has columns)."""
    if not hasattr(rows, "columns"):
        if isinstance(rows, bytes | Mapping) or not isinstance(rows, Iterable):
            wanted = " and ".join(layout.sides)
            raise DataError(f"the examples are {described(rows)}, but a list was expected, of {wanted} each")
        return rows
    missing = [name for name in layout.columns if name not in rows.columns]
    if missing:
        there = ", ".join(map(str, rows.columns))
        raise DataError(f"the data frame has no column {missing[0]!r}; there are {there}")
    sides = [[list(rows[name]) for name in side.columns] for side in layout.sides.values()]
    return zip(*map(_joined, sides), strict=True)


def _joined(columns: list[list[Any]]) -> list[Any]:
    """One column as it is, several as one of texts."""
    if len(columns) == 1:
        return columns[0]
    return [JOINED.join(map(str, cells)) for cells in zip(*columns, strict=True)]


def _example(row: Any, kinds: Sequence[str]) -> Example:
    """One example: what is to be an array as one, numbers and truth values as text, everything else as it is."""
    values = row if isinstance(row, tuple | list) else (row,)
    if len(values) != len(kinds):
        return tuple(values)
    return tuple(_value(value, kind) for value, kind in zip(values, kinds, strict=True))


def _value(value: Any, kind: str) -> Any:
    if kind in FAULTS:
        return value if isinstance(value, np.ndarray) or fault_in(value, kind) else np.asarray(value, dtype=np.float32)
    written = isinstance(value, str | int | float | np.generic) and value == value  # not a number is no text either
    return str(value).strip() if written else value


def fault_of(row: Example, layout: Layout) -> str:
    """What is wrong with an example from Python, in a sentence; nothing if it will do."""
    if len(row) != len(layout.sides):
        return f"has {len(row)} values, but {' and '.join(layout.sides)} were expected"
    for (name, side), value in zip(layout.sides.items(), row, strict=True):
        if isinstance(value, str) and not value:
            return f"the {name} is empty"
        if sentence := fault_in(value, side.kind):
            return f"the {name} {sentence}"
    return layout.fault(row)


def digest_of(examples: Sequence[Example]) -> str:
    if all(isinstance(value, str) for row in examples[:1] for value in row):
        return hashlib.sha256(json.dumps(examples).encode()).hexdigest()
    found = hashlib.sha256()
    for row in examples:
        for value in row:
            bare = value.encode() if isinstance(value, str) else repr((value.shape, value.dtype.str)).encode()
            found.update(b"%d\0%b" % (len(bare), bare))
            if not isinstance(value, str):
                found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()
