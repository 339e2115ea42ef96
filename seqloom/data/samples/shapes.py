"""Small drawings of shapes and what is on them, in a few words: a sample for captions."""

import random

import numpy as np
from numpy.typing import NDArray

from ...arrays import Bytes

SIDE = 24
COLORS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 80, 230), "yellow": (230, 210, 40)}
SHAPES = ("square", "disc", "cross", "ring")
SIZES = {"small": 4, "large": 8}
PLACES = ("left of", "above")
COUNTS = {"train": 4000, "validation": 300, "test": 300}
SEED = 1915  # the year of a famous black square


def shapes() -> dict[str, list[tuple[Bytes, str]]]:
    """Pairs of (image, caption) by split; no caption of the validation or test part is one of the training part."""
    chance = random.Random(SEED)
    parts: dict[str, list[tuple[Bytes, str]]] = {part: [] for part in COUNTS}
    while any(len(parts[part]) < count for part, count in COUNTS.items()):
        first, second = _draw_thing(chance), _draw_thing(chance)
        place = chance.choice(PLACES)
        caption = f"a {' '.join(first)} is {place} a {' '.join(second)}"
        part = _choose_part(caption)
        if len(parts[part]) < COUNTS[part]:
            parts[part].append((_paint(first, second, place, chance), caption))
    return parts


def _choose_part(caption: str) -> str:
    """Which part a caption belongs to: always the same one."""
    number = random.Random(caption).random()
    return "validation" if number < 0.1 else "test" if number < 0.2 else "train"


def _draw_thing(chance: random.Random) -> tuple[str, str, str]:
    return chance.choice(list(SIZES)), chance.choice(list(COLORS)), chance.choice(SHAPES)


def _paint(first: tuple[str, ...], second: tuple[str, ...], place: str, chance: random.Random) -> Bytes:
    """Two things on a gray ground, a little noisy: each in its half, nearly in line, so that one caption is right."""
    noise = np.random.default_rng(chance.getrandbits(32))
    image = noise.integers(100, 140, (SIDE, SIDE, 3)).astype(np.uint8)
    middle = 2 * chance.randint(3, SIDE // 2 - 4)
    for number, (size, color, shape) in enumerate((first, second)):
        reach = SIZES[size]
        along = 5 + 2 * chance.randint(0, 1) + number * SIDE // 2
        across = middle + 2 * chance.randint(-1, 1)
        row, column = (along, across) if place == "above" else (across, along)
        image[_make_mask(shape, reach, row, column)] = COLORS[color]
    return image[None]


def _make_mask(shape: str, reach: int, row: int, column: int) -> NDArray[np.bool_]:
    rows, columns = np.ogrid[:SIDE, :SIDE]
    down, right = np.abs(rows - row), np.abs(columns - column)
    half = reach / 2
    distance = np.sqrt(down**2 + right**2)
    masks = {
        "square": (down <= half) & (right <= half),
        "disc": distance <= half + 0.3,
        "cross": ((down <= half) & (right < 1)) | ((right <= half) & (down < 1)),
        "ring": (distance <= half + 0.5) & (distance >= half - 1),
    }
    return masks[shape]
