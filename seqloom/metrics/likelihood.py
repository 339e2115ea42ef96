"""How much a model is surprised: perplexity and bits per character, from sums of negative log-likelihood.

A perplexity is a number per something, and which something is part of the number: the same model has one perplexity a
subword and another a word. This file knows sums and counts, in nats; who computed them is not its business.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles
from .score import Score, ratio, score_sums

Unit = Literal["token", "word", "subword", "character", "step", "square"]


def perplexity(losses: ArrayLike, counts: ArrayLike, unit: Unit, *, intervals: bool = True) -> Score:
    """exp(mean negative log-likelihood a unit), from its sum (N,) and the number of units (N,) of each document.

    The sum is over everything the model had to predict (also the end of a text, if it is predicted), the count is of
    what the sum is shared out to: words for a word perplexity, even if the model writes subwords.
    """
    scale = f"at a {unit} as unsure as an even guess among so many; 1 is perfect"
    return score_sums(
        _make_table(losses, counts), lambda sums: np.exp(ratio(sums)), "lower", scale, intervals=intervals
    )


def nats(losses: ArrayLike, counts: ArrayLike, unit: Unit, *, intervals: bool = True) -> Score:
    """Mean negative log-likelihood a unit, in nats."""
    scale = f"how surprising a {unit} is, in nats (1 nat is 1.44 bits); 0 is perfect"
    return score_sums(_make_table(losses, counts), ratio, "lower", scale, intervals=intervals)


def bits_per_character(losses: ArrayLike, characters: ArrayLike, *, intervals: bool = True) -> Score:
    """Mean negative log-likelihood a character, in bits, whatever the model's own tokens are."""
    table = _make_table(losses, characters)
    table[:, 0] /= np.log(2)
    return score_sums(table, ratio, "lower", "bits a character; 0 is perfect", intervals=intervals)


def blocks(losses: ArrayLike, size: int = 1000) -> tuple[Doubles, Doubles]:
    """Sums and counts of the blocks of one long text, to resample it by: losses a token (T,) → (N,), (N,)."""
    values = np.asarray(losses, dtype=np.float64)
    starts = np.arange(0, len(values), size)
    return np.add.reduceat(values, starts), np.diff(np.append(starts, len(values))).astype(np.float64)


def _make_table(losses: ArrayLike, counts: ArrayLike) -> Doubles:
    sums, shares = np.asarray(losses, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    assert sums.shape == shares.shape and sums.ndim == 1, "one sum and one count a document"
    return np.stack([sums, shares], 1)
