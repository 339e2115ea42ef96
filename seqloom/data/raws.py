"""What one side of an example, or an input, must be like before a codec reads it: a text, numbers, an image, frames."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.arguments import described, no_text
from seqloom.data.codec import Raw
from seqloom.data.formats.chorales import HIGHEST, LOWEST
from seqloom.data.numbers import LARGEST

KEYS = HIGHEST - LOWEST + 1


def fault_of(raw: Raw, kind: str) -> str:
    """What is wrong with it for a codec of this kind, as the end of a sentence; nothing if it will do."""
    return FAULTS.get(kind, no_text)(raw)


def as_array(raw: Raw) -> NDArray[Any] | None:
    """The array of numbers that something is, with gaps where there is None; None if it is none at all."""
    kind = raw.dtype.kind if isinstance(raw, np.ndarray) else "O"
    if isinstance(raw, str | bytes) or kind not in "biufO":
        return None
    try:
        array = np.asarray(raw, np.float64 if kind == "O" else None)
    except (TypeError, ValueError):  # lists of unequal lengths, for one
        return None
    return array if array.size else None


def no_numbers(raw: Raw) -> str:
    array = as_array(raw)
    if array is None or array.ndim not in (1, 2):
        return f"is {described(raw)}, but an array of numbers was expected: steps × variables"
    if (large := np.abs(array) > LARGEST).any():
        return f"holds the number {array[large][0]:g}, but numbers are read up to {LARGEST:.0e}"
    return ""


def no_image(raw: Raw) -> str:
    array = as_array(raw)
    if array is None or array.ndim not in (3, 4) or (array.ndim == 4 and len(array) != 1):
        return f"is {described(raw)}, but an image was expected: an array of height × width × channels"
    if not ((array >= 0) & (array <= 255)).all():
        return "is an array with values that are no bytes, but an image was expected, from 0 to 255"
    return ""


def no_frames(raw: Raw) -> str:
    array = as_array(raw)
    if array is None or array.ndim != 2 or array.shape[1] != KEYS or not np.isin(array, (0, 1)).all():
        return f"is {described(raw)}, but frames were expected: an array of steps × {KEYS} keys, 1 where one sounds"
    return ""


FAULTS: dict[str, Callable[[Raw], str]] = {
    **{"numbers": no_numbers, "image": no_image, "mosaic": no_image, "frames": no_frames},
}
