"""A film of a ball that falls and bounces in a box, and the place where it will be in the next picture."""

import numpy as np
from numpy.typing import NDArray

from seqloom.arrays import Singles
from seqloom.data.samples.series import throw_ball

SIDE = 12  # pixels
SEEN = 8  # pictures
EVERY = 2  # pictures from the beginning of an example to that of the next
THROWS = {"train": 48, "validation": 6, "test": 6}  # no throw is in two parts
BALL = 0.06  # of the box: how far from its middle a ball shines


def film() -> dict[str, list[tuple[Singles, str]]]:
    """Eight pictures, a row of pixels each, and the column and the row of the pixel that the ball is in after them."""
    chance = np.random.Generator(np.random.PCG64(1687))
    return {
        part: [one for _ in range(throws) for one in cut(throw_ball(150, chance))] for part, throws in THROWS.items()
    }


def cut(path: NDArray[np.float64]) -> list[tuple[Singles, str]]:
    """The examples of one throw, whose places (rows, 2) are between 0 and 1."""
    pictures = draw(path)
    starts = range(0, len(path) - SEEN, EVERY)
    return [(pictures[start : start + SEEN], name_pixel(path[start + SEEN])) for start in starts]


def draw(path: NDArray[np.float64]) -> Singles:
    """A picture of each place, (rows, pixels), row by row from below."""
    middle = (np.arange(SIDE) + 0.5) / SIDE
    x, y = (np.exp(-((middle - path[:, axis, None]) ** 2) / (2 * BALL**2)) for axis in (0, 1))
    return (y[:, :, None] * x[:, None, :]).reshape(len(path), -1).astype(np.float32)


def name_pixel(place: NDArray[np.float64]) -> str:
    column, row = np.clip((place * SIDE).astype(int), 0, SIDE - 1).tolist()
    return f"{column} {row}"
