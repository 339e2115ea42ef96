"""Files of time series with a class each, in the .ts format of the UEA archive (sktime, aeon).

Header lines begin with @, comments with #; behind @data a line is a case: dimensions between colons, the values of
each between commas, the class last. A value `?` is missing (NaN). Series with time stamps of their own are refused.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqloom.counts import format_count
from seqloom.data.formats.lines import Fault, Line, find_line_fault, read_lines
from seqloom.data.formats.tables import SkippedRows, drop_faults, suggest_names
from seqloom.data.numbers import LARGEST
from seqloom.errors import DataError

MISSING = ("", "?")


class TsCase(NamedTuple):
    values: npt.NDArray[np.float32]  # (T, D), NaN where missing
    label: str  # "" if the file has none
    line: int


@dataclass
class _Header:
    dimensions: int | None = None  # as said, or as the first case has
    length: int | None = None  # of every case, where they are equal
    equal: bool = False
    labeled: bool = False
    labels: frozenset[str] = frozenset()  # none: any


def read_ts(file: str, skipped: SkippedRows, encoding: str = "utf-8", skip: bool = False) -> Iterator[TsCase]:
    """The cases of a file; those that cannot be used are raised, or added to `skipped`."""
    lines = (line for line in read_lines(file, encoding) if line.text.strip() and not line.text.startswith("#"))
    header = _read_header(lines, file)
    return drop_faults((_read_case(line, header, file, encoding) for line in lines), file, skip, skipped, "case")


def _read_header(lines: Iterator[Line], file: str) -> _Header:
    header = _Header()
    for number, text in lines:
        if not text.startswith("@"):
            raise DataError("a header line beginning with @ was expected; behind @data stand the cases", file, number)
        name, *words = text[1:].split() or [""]
        match name.lower():
            case "data":
                return header
            case "timestamps" if _parse_bool(words, file, number):
                raise DataError("series with time stamps of their own are not read", file, number)
            case "dimensions" | "dimension":
                header.dimensions = _parse_count(words, file, number)
            case "univariate" if _parse_bool(words, file, number):
                header.dimensions = 1
            case "equallength":
                header.equal = _parse_bool(words, file, number)
            case "serieslength":
                header.length = _parse_count(words, file, number)
            case "classlabel":
                header.labeled = _parse_bool(words, file, number)
                header.labels = frozenset(words[1:])
            case "targetlabel":
                header.labeled = _parse_bool(words, file, number)
    raise DataError("the file has no line @data, behind which the cases stand", file)


def _parse_bool(words: list[str], file: str, line: int) -> bool:
    if not words or words[0].lower() not in ("true", "false"):
        raise DataError(f"true or false was expected, not {' '.join(words)[:40]!r}", file, line)
    return words[0].lower() == "true"


def _parse_count(words: list[str], file: str, line: int) -> int:
    if not words or not re.fullmatch("[1-9][0-9]{0,8}", words[0]):
        raise DataError(f"a count was expected, not {' '.join(words)[:40]!r}", file, line)
    return int(words[0])


def _read_case(line: Line, header: _Header, file: str, encoding: str) -> TsCase | Fault:
    if fault := find_line_fault(line, file, encoding):
        return fault
    parts = line.text.split(":")
    label = parts.pop().strip() if header.labeled else ""
    if header.labels and label not in header.labels:
        sentence = f"the class {label[:40]!r} is not in the header; {suggest_names(label[:40], sorted(header.labels))}"
        return Fault("unknown class", sentence, file, line.number)
    if header.dimensions is None:
        header.dimensions = max(len(parts), 1)
    if len(parts) != header.dimensions:
        sentence = f"the case has {format_count(len(parts), 'dimension')}, but {header.dimensions} were expected"
        return Fault("wrong number of dimensions", sentence, file, line.number)
    try:
        columns = [np.array([_parse_value(text.strip()) for text in part.split(",")]) for part in parts]
    except ValueError:
        return Fault("not numbers", f"a value is not a number in {line.text[:60]!r} …", file, line.number)
    return _check_case(columns, label, header, file, line.number)


def _parse_value(text: str) -> float:
    if "_" in text:  # float() would take 1_000
        raise ValueError
    return math.nan if text in MISSING else float(text)


def _check_case(
    columns: list[npt.NDArray[np.float64]], label: str, header: _Header, file: str, line: int
) -> TsCase | Fault:
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        sentence = f"the dimensions of the case are {min(lengths)} to {max(lengths)} long, but must be equally long"
        return Fault("unequal dimensions", sentence, file, line)
    values = np.stack(columns, 1)
    if (np.abs(values) > LARGEST).any():
        return Fault("not numbers", f"a value is too large: numbers are read up to {LARGEST:.0e}", file, line)
    if header.equal:
        header.length = header.length or len(values)
        if len(values) != header.length:
            sentence = (
                f"the case has {format_count(len(values), 'step')}, but @equalLength is true and "
                f"{header.length} were expected"
            )
            return Fault("wrong length", sentence, file, line)
    return TsCase(values.astype(np.float32), label, line)
