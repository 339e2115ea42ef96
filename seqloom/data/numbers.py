"""Numbers as files have them: which are read, which stand for a gap, which are too far off to be scaled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import DataError

MISSING = frozenset(("", "?", "na", "nan", "null", "none"))
LARGEST = 1e35  # of a number that is read: single precision ends at 3.4e38, and sums have to fit as well
FARTHEST = 1e15  # spreads from the mean of training: what is farther off has no square in single precision


def check_near(values: NDArray[Any], mean: Any, spread: Any) -> None:
    """Refuse numbers that cannot be brought onto the scale of training; NaN stands for a gap and is none of them."""
    with np.errstate(over="ignore"):
        far = np.abs(values - mean) / spread > FARTHEST
    if far.any():
        raise DataError(
            f"the number {values[far].flat[0]:g} is more than {FARTHEST:.0e} times as far from the mean of training as "
            "numbers there usually are: it cannot be brought onto their scale"
        )


def parse_number_or_gap(text: str) -> float:
    """The number that a text is, NaN where it says that there is none; ValueError for anything else."""
    if text.strip().lower() in MISSING:
        return float("nan")
    number = float(text)
    if not abs(number) <= LARGEST:
        raise ValueError
    return number


def explain_no_number(text: str) -> str:
    """What was expected in place of a text that `number_or_gap` refuses."""
    try:
        large = LARGEST < abs(float(text)) < float("inf")
    except ValueError:
        large = False
    return f"a number of at most {LARGEST:.0e} was expected" if large else "a number was expected"
