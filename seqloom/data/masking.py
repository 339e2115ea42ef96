"""Masked language modeling (Devlin et al., 2019): which tokens of a text are to be predicted, and what is read there.

A draw is a function of the seed and its place alone, so that training can be taken up anywhere. Knows no network.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.vocabulary import END, PAD, SPECIALS

MASK = PAD  # padding is never read, so its number is free to stand for what is hidden
HIDDEN, CHANGED = 0.8, 0.1  # of the tokens to predict; the others are read as they are

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


def draw_masks(
    ids: Ids, begins_word: Flags | None, symbols: int, share: float, chance: np.random.Generator
) -> tuple[Ids, Flags]:
    """What is read of a text (T,), and where it is to be predicted: each token with the chance `share`, or all tokens
    of a word with that chance, where it is said which tokens begin one. The end of a document is always seen."""
    draws = chance.random((2, len(ids)))
    others = chance.integers(len(SPECIALS), max(symbols, len(SPECIALS) + 1), len(ids))
    chosen = draws[0] < share
    if begins_word is not None:
        starts = begins_word[ids] | (ids == END)
        starts |= np.concatenate([[True], ids[:-1] == END])[: len(ids)]
        chosen = chosen[np.maximum.accumulate(np.where(starts, np.arange(len(ids)), 0))]
    chosen = chosen & (ids != END)
    read = np.where(draws[1] < HIDDEN, MASK, np.where(draws[1] < HIDDEN + CHANGED, others, ids))
    return np.where(chosen, read, ids), chosen


def draw_for(*place: Any) -> np.random.Generator:
    """A random generator seeded by these numbers alone."""
    return np.random.default_rng([int(number) for number in place])
