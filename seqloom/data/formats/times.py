"""How times are written in a table, and whether those of a series lie on a grid of equal steps or of months."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seqloom.arrays import Doubles
from seqloom.data.formats.dates import detect_format

Times = npt.NDArray[Any]  # datetime64[ms], in UTC if offsets are given; else float64
Clock = Callable[[Sequence[str]], datetime | float]  # the texts of the time columns to a time

SPARSEST = 10  # a grid on which fewer than one row in so many is there is none
COMPACT_DATE = re.compile(r"(?:1[6-9]|2[0-2])\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
MONTH = re.compile(r"\d{4}-\d\d")
PARTS = ("year", "month", "day", "hour", "minute", "second")


def find_clock(rows: Sequence[Sequence[str]], format: str, file: str, notes: list[str]) -> Clock:
    """How times are written: as `format` says, as the first one shows, or as most of them do."""
    if format == "auto":
        try:
            return detect_clock(rows[0])
        except ValueError:
            texts = [" ".join(row) for row in rows]
            if not (format := detect_format(texts, file)):
                raise
            notes.append(f"{file}: times are read as {format}, as in {texts[0]} (data.time_format)")
    return partial(_parse_format, format)


def _parse_format(format: str, texts: Sequence[str]) -> datetime:
    text = " ".join(texts)
    try:
        time = datetime.strptime(text, format)
        return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    except OverflowError:
        raise ValueError("it is beyond the calendar") from None
    except ValueError:
        raise ValueError(f"times are written as {format}") from None


def detect_clock(texts: Sequence[str]) -> Clock:
    """How times are written, as the first one shows."""
    if len(texts) > 1:
        return _parse_parts if re.fullmatch(r"\d{1,4}(?:\.0)?", texts[0]) else _make_iso_parser(" ".join(texts))
    [text] = texts
    if not COMPACT_DATE.fullmatch(text):
        try:
            parse_number_time(texts)
            return parse_number_time
        except ValueError:
            pass
    return _make_iso_parser(text)


def parse_number_time(texts: Sequence[str]) -> float:
    """A time that is a plain number."""
    number = float(texts[0])
    if not math.isfinite(number) or "_" in texts[0]:
        raise ValueError("it is not a finite number")
    return number


def _parse_parts(texts: Sequence[str]) -> datetime:
    numbers = [int(text.removesuffix(".0")) for text in texts]
    if len(numbers) > len(PARTS):
        raise ValueError(f"at most {len(PARTS)} columns make a time: {', '.join(PARTS)}")
    numbers += [1] * (3 - len(numbers))
    try:
        return datetime(*numbers)  # type: ignore[arg-type]
    except OverflowError:
        raise ValueError("it is beyond the calendar") from None


def _make_iso_parser(first: str) -> Callable[[Sequence[str]], datetime]:
    """Times in ISO 8601, with an offset from UTC or without, as the first one is."""
    offset = _parse_iso(first).tzinfo is not None

    def moment(texts: Sequence[str]) -> datetime:
        time = _parse_iso(" ".join(texts))
        if (time.tzinfo is not None) != offset:
            raise ValueError(f"the first time has {'an' if offset else 'no'} offset from UTC, and so must all")
        try:
            return time.astimezone(UTC).replace(tzinfo=None) if offset else time
        except OverflowError:
            raise ValueError("it is beyond the calendar") from None

    return moment


def _parse_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text + "-01" if MONTH.fullmatch(text) else text)
    except ValueError:
        raise ValueError(
            "dates are written as 2013-01-31 or 2013-01-31 23:59:00; data.time_format says others"
        ) from None


def find_grid(times: Times) -> tuple[npt.NDArray[np.int64], Times, str]:
    """Where each row stands on the grid of equal steps, the grid's times, and the step; no step if there is no grid."""
    if len(times) < 2:
        return np.arange(len(times)), times, ""
    for numbers, unit in _count_times(times):
        with np.errstate(all="ignore"):  # numbers at the ends of what a float can hold lie on no grid
            sizes, counts = np.unique(np.diff(numbers), return_counts=True)
            step = sizes[np.argmax(counts)]
            places = (numbers - numbers[0]) / step
            whole = np.rint(places)
            off = np.abs(places - whole).max()
        rows = whole[-1] + 1
        if off < 1e-6 and rows <= SPARSEST * len(times):
            return whole.astype(np.int64), place_on_grid(times, int(rows), step, unit), f"{step} {unit}".strip()
    return np.arange(len(times)), times, ""


def _count_times(times: Times) -> Iterator[tuple[npt.NDArray[np.int64] | Doubles, str]]:
    """Times as numbers in which steps may be equal: milliseconds, or months where every day and clock is the same."""
    if times.dtype.kind == "f":
        yield times.astype(np.float64), ""
        return
    yield times.astype("datetime64[ms]").astype(np.int64), "ms"
    months = times.astype("datetime64[M]")
    if len(np.unique(times - months)) == 1 and (np.diff(months.astype(np.int64)) > 0).all():
        yield months.astype(np.int64), "months"


def place_on_grid(times: Times, rows: int, step: int | float, unit: str) -> Times:
    if unit == "":
        return times[0] + np.arange(rows) * step
    if unit == "ms":
        return times[0] + (np.arange(rows) * int(step)).astype("timedelta64[ms]")
    months = times[0].astype("datetime64[M]")
    within = times[0] - months
    return (months + (np.arange(rows) * int(step)).astype("timedelta64[M]")).astype("datetime64[ms]") + within


def format_following_times(last: Times, step: str, rows: int) -> list[str]:
    """When the rows after the last one (1,) are, as a person writes it; how many steps ahead where no step is known."""
    size, _, unit = step.partition(" ")
    if not size:
        return [f"+{number}" for number in range(1, rows + 1)]
    steps = place_on_grid(last, rows + 1, float(size) if unit == "" else int(size), unit)[1:]
    return format_times(steps)


def format_times(times: Times) -> list[str]:
    """Times as a person writes them: dates alone where all are whole days."""
    if times.dtype.kind != "M":
        return [f"{number:g}" for number in times.tolist()]
    whole_days = bool((times == times.astype("datetime64[D]")).all())
    return [text.replace("T", " ") for text in np.datetime_as_string(times, "D" if whole_days else "s").tolist()]
