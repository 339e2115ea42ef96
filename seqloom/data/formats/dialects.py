"""How a table is written, found from its first rows: what divides its columns, and whether a header names them.

What the recipe says holds. What it leaves open is detected and noted; where two readings are possible, both are in the
error. Knows nothing of what the columns mean.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from seqloom.counts import format_count
from seqloom.data.formats.delimited import Record, read_csv, read_tabs
from seqloom.data.formats.lines import Fault, read_lines
from seqloom.data.formats.parquet import list_columns, read_parquet
from seqloom.data.formats.xlsx import read_xlsx
from seqloom.errors import DataError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SAMPLED = 200  # lines, and rows, that are looked at
CONSISTENT = 0.9  # share of rows with as many fields as most have; a bad row does not change what the file is
NUMBER = re.compile(r"[-+]?(\d[\d.,]*)?\d([eE][-+]?\d+)?")
IDENTIFIER = re.compile(r"[^\W\d][\w .\-/]{0,30}")
# Words that stand above columns and hardly in them.
HEADINGS = frozenset(
    """
    id index text sentence review comment title body message content label class category sentiment target source
    input output answer question name date time timestamp value values tag tags word words caption image file
    english german french spanish italian portuguese dutch russian chinese japanese arabic turkish polish
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Dialect:
    """How a person says that a table is written; auto is detected."""

    format: str  # csv, tsv, xlsx or parquet
    encoding: str = "utf-8"
    separator: str = "auto"
    header: str = "auto"  # or yes, no


@dataclass(frozen=True)
class Table:
    names: list[str]  # of the columns; their numbers from 1 if there is no header
    line: int | None  # where the names stand
    records: Iterator[Record | Fault]


def open_table(file: str, dialect: Dialect, columns: Sequence[str], notes: list[str], numeric: bool = False) -> Table:
    """The columns and the rows of a table; what was detected is added to `notes`.

    Where nothing speaks for a header or against it, a table of numbers has one, and one of texts has none.
    """
    if dialect.format == "parquet":
        return _open_parquet(file, columns)
    records = _read_records(file, dialect, columns, notes)
    first = list(islice(records, SAMPLED))
    if not first:
        raise DataError("the file is empty", file)
    records = chain(first, records)
    sample = [record.fields for record in first if isinstance(record, Record)]
    if _has_header(sample, dialect.header, columns, file, notes, numeric):
        header = next(records)
        if isinstance(header, Fault):  # without the header no row can be read
            raise header.error()
        names = [name.strip() for name in header.fields]
        return Table(_tell_apart(names, columns, file, header.line), header.line, records)
    width = len(sample[0]) if sample else 1
    return Table([str(number) for number in range(1, width + 1)], None, records)


def _tell_apart(names: list[str], columns: Sequence[str], file: str, line: int) -> list[str]:
    """The names of columns, each once: of those that share one, the second is `name (2)`. One that is asked for by such
    a name is refused."""
    seen: Counter[str] = Counter()
    apart = []
    for name in names:
        seen[name] += 1
        apart.append(name if seen[name] == 1 or not name else f"{name} ({seen[name]})")
    if twice := [name for name in columns or names if seen[name] > 1 and name]:
        places = ", ".join(str(place) for place, name in enumerate(names, 1) if name == twice[0])
        sentence = f"the header has the column {twice[0]!r} more than once: the numbers {places} tell them apart"
        raise DataError(f"{sentence} (data.source, data.target)", file, line)
    return apart


def _open_parquet(file: str, columns: Sequence[str]) -> Table:
    """A Parquet file knows its columns, and those that nobody asks for are not read."""
    names = list_columns(file)
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise DataError(f"the file has the column {twice[0]!r} more than once", file)
    places = [place for place, name in enumerate(names, 1) if not columns or {name, str(place)} & set(columns)]
    return Table(names, None, read_parquet(file, names, [names[place - 1] for place in places]))


def _read_records(file: str, dialect: Dialect, columns: Sequence[str], notes: list[str]) -> Iterator[Record | Fault]:
    if dialect.format == "xlsx":
        return read_xlsx(file, notes)
    lines = read_lines(file, dialect.encoding)
    if dialect.format == "tsv":
        if dialect.separator not in ("auto", "\t"):
            sentence = f"the columns of a tsv file are divided by tabs, but data.separator is {dialect.separator!r}"
            raise DataError(f"{sentence}: data.format=csv reads other separators", file)
        return read_tabs(lines, dialect.encoding, file)
    separator = dialect.separator
    if separator == "auto":
        separator = detect_separator(file, dialect.encoding, columns)
        if separator != ",":
            notes.append(f"{file}: the columns are divided by {SEPARATORS[separator]} (data.separator)")
    if len(separator) != 1 or separator == '"':
        raise DataError(f"the columns of a csv file are divided by one character, not {separator!r}", file)
    return read_csv(lines, dialect.encoding, file, separator)


# --- what divides the columns --------------------------------------------------------------------------------


def detect_separator(file: str, encoding: str, columns: Sequence[str]) -> str:
    """The separator with which the first lines are a table, best one with the asked columns; a comma if none is."""
    texts = [line.text for line in islice(read_lines(file, encoding), SAMPLED)]
    tables = {separator: split_sample(texts, separator) for separator in SEPARATORS}
    names = [name for name in columns if not name.isdecimal()]
    by_name = [
        separator for separator, rows in tables.items() if rows and set(names) <= {name.strip() for name in rows[0]}
    ]
    if names and "," in by_name:
        return ","
    likely = [separator for separator, rows in tables.items() if _is_consistent(rows)]
    if names and by_name:
        likely = by_name
    if len(likely) > 1:
        readings = " or ".join(f"{SEPARATORS[one]} ({_format_row(tables[one][0])})" for one in likely)
        raise DataError(f"the columns may be divided by {readings}: data.separator says which", file)
    return likely[0] if likely else ","


def split_sample(texts: Sequence[str], separator: str) -> list[list[str]]:
    """The rows that these lines are with a separator; the last one may go on behind them, so it is left out."""
    try:
        rows = list(csv.reader((f"{text}\n" for text in texts), delimiter=separator))
    except csv.Error:
        return []
    return [row for row in (rows[:-1] if len(texts) == SAMPLED else rows) if row]


def _is_consistent(rows: Sequence[Sequence[str]]) -> bool:
    widths = Counter(map(len, rows))
    if not widths:
        return False
    [(width, times)] = widths.most_common(1)
    return width > 1 and times >= CONSISTENT * len(rows) and len(rows[0]) == width


def _format_row(row: Sequence[str]) -> str:
    cells = " | ".join(cell.strip()[:20] for cell in row[:4])
    return f"{format_count(len(row), 'column')}: {cells}{' | …' if len(row) > 4 else ''}"


# --- whether there is a header -------------------------------------------------------------------------------


def _has_header(
    sample: Sequence[Sequence[str]], setting: str, columns: Sequence[str], file: str, notes: list[str], numeric: bool
) -> bool:
    names = [name for name in columns if not name.isdecimal()]
    if setting == "no" and names:
        sentence = f"data.header is no, so columns have numbers from 1, but one is asked for as {names[0]!r}"
        raise DataError(sentence, file)
    if setting != "auto":
        return setting == "yes"
    if names:
        return True
    verdict = detect_header(sample, numeric)
    if verdict is None:
        sentence = f"the first row ({_format_row(sample[0])}) may name the columns or be an example"
        raise DataError(f"{sentence}: data.header=yes or data.header=no says which", file, 1)
    if verdict and columns:
        notes.append(f"{file}: the first row ({_format_row(sample[0])}) was taken for a header (data.header)")
    if not verdict and not columns:
        notes.append(f"{file}: no header was found, so columns have numbers from 1 (data.header)")
    return verdict


def detect_header(sample: Sequence[Sequence[str]], default: bool = False) -> bool | None:
    """Whether the first row differs in kind from those below; `default` without a sign, none if it cannot be told."""
    if not sample:
        return default
    first, *rest = sample
    below = [row for row in rest if len(row) == len(first)]
    if not below:
        return default or _are_headings(first)
    evidence = [_compare_kinds(cell.strip(), [row[place].strip() for row in below]) for place, cell in enumerate(first)]
    differing, alike = evidence.count("differs"), evidence.count("alike")
    if differing or alike:
        return None if differing and alike else differing > 0
    if default or _are_headings(first):
        return True
    # A label that is seen nowhere else, in a row of nothing but names: a header as well as a rare label.
    return None if "alone" in evidence and all(IDENTIFIER.fullmatch(cell.strip()) for cell in first) else False


def _compare_kinds(cell: str, below: Sequence[str]) -> str:
    """Whether a cell is of another kind than those below it: no number above numbers, or no label above labels."""
    filled = [other for other in below if other]
    if not cell or not filled:
        return ""
    numbers = sum(bool(NUMBER.fullmatch(other)) for other in filled)
    if numbers >= CONSISTENT * len(filled):
        return "alike" if NUMBER.fullmatch(cell) else "differs"
    if len(set(filled)) <= len(filled) / 2:  # few labels
        if cell in filled:
            return "alike"
        return "differs" if cell.lower() in HEADINGS else "alone"
    return ""


def _are_headings(row: Iterable[str]) -> bool:
    cells = [cell.strip().lower() for cell in row if cell.strip()]
    return bool(cells) and all(IDENTIFIER.fullmatch(cell) for cell in cells) and any(c in HEADINGS for c in cells)
