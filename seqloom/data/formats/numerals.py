"""Numbers as people write them: with a decimal point or a decimal comma, in groups of three digits or without.

Whether 1,234 is a thousand or one and a bit cannot be seen from the cell, so it is looked for in others, and refused
with both readings where none of them tells.
"""

import re
from collections.abc import Iterable

from seqloom.errors import DataError

DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
GROUPS = {mark: re.compile(rf"[-+]?\d{{1,3}}(?:[{mark}]\d{{3}})+") for mark in ",."}
GROUPED_COMMA = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+,\d+")  # 1.234,5
MARKS = {"comma": ",", "point": "."}


def detect_decimal(cells: Iterable[str], file: str) -> str:
    """`comma` if numbers among these cells have one before their fraction, else `auto`: as Python reads them."""
    ambiguous = ""
    for cell in cells:
        text = cell.strip()
        if "," not in text:
            continue
        if GROUPED_COMMA.fullmatch(text) or DECIMAL_COMMA.fullmatch(text) and not GROUPS[","].fullmatch(text):
            return "comma"
        if GROUPS[","].fullmatch(text) and not text.lstrip("-+").startswith("0"):
            ambiguous = ambiguous or text
    if ambiguous:
        small, large = ambiguous.replace(",", "."), ambiguous.replace(",", "")
        sentence = f"{ambiguous!r} may be {small} or {large}"
        raise DataError(f"{sentence}: data.decimal=comma or data.decimal=point says which", file)
    return "auto"


def normalize(text: str, decimal: str) -> str:
    """The number as Python writes it; a text that is not a number stays none."""
    if decimal == "auto":
        return text
    text = text.strip()
    mark = MARKS[decimal]
    group = "." if mark == "," else ","
    whole, point, fraction = text.partition(mark)
    if GROUPS[group].fullmatch(whole):
        whole = whole.replace(group, "")
    elif group in whole:
        return text if mark == "." else f"{text} "  # 1.5 is not a number where a comma stands before the fraction
    return f"{whole}.{fraction}" if point else whole
