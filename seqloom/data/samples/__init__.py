"""The samples built into seqloom: data for a first training, made on the spot, nothing downloaded.

A sample is a function that gives examples by split, the same ones every time: tuples with one value a side of its task.
Samples know no tokens, no recipe and no network. What a sample is made from may need the extra `samples`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seqloom.data.formats.series import Series
from seqloom.data.samples.code import tokens
from seqloom.data.samples.dates import dates
from seqloom.data.samples.digits import digits
from seqloom.data.samples.film import film
from seqloom.data.samples.manual import manual
from seqloom.data.samples.names import names
from seqloom.data.samples.recall import recall
from seqloom.data.samples.series import ball, co2, sensors
from seqloom.data.samples.shapes import shapes
from seqloom.data.samples.tones import tones
from seqloom.data.samples.tunes import tunes

SAMPLES: dict[str, Callable[[], Mapping[str, Sequence[tuple[Any, ...]]]]] = {
    "dates": dates,
    "names": names,
    "tokens": tokens,
    "shapes": shapes,
    "digits": digits,
    "manual": manual,
    "tunes": tunes,
    "recall": recall,
    "film": film,
    "tones": tones,
}
# Whole series, which are parted in time by whoever reads them.
SERIES: dict[str, Callable[[], list[Series]]] = {"co2": co2, "sensors": sensors, "ball": ball}
