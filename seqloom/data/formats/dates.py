"""Dates as people write them beside ISO 8601: the format that fits all of them, or both where two do."""

from collections.abc import Sequence
from datetime import datetime
from itertools import product

from seqloom.errors import DataError

DATES = (
    *(f"%{a}{mark}%{b}{mark}%{y}" for mark in "/-" for a, b in ("dm", "md") for y in "Yy"),
    *("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d/%b/%Y"),
)
CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S.%f")
FORMATS = tuple(date + clock for date, clock in product(DATES, CLOCKS))


def detect_format(texts: Sequence[str], file: str) -> str:
    """The format of the first text that fits most of the others, too; nothing if it has none of those known here.

    A bad row is a bad row whatever the format, so a text that none of the formats fits decides nothing.
    """
    likely = [format for format in FORMATS if matches(texts[0], format)]
    for text in texts[1:]:
        if len(likely) < 2:
            break
        likely = [format for format in likely if matches(text, format)] or likely
    for text in texts if len(likely) > 1 else ():
        readings = {datetime.strptime(text, format): format for format in likely if matches(text, format)}
        if len(readings) > 1:
            both = " or ".join(f"{time:%d %B %Y} ({format})" for time, format in readings.items())
            raise DataError(f"the time {text!r} may be {both}: data.time_format says which", file)
    return likely[0] if likely else ""


def matches(text: str, format: str) -> bool:
    try:
        return bool(datetime.strptime(text, format))
    except ValueError:
        return False
