"""Inputs as they come in JSON."""

from typing import Any

import numpy as np

from ..errors import DataError


def read_input(raw: Any, reads_text: bool) -> Any:
    """A text, a text with its tag, or nested lists of numbers, where null is a gap.

    A run that reads numbers or images takes a text for the name of a file, so none gets that far.
    """
    pair = isinstance(raw, list) and len(raw) == 2 and all(isinstance(one, str) for one in raw)
    if not reads_text and (isinstance(raw, str) or pair):
        raise DataError("an input is a text, but this run reads numbers: nested lists of them, where null is a gap")
    if isinstance(raw, str):
        return raw
    if pair:
        return tuple(raw)
    if reads_text:
        raise DataError(f"an input is of type {type(raw).__name__}, but this run reads text")
    try:
        return np.asarray(raw, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("an input is neither a text nor an array of numbers: its rows differ in length") from None


def format_input(raw: Any) -> str:
    """An input as it is told again: its text, without a tag; numbers have none."""
    while isinstance(raw, list) and raw:
        raw = raw[0]
    return raw if isinstance(raw, str) else ""
