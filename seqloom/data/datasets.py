"""Where the examples of a recipe come from: files of somebody's own, a sample built into seqloom, or Python."""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.arguments import describe_value
from seqloom.config.data import are_parallel
from seqloom.counts import format_count
from seqloom.data.files import digest_file, find_files_by_part
from seqloom.data.formats.images import Scaling, explain_no_image, fit_image, list_images, read_image
from seqloom.data.formats.lines import SKIP, Fault
from seqloom.data.formats.sounds import SoundReading
from seqloom.data.formats.tables import SkippedRows, parse_split
from seqloom.data.log_mel import LogMel, LogMelSettings
from seqloom.data.readers import (
    READERS,
    Example,
    choose_format,
    find_image_folder,
    find_sound_folder,
    make_image_reading,
    read_cells,
    read_files,
)
from seqloom.data.schema import COLUMN_SEPARATOR, Schema, Side
from seqloom.errors import DataError

PARTS = ("train", "validation", "test")


class Dataset(ABC):
    """Examples by part; `train` is always among the parts."""

    parts: tuple[str, ...]
    names: tuple[str, ...]  # of the files, as they appear in messages

    @abstractmethod
    def content(self) -> dict[str, list[str]]:
        """What the examples are, as digests: equal if and only if the examples are."""

    @abstractmethod
    def read(self, part: str, skipped: SkippedRows) -> Iterator[Example]:
        """The examples of a part; those for training with the keys that the schema asks for behind their sides."""


class Files(Dataset):
    def __init__(self, schema: Schema) -> None:
        self._schema, self._files = schema, find_files_by_part(schema.data, "examples are")
        self.parts = tuple(self._files)
        if len({are_parallel(getattr(schema.data, part), schema.data.format) for part in self.parts}) > 1:
            raise DataError("of data.train, data.validation and data.test some are two parallel files and some are not")
        self.names = tuple(name for groups in self._files.values() for files in groups for name in files)

    def content(self) -> dict[str, list[str]]:
        """The formats, which may depend on the names, and the digests of the files."""
        return {
            part: [sum for files in groups for sum in self._digests(files, choose_format(files, self._schema))]
            for part, groups in self._files.items()
        }

    def _digests(self, files: Sequence[str], format: str) -> list[str]:
        if format != "sheets":
            return [format, *map(digest_file, files), *self._digest_named(files, format)]
        index, split = parse_split(files[0])
        return [format, split, digest_file(index), digest_file(files[1])]

    def _digest_named(self, files: Sequence[str], format: str) -> list[str]:
        """Of the images or sound files that a table names: they may change while the table does not."""
        if format == "images":
            folder = find_image_folder(self._schema, files[0])
            images = list_images(files[0], folder, make_image_reading(self._schema))
            return [digest_file(str(image)) for image in images]
        if self._schema.data.source_type != "sound" or format in READERS:
            return []
        rows = (row for row in read_cells(files, self._schema, SkippedRows()) if not isinstance(row, Fault))
        paths = (find_sound_folder(self._schema, file) / name for (name, *_), file, _ in rows)
        return [digest_file(str(path)) if path.is_file() else "" for path in paths]

    def read(self, part: str, skipped: SkippedRows) -> Iterator[Example]:
        schema = self._schema.with_keys() if part == "train" else self._schema
        for files in self._files[part]:
            yield from read_files(files, schema, skipped)


class Sample(Dataset):
    def __init__(self, name: str) -> None:
        from seqloom.data.samples import SAMPLES  # what samples are made from takes a while to import

        if name not in SAMPLES:
            raise DataError(f"the sample {name!r} is one of series of numbers, which the task forecast reads")
        self._examples = SAMPLES[name]()
        self.parts = tuple(self._examples)
        self.names = (name,)

    def content(self) -> dict[str, list[str]]:
        return {part: [digest_examples(examples)] for part, examples in self._examples.items()}

    def read(self, part: str, skipped: SkippedRows) -> Iterator[Example]:
        return iter(self._examples[part])


class PythonExamples(Dataset):
    """Examples from Python, by part: tuples with one value a side."""

    def __init__(self, schema: Schema, examples: Mapping[str, Sequence[Example]], notes: list[str]) -> None:
        unknown = set(examples) - set(PARTS)
        if unknown or not examples.get("train"):
            raise DataError("examples from Python are a list, or lists by part: train, and perhaps validation and test")
        self._examples: dict[str, list[Example]] = {part: [] for part in examples}
        self._faults: dict[str, list[Fault]] = {part: [] for part in examples}
        self._notes = notes  # about images and sound files
        sounds = (
            SoundReading(LogMel(LogMelSettings.of(schema.data)), self._notes)
            if schema.data.source_type == "sound"
            else None
        )
        for part, rows in examples.items():
            keys = len(schema.with_keys().keys) if part == "train" else 0
            for number, row in enumerate(rows):
                loaded = _load_sound(row, sounds, find_sound_folder(schema, ""), part, number) if sounds else row
                if isinstance(loaded, Fault):
                    fault = loaded
                elif sentence := find_fault(loaded[: len(loaded) - keys], schema):
                    fault = Fault(sentence.split(",")[0][:80], sentence, part, number)
                else:
                    self._examples[part].append(loaded)
                    continue
                if schema.data.on_bad_row == "error":
                    raise DataError(f"example {number} of {part}: {fault.sentence}; {SKIP}")
                self._faults[part].append(fault)
        self.parts = tuple(examples)
        self.names = ("Python",)

    def content(self) -> dict[str, list[str]]:
        return {part: [digest_examples(examples)] for part, examples in self._examples.items()}

    def read(self, part: str, skipped: SkippedRows) -> Iterator[Example]:
        skipped.notes += self._notes
        for fault in self._faults[part]:
            skipped.add(fault)
        return iter(self._examples[part])


def _load_sound(row: Example, sounds: SoundReading, folder: Path, part: str, number: int) -> Example | Fault:
    """The frames of a sound file in the place of its path; other rows as they are."""
    if not row or not isinstance(row[0], str | os.PathLike) or not row[0]:
        return row
    path = folder / os.path.expanduser(row[0])
    sound = sounds.read(path.name, path.parent, part, number)
    return sound if isinstance(sound, Fault) else (sound, *row[1:])


def open_dataset(schema: Schema, examples: object = None) -> Dataset:
    if examples is not None:
        notes: list[str] = []
        return PythonExamples(schema, convert_examples(examples, schema, notes), notes)
    if schema.data.sample:
        if schema.with_keys().keys:
            raise DataError(f"the sample {schema.data.sample!r} has no columns to divide it by")
        return Sample(schema.data.sample)
    return (schema.dataset or Files)(schema)


def convert_examples(examples: Any, schema: Schema, notes: list[str]) -> dict[str, list[Example]]:
    """Rows, a data frame, or either by part, as lists of tuples; what was changed is added to `notes`."""
    by_part = examples if isinstance(examples, Mapping) and set(examples) <= set(PARTS) else {"train": examples}
    by_part = {part: [rows] if isinstance(rows, str) else rows for part, rows in by_part.items()}
    sides, examples_by_part = list(schema.sides.values()), {}
    for part, rows in by_part.items():
        part_schema = schema.with_keys() if part == "train" else schema
        if part_schema.keys and not hasattr(rows, "columns"):
            raise DataError("data.group and data.split_time name columns, which only a data frame has")
        examples_by_part[part] = [
            _convert_row(row, sides, len(part_schema.keys)) for row in _list_rows(rows, part_schema)
        ]
    for place, side in enumerate(sides):
        if side.field.is_image:
            notes += _fit_images(examples_by_part, place, schema.data.image_size)
    return examples_by_part


def _fit_images(examples_by_part: dict[str, list[Example]], place: int, size: int) -> list[str]:
    """Images of several sizes are cut and resized, as those of files are, which is noted; those of one size stay as
    they are."""
    rows = [row for rows in examples_by_part.values() for row in rows if len(row) > place]
    shapes = {np.shape(row[place]) for row in rows if row[place] is not None and not explain_no_image(row[place])}
    if len(shapes) < 2:
        return []
    shape, scaling = (size, size, max(one[-1] for one in shapes)), Scaling((size, size))
    for part, rows in examples_by_part.items():
        for number, row in enumerate(rows):
            if len(row) > place and row[place] is not None and not explain_no_image(row[place]):
                image = read_image(row[place])
                scaling.see(image.size)
                examples_by_part[part][number] = (*row[:place], fit_image(image, shape)[None], *row[place + 1 :])
    return scaling.describe()


def _list_rows(rows: Any, schema: Schema) -> Iterable[Any]:
    """The rows of a list, or of a data frame with the columns of the recipe (pandas, polars: whatever has columns)."""
    if not hasattr(rows, "columns"):
        if isinstance(rows, bytes | Mapping) or not isinstance(rows, Iterable):
            names = " and ".join(schema.sides)
            raise DataError(f"the examples are {describe_value(rows)}, but a list was expected, of {names} each")
        return rows
    return _list_frame_rows(rows, schema)


def read_frame(frame: Any, schema: Schema) -> list[Any]:
    """The inputs of a data frame, which has the columns of these sides: one value a row, or one for each side."""
    sides = list(schema.sides.values())
    inputs: list[Any] = []
    for number, row in enumerate(_list_frame_rows(frame, schema)):
        if sentence := find_fault(example := _convert_row(row, sides), schema):
            raise DataError(f"row {number} of the data frame: {sentence}")
        inputs.append(example[0] if len(sides) == 1 else example)
    return inputs


def _list_frame_rows(rows: Any, schema: Schema) -> Iterable[Any]:
    """The rows of a data frame, one value a side, then the keys; numbers as arrays, those of one `data.series`
    together."""
    missing = [name for name in (*schema.columns, *schema.keys.values()) if name not in rows.columns]
    if missing:
        there = ", ".join(map(str, rows.columns))
        raise DataError(f"the data frame has no column {missing[0]!r}; there are {there}")
    sides = [[list(rows[name]) for name in side.columns] for side in schema.sides.values()]
    sides += [[["" if is_missing(cell) else str(cell) for cell in rows[name]]] for name in schema.keys.values()]
    if schema.data.source_type == "numbers" and "source" in schema.sides and not _holds_arrays(sides[0]):
        return _list_number_rows(rows, sides, schema)
    return zip(*map(_join_columns, sides), strict=True)


def _holds_arrays(columns: list[list[Any]]) -> bool:
    return any(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in columns[0][:1])


def _list_number_rows(frame: Any, sides: list[list[list[Any]]], schema: Schema) -> Iterator[tuple[Any, ...]]:
    """A row as a sequence of one element, or all rows of a series, which stand together, as one."""
    try:
        cells = [[np.nan if is_missing(cell) else float(cell) for cell in column] for column in sides[0]]
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the data frame holds something that is not a number in the columns of the source ({error})"
        ) from None
    values, others = np.array(cells, np.float32).T, [_join_columns(columns) for columns in sides[1:]]
    if not (name := schema.data.series):
        yield from ((values[row : row + 1], *(side[row] for side in others)) for row in range(len(values)))
        return
    if name not in frame.columns:
        raise DataError(f"the data frame has no column {name!r}, which says the series of a row (data.series)")
    names, seen = list(frame[name]), set[Any]()
    more = [(side.columns[0], side.field.per_element) for side in list(schema.sides.values())[1:]]
    more += [(column, False) for column in schema.keys.values()]
    for own, rows in groupby(range(len(names)), names.__getitem__):
        span = list(rows)
        if own in seen:
            raise DataError(f"the series {own!r:.50} goes on in row {span[0]}, but its rows must stand together")
        seen.add(own)
        yield values[span], *(_join_series(cells, span, *side) for cells, side in zip(others, more, strict=True))


def _join_series(values: list[Any], span: list[int], column: str, per_element: bool) -> Any:
    """What the rows of a series say on one side: one value for each, or the one that all have."""
    own = [values[row] for row in span]
    if per_element:
        return [str(value) for value in own]
    if any(value != own[0] for value in own):
        raise DataError(f"the column {column!r} changes in row {span[0]} and further, within one series")
    return own[0]


def _join_columns(columns: list[list[Any]]) -> list[Any]:
    """One column as it is, several as one of texts, of which some may be missing but not all."""
    if len(columns) == 1:
        return columns[0]
    rows = [["" if is_missing(cell) else str(cell).strip() for cell in cells] for cells in zip(*columns, strict=True)]
    return [COLUMN_SEPARATOR.join(cells) if any(cells) else None for cells in rows]


def _convert_row(row: Any, sides: Sequence[Side], keys: int = 0) -> Example:
    """One example, each value as its field has it, then so many keys as they are; what is missing is None."""
    values = row if isinstance(row, tuple | list) else (row,)
    if len(values) != len(sides) + keys:
        return tuple(values)
    pairs = zip(values, sides, strict=False)
    converted = [None if is_missing(value) else side.field.convert(value) for value, side in pairs]
    return (*converted, *values[len(sides) :])


def is_missing(value: Any) -> bool:
    """Whether a cell holds no value at all: None, NaN, NaT, or the NA of pandas."""
    if hasattr(value, "__len__"):
        return False
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal to anything nor unequal
        return True


def find_fault(row: Example, schema: Schema) -> str:
    """What is wrong with an example from Python, in a sentence; nothing if it will do."""
    if len(row) != len(schema.sides):
        return f"has {format_count(len(row), 'value')}, but {' and '.join(schema.sides)} were expected"
    for (name, side), value in zip(schema.sides.items(), row, strict=True):
        if value is None or (isinstance(value, str) and not value):
            return f"the {name} is {'missing' if value is None else 'empty'}"
        if sentence := side.field.check(value):
            return f"the {name} {sentence}"
    return schema.fault(row)


def digest_examples(examples: Sequence[Example]) -> str:
    if all(isinstance(value, str) for row in examples[:1] for value in row):
        return hashlib.sha256(json.dumps(examples).encode()).hexdigest()
    digest = hashlib.sha256()
    for row in examples:
        for value in row:
            bare = value.encode() if isinstance(value, str) else repr((value.shape, value.dtype.str)).encode()
            digest.update(b"%d\0%b" % (len(bare), bare))
            if not isinstance(value, str):
                digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
