"""Recall at a distance: a letter, then noise, then a question about the letter. A sample that shows how long a model
remembers, because the distance at which its answers fail is known.
"""

import random
from collections.abc import Sequence

LAGS = (4, 6, 8, 12, 16, 24, 32, 48)  # neighbours differ by a factor of 1.5 at most
LETTERS = "ABCDEFGH"  # what is asked for
NOISE = "abcdefgh"  # what stands around it
QUESTION = "?"
SIZES = {"train": 4000, "validation": 400, "test": 400}
SEED = 1997


def recall() -> dict[str, list[tuple[str, str]]]:
    """Pairs of (text, letter) by split, every distance as often as the others."""
    return {part: recalled(LAGS, rows, SEED + number) for number, (part, rows) in enumerate(SIZES.items())}


def recalled(lags: Sequence[int], rows: int, seed: int, length: int = 0) -> list[tuple[str, str]]:
    """Texts of one length with one capital in each, so many steps before the question at the end, and the capital.

    The shortest that holds all distances is taken, unless a `length` is given.
    """
    chance = random.Random(seed)
    length = length or max(lags) + 1
    pairs = []
    for row in range(rows):
        text = [*chance.choices(NOISE, k=length - 1), QUESTION]
        letter = chance.choice(LETTERS)
        text[-1 - lags[row % len(lags)]] = letter
        pairs.append(("".join(text), letter))
    chance.shuffle(pairs)
    return pairs
