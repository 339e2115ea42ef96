"""Tables of numbers over time, csv or tsv, to `Series`: one for a wide table, one an id for a long one.

The time is one column (ISO dates or datetimes, 1949-01 for a month, 20130131, or plain numbers), two (date and clock
time), or parts of which the first is the year (year, month, day, hour …); without any, the rows are in order. What a
row lacks ("", NA, NaN, null) is NaN. Times must increase. If they lie on a grid, of equal steps or of calendar
months, the rows that are not there are put in as missing and counted; else they stay as they are, and `step` is "".
Knows nothing of windows, scaling or splits.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from seqloom.arrays import Doubles
from seqloom.counts import format_count
from seqloom.data.formats.delimited import Record
from seqloom.data.formats.dialects import Dialect, Table, open_table
from seqloom.data.formats.lines import Fault
from seqloom.data.formats.numerals import detect_decimal, normalize
from seqloom.data.formats.tables import SkippedRows, detect_format, find_column
from seqloom.data.formats.times import Clock, Times, detect_clock, find_clock, find_grid, parse_number_time
from seqloom.data.numbers import LARGEST, explain_no_number
from seqloom.errors import DataError

MISSING = frozenset(["", "na", "nan", "null"])  # in small letters
CHUNK = 16384  # rows that are turned into numbers at once


@dataclass(frozen=True)
class TableReading:
    """How a table of numbers is read; columns by name, or by number from 1."""

    time: tuple[str, ...] = ()  # none: the rows are in order
    values: tuple[str, ...] = ()  # none: all that are not time or id
    id: str = ""  # of the long form: whose row this is
    format: str = "guess"  # csv or tsv
    encoding: str = "utf-8"
    skip: bool = False  # bad rows are counted, not raised
    separator: str = "auto"
    header: str = "auto"
    decimal: str = "auto"  # or comma, point
    time_format: str = "auto"  # as strptime has it


@dataclass(frozen=True)
class Series:
    name: str  # the id, or the file's name without its ending
    times: Times  # (T,) increasing; datetime64[ms], or float64 if the time is a number or the row's
    values: Doubles  # (T, D), NaN where missing
    columns: tuple[str, ...]  # D of them
    filled: int  # rows that were not in the file
    step: str  # "3600000 ms", "1 months", "0.5"; "" if the times lie on no grid


@dataclass
class _Chunks:
    """What has been read so far, in arrays."""

    times: list[Times] = field(default_factory=list)
    values: list[Doubles] = field(default_factory=list)
    owners: list[npt.NDArray[np.int64]] = field(default_factory=list)
    lines: list[npt.NDArray[np.int64]] = field(default_factory=list)


def read_table(file: str, reading: TableReading, skipped: SkippedRows) -> Iterator[Series]:
    """The series of a file; those of a long table in the order in which their ids first appear."""
    format = detect_format([file], reading.format)
    if format not in ("csv", "tsv", "xlsx", "parquet"):
        raise DataError(f"a table of numbers is csv, tsv, xlsx or parquet, not {format}", file)
    written = Dialect(format, reading.encoding, reading.separator, reading.header)
    columns = [*reading.time, *filter(None, [reading.id]), *reading.values]
    table_file = open_table(file, written, columns, skipped.notes, numeric=True)
    table = _Table(file, table_file, reading)
    chunks = _Chunks()
    for rows in _make_chunks(table.skip_faults(table.check(table_file.records), skipped)):
        table.add(rows, chunks, skipped)
    if not chunks.values:
        raise DataError("the file has a header, but no rows that can be used", file)
    if all(np.isnan(values).all() for values in chunks.values):
        raise DataError("the file has rows, but no number in the columns of values", file)
    return table.series(chunks)


def _make_chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    rows: list[Record] = []
    for record in records:
        rows.append(record)
        if len(rows) == CHUNK:
            yield rows
            rows = []
    if rows:
        yield rows


class _Table:
    """Where the columns of one file stand, and how its times are written."""

    def __init__(self, file: str, header: Table, reading: TableReading) -> None:
        names = header.names
        self.file, self.reading, self.names = file, reading, names
        self.time = [find_column(name, names, file, header.line) for name in reading.time]
        self.id = find_column(reading.id, names, file, header.line) if reading.id else None
        used = {*self.time, self.id}
        rest = [place for place in range(len(names)) if place not in used]
        self.values = [find_column(name, names, file, header.line) for name in reading.values] or rest
        if not self.values:
            raise DataError("no column is left for the values", file, header.line)
        self.ids: dict[str, int] = {}
        self.decimal, self.settled = reading.decimal, False
        self.clock: Clock | None = None

    def check(self, records: Iterable[Record | Fault]) -> Iterator[Record | Fault]:
        """Records of the right width, faults for the others."""
        for record in records:
            if isinstance(record, Record) and len(record.fields) != len(self.names):
                sentence = (
                    f"the row has {format_count(len(record.fields), 'field')}, but {len(self.names)} were expected"
                )
                yield Fault("wrong number of fields", sentence, self.file, record.line)
            else:
                yield record

    def skip_faults(self, items: Iterable[Record | Fault], skipped: SkippedRows) -> Iterator[Record]:
        """Records without faults. Where only the order says the time, a skipped row keeps its place, as missing."""
        for item in items:
            if isinstance(item, Record):
                yield item
            elif not self.reading.skip:
                raise item.error()
            else:
                skipped.add(item)
                if not self.time and self.id is None:
                    yield Record([""] * len(self.names), item.line)

    def add(self, rows: list[Record], chunks: _Chunks, skipped: SkippedRows) -> None:
        """Turn rows into numbers, a column at a time; row by row only where that fails."""
        self._settle(rows, skipped.notes)
        try:
            values, times = self._values(rows), self._times(rows)
        except ValueError:
            rows = list(self.skip_faults((self._fault(row) or row for row in rows), skipped))
            if not rows:
                return
            values, times = self._values(rows), self._times(rows)
        owners = np.zeros(len(rows), np.int64)
        if self.id is not None:
            ids, place = self.ids, self.id
            owners = np.array([ids.setdefault(row.fields[place].strip(), len(ids)) for row in rows], np.int64)
        chunks.times.append(times)
        chunks.values.append(values)
        chunks.owners.append(owners)
        chunks.lines.append(np.array([row.line for row in rows], np.int64))

    def _settle(self, rows: Sequence[Record], notes: list[str]) -> None:
        """How the first rows write numbers and times, which holds for all."""
        if self.decimal == "auto" and not self.settled:
            cells = (row.fields[place] for row in rows for place in self.values)
            self.decimal = detect_decimal(cells, self.file)
            if self.decimal == "comma":
                notes.append(f"{self.file}: numbers have a decimal comma (data.decimal)")
        self.settled = True
        if self.time and self.clock is None:
            times = [[row.fields[place].strip() for place in self.time] for row in rows]
            with suppress(ValueError):  # said with its line when the row is looked at
                self.clock = find_clock(times, self.reading.time_format, self.file, notes)

    def _values(self, rows: Sequence[Record]) -> Doubles:
        values = np.empty((len(rows), len(self.values)))
        for column, place in enumerate(self.values):
            values[:, column] = _parse_numbers([row.fields[place] for row in rows], self.decimal)
        return values

    def _times(self, rows: Sequence[Record]) -> Times:
        if not self.time:
            return np.zeros(len(rows))  # numbered when all are there
        texts = [[row.fields[place].strip() for place in self.time] for row in rows]
        if self.clock is None:
            self.clock = detect_clock(texts[0])  # of a row that could not be read: says what is wrong
        return np.array(
            list(map(self.clock, texts)), np.float64 if self.clock is parse_number_time else "datetime64[ms]"
        )

    def _fault(self, row: Record) -> Fault | None:
        for place in self.values:
            try:
                _parse_numbers([row.fields[place]], self.decimal)
            except ValueError:
                name, text = self.names[place], row.fields[place].strip()
                sentence = f"the column {name!r} is {_shorten(text)}, but {explain_no_number(text)}"
                return Fault(f"{name!r} is not a number", sentence, self.file, row.line)
        try:
            self._times([row])
        except ValueError as error:
            names = ", ".join(repr(self.names[place]) for place in self.time)
            text = " ".join(row.fields[place].strip() for place in self.time)
            sentence = f"the time in {names} is {_shorten(text)}, which cannot be read ({error})"
            return Fault("no time", sentence, self.file, row.line)
        return None

    def series(self, chunks: _Chunks) -> Iterator[Series]:
        times, values = np.concatenate(chunks.times), np.concatenate(chunks.values)
        owners, lines = np.concatenate(chunks.owners), np.concatenate(chunks.lines)
        columns = tuple(self.names[place] for place in self.values)
        if self.id is None:
            name = PurePath(self.file).name.removesuffix(".gz").rpartition(".")[0]
            yield self._one(name, times, values, lines, columns)
            return
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners))
        for name, end, start in zip(self.ids, ends, [0, *ends], strict=False):
            rows = order[start:end]
            yield self._one(name, times[rows], values[rows], lines[rows], columns)

    def _one(
        self, name: str, times: Times, values: Doubles, lines: npt.NDArray[np.int64], columns: tuple[str, ...]
    ) -> Series:
        if not self.time:
            return Series(name, np.arange(len(values), dtype=np.float64), values, columns, 0, "1")
        back = np.flatnonzero(times[1:] <= times[:-1])
        if len(back):
            at = int(back[0]) + 1
            whose = f" of {name!r}" if self.id is not None else ""
            sentence = f"the time{whose} is {times[at]}, which is not after the {times[at - 1]} of line {lines[at - 1]}"
            raise DataError(f"{sentence}; times must increase", self.file, int(lines[at]))
        places, grid, step = find_grid(times)
        if step and len(grid) > len(times):
            full = np.full((len(grid), values.shape[1]), np.nan)
            full[places] = values
            return Series(name, grid, full, columns, len(grid) - len(times), step)
        return Series(name, times, values, columns, 0, step)


# --- numbers -------------------------------------------------------------------------------------------


def _parse_numbers(texts: list[str], decimal: str) -> Doubles:
    """The numbers of a column, NaN for what is missing; ValueError if one is neither."""
    if decimal != "auto":
        texts = [normalize(text, decimal) for text in texts]
    try:
        numbers = np.array(list(map(float, texts)))
    except ValueError:
        numbers = np.array([math.nan if text.strip().lower() in MISSING else float(text) for text in texts])
    if (np.abs(numbers) > LARGEST).any() or "_" in "".join(texts):  # float() also takes 1_000
        raise ValueError
    return numbers


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
