"""Files of inputs that have no answer yet: whatever training reads, by the columns that the run reads.

Every input comes with its row, so that the answers can be written beside it. Nothing is held but the row at hand.
"""

import gzip
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from seqloom.config.recipe import Data
from seqloom.counts import format_count
from seqloom.data.files import expand
from seqloom.data.formats.conll import ConllReading, parse_conll
from seqloom.data.formats.delimited import PAIR, skip_blank_lines
from seqloom.data.formats.dialects import SAMPLED, Dialect, open_table
from seqloom.data.formats.folders import read_text
from seqloom.data.formats.lines import Fault, check_file, find_line_fault, read_lines
from seqloom.data.formats.numerals import detect_decimal
from seqloom.data.formats.parquet import count_rows, list_plain_columns
from seqloom.data.formats.tables import (
    ENDINGS,
    Reading,
    Row,
    SkippedRows,
    read_objects,
    select_columns,
    strip_row,
    suggest_names,
)
from seqloom.data.pretokenized import SEPARATOR
from seqloom.data.readers import group_sequences, make_image_reading, make_single, read_files, read_frame, read_texts
from seqloom.data.schema import Schema
from seqloom.errors import DataError

TABLES = ("csv", "tsv", "jsonl", "xlsx", "parquet")
OTHERS = ("conll", "conllu", "ts", "idx", "txt")
ALONE = "input"  # the column of an input that stands in no table


class Input(NamedTuple):
    """One input of `predict`, with its file and line."""

    name: str  # what it is called, for a person
    value: Any  # a raw value, or one for each side that is read
    row: Mapping[str, Any]  # the columns that stand beside it
    file: str
    line: int


@dataclass(frozen=True)
class InputReading:
    """What a person says about a file of inputs, where its run would say something else."""

    format: str = ""  # that of the ending, or else of training
    source: tuple[str, ...] = ()  # the columns that are read
    tagged: bool = False  # whether the tag of all inputs is said beside the file
    on_bad_row: str = ""  # error or skip

    def apply(self, data: Data) -> Data:
        """How files are read, with what is said about bad rows."""
        return data.model_copy(update={"on_bad_row": self.on_bad_row}) if self.on_bad_row else data


@dataclass(frozen=True)
class InputFile:
    columns: tuple[str, ...]  # of every row
    inputs: Iterator[Input | Fault]
    last: int = 0  # the line that the last input is near to; 0 if that is not known


def read_each(names: Sequence[str], read: Callable[[str], InputFile]) -> InputFile:
    """The inputs of all files that the names and patterns stand for, one file after the other."""
    files = [file for name in names for file in expand(name)]
    tables = [read(file) for file in files]
    for file, table in zip(files, tables, strict=True):
        if table.columns != tables[0].columns:
            here, there = (", ".join(map(repr, columns)) for columns in (table.columns, tables[0].columns))
            raise DataError(
                f"files that are answered together have the same columns; here are {here}, in {files[0]} {there}", file
            )
    if len(tables) == 1:
        return tables[0]
    return InputFile(tables[0].columns, chain.from_iterable(table.inputs for table in tables))


def read_inputs(file: str, schema: Schema, reading: InputReading, skipped: SkippedRows) -> InputFile:
    """The inputs of a file or a folder. The schema has the sides that are read, the first of them the source."""
    side, notes = next(iter(schema.sides)), skipped.notes
    schema = replace(schema, data=reading.apply(schema.data))
    if reading.source:
        sides = {**schema.sides, side: schema.sides[side]._replace(columns=reading.source)}
        schema = replace(schema, sides=sides)
    if os.path.isdir(os.path.expanduser(file)):
        return read_folder(file, schema, side, notes)
    endings = schema.sides[side].field.endings
    if has_ending(file, endings):
        return InputFile((ALONE,), iter([file_input(file)]))
    format = input_format(file, reading.format, schema)
    if format in TABLES:
        read = read_file_names if endings else read_rows
        return read(file, format, schema, notes)
    if format in ("conll", "conllu"):
        return InputFile((ALONE,), read_sentences(file, format, schema), count_lines(file))
    if format in ("ts", "idx"):
        return InputFile((ALONE,), read_numbered(file, format, schema, skipped))
    return InputFile((ALONE,), read_plain(file, schema, notes), count_lines(file))


def input_format(file: str, name: str, schema: Schema) -> str:
    """As said; as the ending says, unless the recipe says something else of such files; as training's files; text."""
    known = (*TABLES, *OTHERS)
    if name:
        if name not in known:
            raise DataError(f"the format is {name!r}, but one of {', '.join(known)} was expected", file)
        return name
    ours, data = ending_of(file), schema.data
    trained = ending_of(data.train[0]) if data.train else ""
    of_recipe = data.format if data.format in known else ""
    if of_recipe and ours == trained:
        return of_recipe
    if PurePath(file.lower().removesuffix(".gz")).name.endswith("-ubyte"):
        return "idx"
    return ENDINGS.get(ours) or of_recipe or ("txt" if PurePath(file).suffix else ENDINGS.get(trained, "txt"))


def ending_of(file: str) -> str:
    return PurePath(file.partition("#")[0].lower().removesuffix(".gz")).suffix


# --- tables -----------------------------------------------------------------------------------------------------


def read_rows(file: str, format: str, schema: Schema, notes: list[str]) -> InputFile:
    """A table, by the columns of the sides that are read; numbers with `data.series` as sequences of rows."""
    data, sides = schema.data, list(schema.sides.values())
    numeric = data.source_type == "numbers" and "source" in schema.sides
    series = (data.series,) if data.series and numeric else ()
    reading = Reading.of(data, schema.columns + series)
    several = tuple(name for side in sides if len(side.columns) > 1 for name in side.columns)
    reading = reading.allow_blank(sides[0].columns if numeric else several)
    columns, rows, last = open_rows(file, format, reading, notes)
    stripped = (row if isinstance(row, Fault) else strip_row(row, reading) for row in rows)
    spans = [slice(*both) for both in pairwise(accumulate((len(side.columns) for side in sides), initial=0))]
    if not numeric:
        return InputFile(columns, (text_input(row, spans, schema, columns) for row in stripped), last)
    return InputFile(series or columns, read_numbers(stripped, spans, schema, columns, notes), last)


def open_rows(
    file: str, format: str, reading: Reading, notes: list[str]
) -> tuple[tuple[str, ...], Iterator[Row | Fault], int]:
    """The names of a table's columns, its rows with the asked values, and the line that the last of them is near to."""
    if format == "jsonl":
        rows = read_objects(skip_blank_lines(read_lines(file, reading.encoding)), reading, file)
        first = list(islice(rows, SAMPLED))
        keys = dict.fromkeys(key for row in first if isinstance(row, Row) for key in json.loads(row.cells))
        return tuple(keys), chain(first, rows), count_lines(file)
    columns = reading.columns
    if format == "parquet":  # what holds lists or bytes cannot be written beside the answers
        plain, others = list_plain_columns(file)
        columns = tuple(dict.fromkeys([*plain, *reading.columns]))
        if others:
            notes.append(f"{file}: the columns {', '.join(others)} hold no texts or numbers and are left out")
    table = open_table(file, Dialect(format, reading.encoding, reading.separator, reading.header), columns, notes)
    numbers = {str(number) for number in range(1, len(table.names) + 1)}
    if lacking := [name for name in reading.columns if name not in table.names and name not in numbers]:
        there = suggest_names(lacking[0], table.names)
        sentence = f"there is no column {lacking[0]!r}, which this run reads; {there}; --source names another"
        raise DataError(sentence, file, table.line)
    last = 0 if format == "xlsx" else count_rows(file) if format == "parquet" else count_lines(file)
    rows = select_columns(table.records, table.names, reading.columns, file, table.line)
    return tuple(table.names), rows, last


def row_of(row: Row, columns: Sequence[str]) -> Mapping[str, Any]:
    """The whole row by its columns."""
    if isinstance(row.cells, str):
        return json.loads(row.cells)
    return dict(zip(columns, row.cells, strict=True))


def text_input(row: Row | Fault, spans: Sequence[slice], schema: Schema, columns: Sequence[str]) -> Input | Fault:
    if isinstance(row, Fault):
        return row
    placed = read_texts(row, spans, schema)
    if isinstance(placed, Fault):
        return placed
    [values, file, line] = placed
    return Input(values[0], unpack_single(values), row_of(row, columns), file, line)


def unpack_single(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def read_numbers(
    rows: Iterator[Row | Fault], spans: Sequence[slice], schema: Schema, columns: Sequence[str], notes: list[str]
) -> Iterator[Input | Fault]:
    """Rows of numbers, each an input of its own or all of one series together."""
    first, data = list(islice(rows, SAMPLED)), schema.data
    decimal: str = data.decimal
    good = [row for row in first if isinstance(row, Row)]
    if decimal == "auto" and good:
        decimal = detect_decimal((cell for row in good for cell in row.values[spans[0]]), good[0].file)
        if decimal == "comma":
            notes.append(f"{good[0].file}: numbers have a decimal comma (data.decimal)")
    whole = chain(first, rows)
    begins: dict[int, Row] = {}  # rows that are being read, by their lines; of a series only the first

    def frames() -> Iterator[Any]:
        before = None
        for row in whole:
            if isinstance(row, Row) and (not data.series or row.values[-1] != before):
                begins[row.line], before = row, row.values[-1]
            yield row if isinstance(row, Fault) else read_frame(row, spans, schema, decimal)

    for sequence in group_sequences(frames(), schema) if data.series else map(make_single, frames()):
        if isinstance(sequence, Fault):
            yield sequence
            continue
        row = begins.pop(sequence[2])
        name = row.values[-1] if data.series else str(row.line)
        cells = {data.series: name} if data.series else row_of(row, columns)
        yield Input(name, unpack_single(sequence[0]), cells, row.file, row.line)


def read_file_names(file: str, format: str, schema: Schema, notes: list[str]) -> InputFile:
    """Images or sounds that a table names, which lie beside it or in the folder of the recipe."""
    column, data = next(iter(schema.sides.values())).columns[0], schema.data
    if schema.pictured and column == "source":
        column = make_image_reading(schema).image
    what = "images" if schema.pictured else "sounds"
    reading = Reading.of(schema.data, (column,))
    columns, rows, last = open_rows(file, format, reading, notes)
    stripped = (row if isinstance(row, Fault) else strip_row(row, reading) for row in rows)
    first = next(stripped, None)
    root = Path(os.path.expanduser(file)).parent
    if isinstance(first, Row) and (folder := getattr(data, what)) and not (root / first.values[0]).is_file():
        root = Path(os.path.expanduser(folder))
        notes.append(f"{file}: its {what} are looked for in {root}, as data.{what} of the run says")
    inside = chain([] if first is None else [first], stripped)
    return InputFile(columns, (named_input(row, root, columns, what) for row in inside), last)


def named_input(row: Row | Fault, root: Path, columns: Sequence[str], what: str) -> Input | Fault:
    if isinstance(row, Fault):
        return row
    name, path = row.values[0], Path(os.path.realpath(root / row.values[0]))
    if not path.is_relative_to(os.path.realpath(root)):
        sentence = f"the name {name[:60]!r} leads out of the folder of {what}"
        return Fault("outside", sentence, row.file, row.line)
    return Input(name, path, row_of(row, columns), row.file, row.line)


# --- what is no table -------------------------------------------------------------------------------------------


def read_folder(folder: str, schema: Schema, side: str, notes: list[str]) -> InputFile:
    """A text, an image or a sound a file, of a folder and all folders within it."""
    root = Path(os.path.expanduser(folder))
    there = sorted(path for path in root.rglob("*") if path.is_file() and not path.name.startswith("."))
    endings = schema.sides[side].field.endings
    files = [path for path in there if not endings or has_ending(path, endings)]
    if unread := sorted(set(there) - set(files)):
        count = format_count(len(unread), "file")
        notes.append(f"{folder}: not read, by their endings: {count}, such as {unread[0].relative_to(root)}")
    if not files:
        what = "images" if schema.pictured else "sounds" if endings else "files"
        raise DataError(f"the folder holds no {what}", folder)
    if not endings and schema.data.source_type == "numbers" and side == "source":
        raise DataError("this is a folder of files, but this run reads tables of numbers: name one of them", folder)
    numbered = enumerate(map(str, files), 1)
    if endings:
        return InputFile((ALONE,), (file_input(file, number) for number, file in numbered), len(files))
    encoding = schema.data.encoding
    return InputFile((ALONE,), (document_input(file, number, encoding) for number, file in numbered), len(files))


def has_ending(file: str | Path, endings: Collection[str]) -> bool:
    return PurePath(file).suffix.lower() in endings


def file_input(file: str, number: int = 1) -> Input:
    return Input(file, Path(os.path.expanduser(file)), {ALONE: file}, file, number)


def document_input(file: str, number: int, encoding: str) -> Input | Fault:
    content = read_text(Path(file), encoding)
    return content if isinstance(content, Fault) else Input(file, content, {ALONE: file}, file, number)


def read_sentences(file: str, format: str, schema: Schema) -> Iterator[Input | Fault]:
    """The words of sentences; their tags, if there are any, are not read."""
    default, column = ("form" if format == "conllu" else "1"), next(iter(schema.sides.values())).columns[0]
    word = default if column == "source" else column
    reading = ConllReading(word, "", "conllu" if format == "conllu" else "columns", schema.data.encoding)
    for one in parse_conll(file, reading):
        if isinstance(one, Fault):
            yield one
        else:
            text = " ".join(one.words)
            yield Input(text, SEPARATOR.join(one.words) + SEPARATOR, {ALONE: text}, file, one.line)


def read_numbered(file: str, format: str, schema: Schema, skipped: SkippedRows) -> Iterator[Input | Fault]:
    """Series and arrays, named by their number."""
    data = schema.data.model_copy(update={"format": format})
    for number, [value] in enumerate(read_files([file], replace(schema, data=data), skipped), 1):
        yield Input(str(number), value, {ALONE: str(number)}, file, number)


def read_plain(file: str, schema: Schema, notes: list[str]) -> Iterator[Input | Fault]:
    """A text a line, or the first of two columns where files of pairs were trained on and each line has two."""
    encoding, separator = schema.data.encoding, schema.data.separator
    separator = "\t" if separator == "auto" else separator
    lines = read_lines(file, encoding)
    first = list(islice(lines, SAMPLED))
    paired = bool(first) and reads_pairs(schema) and all(line.text.count(separator) == 1 for line in first)
    if paired:
        notes.append(f"{file}: the lines are pairs, as those of training are; the {PAIR[0]} is read")
    for line in chain(first, lines):
        if fault := find_line_fault(line, file, encoding):
            yield fault
        else:
            text = line.text.partition(separator)[0].strip() if paired else line.text
            yield Input(text, text, {ALONE: text}, file, line.number)


def reads_pairs(schema: Schema) -> bool:
    """Whether training read lines with a source and a target."""
    train = schema.data.train
    return len(train) == 1 and input_format(train[0], "", schema) == "txt"


def count_lines(file: str) -> int:
    """How many lines a file has, for a progress bar; 0 if that cannot be said."""
    path = check_file(file)
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as raw:
            return sum(block.count(b"\n") for block in iter(lambda: raw.read(1 << 20), b""))
    except (OSError, EOFError):  # which is said where it is read
        return 0
