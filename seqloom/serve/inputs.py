"""Inputs as they come in JSON."""

from typing import Any

import numpy as np

from ..errors import DataError


def read_input(given: Any, reads_text: bool) -> Any:
    """A text, a text with its tag, or nested lists of numbers, where null is a gap.

    A run that reads numbers or images takes a text for the name of a file, so none gets that far.
    """
    pair = isinstance(given, list) and len(given) == 2 and all(isinstance(one, str) for one in given)
    if not reads_text and (isinstance(given, str) or pair):
        raise DataError("an input is a text, but this run reads numbers: nested lists of them, where null is a gap")
    if isinstance(given, str):
        return given
    if pair:
        return tuple(given)
    if reads_text:
        raise DataError(f"an input is of type {type(given).__name__}, but this run reads text")
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("an input is neither a text nor an array of numbers: its rows differ in length") from None


def format_input(given: Any) -> str:
    """An input as it is told again: its text, without a tag; numbers have none."""
    while isinstance(given, list) and given:
        given = given[0]
    return given if isinstance(given, str) else ""
