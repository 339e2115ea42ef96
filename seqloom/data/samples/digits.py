"""Small handwritten digits with their names: a sample for drawing. They come with scikit-learn (Alpaydın, 1998)."""

import random

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import MissingExtra

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
COUNTS = {"validation": 150, "test": 300}
SEED = 1998


def digits() -> dict[str, list[tuple[NDArray[np.uint8], str]]]:
    """Pairs of (image, name) by split; an image is 8 × 8 pixels of gray."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("scikit-learn", "samples") from None
    images, labels = load_digits(return_X_y=True)
    gray = (images * 255 / 16).round().astype(np.uint8).reshape(-1, 1, 8, 8, 1)
    pairs = [(image, NAMES[label]) for image, label in zip(gray, labels.tolist(), strict=True)]
    random.Random(SEED).shuffle(pairs)
    ends = (COUNTS["validation"], sum(COUNTS.values()))
    return {"train": pairs[ends[1] :], "validation": pairs[: ends[0]], "test": pairs[ends[0] : ends[1]]}
