"""Files to rows of texts, each with its file and line: csv, tsv, jsonl, pairs in one text file, two parallel files.

- csv: a header, then rows; quotes as everywhere, a quoted field may go over several lines.
- tsv: a header, then rows; a quotation mark is a character like any other.
- jsonl: an object a line; numbers and truth values become text, and a.b is the b inside of a.
- txt: source and target on a line, between them the separator where it first occurs.
- lines: line n of the first file belongs to line n of the second.

Columns are asked for by name or by number, from 1; if all are numbers, a csv or tsv file has no header. Lines with
nothing on them are passed over, but not in parallel files. Texts come without white space around them, and an empty
one is a fault. Knows nothing of tokens or splits.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar

from seqloom.config.recipe import Data
from seqloom.counts import format_count
from seqloom.data.formats.delimited import (
    PAIR,
    Record,
    read_pairs,
    read_parallel,
    skip_blank_lines,
)
from seqloom.data.formats.dialects import Dialect, open_table
from seqloom.data.formats.lines import SKIP, Fault, Line, find_line_fault, read_lines
from seqloom.errors import DataError
from seqloom.schemas import SkippedReport

ENDINGS = {
    **{".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".txt": "txt", ".parquet": "parquet", ".xlsx": "xlsx"},
    **{".conll": "conll", ".conllu": "conllu", ".ts": "ts"},
}
TABLES = ("csv", "tsv", "jsonl", "parquet", "xlsx")  # formats whose columns have names
PAIRS = ("lines", "idx", "sheets")  # formats whose source and target stand in files of their own
ESCAPED = re.compile("[\0\ud800-\udfff]")  # what JSON can write in escapes and text cannot hold
ARRAY = "an array of objects becomes such a file with pandas.read_json(…).to_json(…, orient='records', lines=True)"
ABSENT = object()  # in place of a value that is not there; a null is there
TIME = "date"  # what the built-in recipes call the column of times
SHOWN_NAMES = 20  # of the columns in a sentence

Item = TypeVar("Item")


class Row(NamedTuple):
    values: tuple[str, ...]  # as many as columns were asked for
    file: str
    line: int  # where the row begins
    cells: Any = None  # the whole row: texts in the order of the columns, or a line of JSON


@dataclass(frozen=True)
class Reading:
    """How files are read; the names and meanings are those of the recipe."""

    columns: tuple[str, ...] = ("source", "target")
    format: str = "guess"
    separator: str = "auto"
    encoding: str = "utf-8"
    skip: bool = False  # bad rows are counted, not raised
    blank: tuple[str, ...] = ()  # columns in which a value may be missing
    header: str = "auto"

    @classmethod
    def of(cls, data: Data, columns: tuple[str, ...]) -> "Reading":
        skip = data.on_bad_row == "skip"
        return cls(columns, data.format, data.separator, data.encoding, skip, header=data.header)

    def allow_blank(self, blank: tuple[str, ...]) -> "Reading":
        """The same, with columns in which a value may be missing."""
        return replace(self, blank=blank)


@dataclass
class SkippedRows:
    """The rows that were passed over: how many for each reason, and where the first of them is."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what was detected about files, in sentences
    names: dict[str, str] = field(default_factory=dict)  # what files are called in sentences, if not by their names

    def unique_notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self._rename, self.notes)))

    def _rename(self, note: str) -> str:
        for file, name in self.names.items():
            note = note.replace(file, name)
        return note

    def add(self, fault: Fault) -> None:
        self.counts[fault.reason] += 1
        self.first.setdefault(fault.reason, fault.place(self.names.get(fault.file, fault.file)))

    def report(self) -> dict[str, SkippedReport]:
        """By reason."""
        return {reason: SkippedReport(rows=rows, first=self.first[reason]) for reason, rows in self.counts.items()}

    def explain_nothing(self, unit: str) -> str:
        """Why nothing is left."""
        [(reason, _)] = self.counts.most_common(1)
        total, first = self.counts.total(), self.first[reason]
        skipped = f"all {format_count(total, unit)} were" if total > 1 else f"the only {unit} was"
        return f"{skipped} skipped, {'most ' * (total > 1)}for: {reason} (first in {first})"


def read_rows(files: Sequence[str], reading: Reading, skipped: SkippedRows) -> Iterator[Row]:
    """The rows of one file, or of two parallel ones. Rows that cannot be used are raised, or added to `skipped`."""
    rows = _read_raw_rows(files, reading, skipped.notes)
    stripped = (strip_row(row, reading) if isinstance(row, Row) else row for row in rows)
    return drop_faults(stripped, files[0], reading.skip, skipped)


def drop_faults(
    read_items: Iterable[Item | Fault], file: str, skip: bool, skipped: SkippedRows, unit: str = "row"
) -> Iterator[Item]:
    """The items among what was found in a file. A fault is raised, or added to `skipped`; no item at all is raised."""
    items = 0
    own = SkippedRows()
    for item in read_items:
        if not isinstance(item, Fault):
            items += 1
            yield item
        elif not skip:
            raise item.error(SKIP)
        else:
            own.add(item)
            skipped.add(item)
    if not items and own.counts:
        raise DataError(own.explain_nothing(unit), file)
    if not items:
        raise DataError("the file is empty", file)


def parse_split(name: str) -> tuple[str, str]:
    """A file, and the split of it that is meant, if one is: index.tsv#train."""
    file, _, split = name.partition("#")
    return file, split


def detect_format(files: Sequence[str], format: str) -> str:
    """The format as said, or as the ending of the file says."""
    name = PurePath(parse_split(files[0])[0].lower().removesuffix(".gz"))
    if os.path.isdir(os.path.expanduser(files[0])):
        return "folders"
    if format == "guess" and name.name.endswith("-ubyte"):
        format = "idx"
    if format == "guess" and len(files) == 2:
        return "lines"
    if format in ("abc", "fasta", "json"):
        raise DataError(f"data.format is {format}, but this task reads rows: {', '.join(ENDINGS.values())}", files[0])
    if (len(files) == 2) != (format in PAIRS) and not (format == "idx" and len(files) == 1):
        raise DataError(
            f"{format_count(len(files), 'file')} given as {format}: parallel files and idx are two, all else is one",
            files[0],
        )
    if format != "guess":
        return format
    if name.suffix not in ENDINGS:
        says = f"the ending {name.suffix} says" if name.suffix else "the name says"
        known = ", ".join(ENDINGS.values())
        if name.suffix == ".json":
            raise DataError(f"a .json file is read as jsonl (data.format) if each line is an object; {ARRAY}", files[0])
        raise DataError(f"{says} nothing about the format; set data.format to one of {known}", files[0])
    return ENDINGS[name.suffix]


# --- rows, and faults in place of rows -------------------------------------------------------------------------


def _read_raw_rows(files: Sequence[str], reading: Reading, notes: list[str]) -> Iterator[Row | Fault]:
    format = detect_format(files, reading.format)
    file = files[0]
    if format == "lines":
        return select_columns(read_parallel(files[0], files[1], reading.encoding), PAIR, reading.columns, file)
    if format == "jsonl":
        return read_objects(skip_blank_lines(read_lines(file, reading.encoding)), reading, file)
    if format == "txt":
        lines = read_lines(file, reading.encoding)
        separator = "\t" if reading.separator == "auto" else reading.separator
        return select_columns(read_pairs(lines, separator, reading.encoding, file), PAIR, reading.columns, file)
    return _read_table(file, format, reading, notes)


def read_objects(lines: Iterable[Line], reading: Reading, file: str) -> Iterator[Row | Fault]:
    # Numbers stay as they are written: 1.50 is not 1.5, and a thousand digits are no trouble.
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
    for line in lines:
        if fault := find_line_fault(line, file, reading.encoding):
            yield fault
            continue
        try:
            value = decoder.decode(line.text)
        except json.JSONDecodeError as error:
            begun = "; " + ARRAY if line.number == 1 and line.text.lstrip().startswith("[") else ""
            sentence = f"the line is not JSON ({error.msg}, column {error.colno}){begun}"
            yield Fault("not JSON", sentence, file, line.number)
            continue
        except RecursionError:
            yield Fault("not JSON", "the line is JSON within JSON, too deep to be data", file, line.number)
            continue
        if not isinstance(value, dict):
            array = "; " + ARRAY if isinstance(value, list) else ""
            sentence = f"the line is JSON, but not an object with named values{array}"
            yield Fault("not an object", sentence, file, line.number)
            continue
        yield _pick_values(value, reading, file, line)


def look_up(tree: object, name: str) -> object:
    """The value of a key, or of a path of keys and numbers from 0 with dots between them: reviews.0.text."""
    if isinstance(tree, dict):
        if name in tree:
            return tree[name]
        for key in (key for key in tree if name.startswith(f"{key}.")):
            if (value := look_up(tree[key], name[len(key) + 1 :])) is not ABSENT:
                return value
    if isinstance(tree, list):
        key, _, rest = name.partition(".")
        if key.isdecimal() and int(key) < len(tree):
            return look_up(tree[int(key)], rest) if rest else tree[int(key)]
    return ABSENT


def list_paths(tree: dict[str, object], depth: int = 4) -> list[str]:
    """The names of an object's values, those inside of objects with their path, down to a depth."""
    names: list[str] = []
    for key, value in tree.items():
        inside = list_paths(value, depth - 1) if isinstance(value, dict) and depth else []
        names += [f"{key}.{name}" for name in inside] or [key]
    return names


def _pick_values(record: dict[str, object], reading: Reading, file: str, whole: Line) -> Row | Fault:
    values: list[str] = []
    line = whole.number
    for name in reading.columns:
        value = look_up(record, name)
        if value is ABSENT:
            keys = list_paths(record)
            sentence, remedy = f"the object has no {name!r}; {suggest_names(name, keys)}", suggest_setting(name, keys)
            return Fault(f"no {name!r}", sentence, file, line, remedy.removeprefix("; "))
        if value is None and name in reading.blank:
            value = ""
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, str):
            kind = "null" if value is None else "an array" if isinstance(value, list) else "an object"
            return Fault(f"{name!r} is {kind}", f"{name!r} is {kind}, but a text was expected", file, line)
        if ESCAPED.search(value):
            return Fault(f"{name!r} is not text", f"{name!r} holds a NUL or half of a surrogate pair", file, line)
        values.append(value)
    return Row(tuple(values), file, line, whole.text)


# --- columns -----------------------------------------------------------------------------------------------------


def _read_table(file: str, format: str, reading: Reading, notes: list[str]) -> Iterator[Row | Fault]:
    """The requested columns of a table."""
    written = Dialect(format, reading.encoding, reading.separator, reading.header)
    table = open_table(file, written, reading.columns, notes)
    rows = 0
    for row in select_columns(table.records, table.names, reading.columns, file, table.line):
        rows += 1
        yield row
    if not rows:
        raise DataError("the file has a header, but no rows" if table.line else "the file is empty", file)


def select_columns(
    records: Iterable[Record | Fault], names: list[str], columns: tuple[str, ...], file: str, line: int | None = None
) -> Iterator[Row | Fault]:
    """The asked columns of records that have these names; `line` is where the names stand."""
    places = [find_column(name, names, file, line) for name in columns]
    width = len(names)
    for record in records:
        if isinstance(record, Fault):
            yield record
        elif len(record.fields) != width:
            sentence = f"the row has {format_count(len(record.fields), 'field')}, but {width} were expected"
            yield Fault("wrong number of fields", sentence, file, record.line)
        else:
            values = tuple([record.fields[place] for place in places])
            yield Row(values, file, record.line, record.fields)


def find_column(name: str, names: list[str], file: str, line: int | None) -> int:
    """Where the column of this name, or of this number from 1, stands."""
    if name in names:
        return names.index(name)
    numbers = [str(number) for number in range(1, len(names) + 1)]
    if name in numbers:
        return numbers.index(name)
    hint = suggest_setting(name, names, "data.source=1 data.target=2 choose columns, by number or by name")
    hint += "; FILE.xlsx#SHEET reads another sheet" if file.lower().endswith(".xlsx") else ""
    raise DataError(f"there is no column {name!r}; {suggest_names(name, names)}{hint}", file, line)


def suggest_setting(
    name: str, names: Collection[str], both: str = "data.source=KEY data.target=KEY say which are meant"
) -> str:
    """The setting that chooses a column which nobody has named, and which the table does not have by itself."""
    if name == TIME:
        return "; data.time=COLUMN says which one has the times"
    if name not in PAIR or len(names) < 2:
        return ""
    if set(PAIR) & set(names):
        return f"; data.{name}=COLUMN says which one is meant"
    return f"; {both}"


def suggest_names(name: str, names: list[str]) -> str:
    """The names that are there, and the one that may be meant."""
    listed = ", ".join(map(repr, names[:SHOWN_NAMES])) + (", …" if len(names) > SHOWN_NAMES else "")
    by_lower = {other.lower(): other for other in names}
    close = get_close_matches(name.lower(), by_lower, 1)
    return f"there are {listed}" + (f"; did you mean {by_lower[close[0]]!r}?" if close else "")


def strip_row(row: Row, reading: Reading) -> Row | Fault:
    """The row without white space around its texts; a fault if one is empty that may not be."""
    values = tuple([value.strip() for value in row.values])
    if all(values):
        return row._replace(values=values)
    for name, value in zip(reading.columns, values, strict=True):
        if not value and name not in reading.blank:
            return Fault(f"empty {name!r}", f"the column {name!r} is empty", row.file, row.line)
    return row._replace(values=values)
