"""Masks of a text: their statistics against the formula, whole words, and what a draw depends on."""

import numpy as np
import pytest

from seqloom.data.masking import MASK, draw_for, draw_masks
from seqloom.data.vocabulary import END, SPECIALS

SYMBOLS = 50


def text(length: int = 60_000) -> np.ndarray:
    ids = np.random.default_rng(0).integers(len(SPECIALS), SYMBOLS, length)
    ids[::97] = END
    return ids


def chi_squared(counts: np.ndarray, shares: np.ndarray) -> float:
    expected = shares * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_shares_are_those_of_the_formula(share):
    """Hidden, changed, kept and not chosen, each as often as it should be; the draw is fixed, the bound is p < 0.001.
    A token that is changed is any of the 46 with the same chance, its own among them, so that it seems kept."""
    ids = text()
    inputs, chosen = draw_masks(ids, None, SYMBOLS, share, draw_for(1, 2, 3))
    ordinary, own = ids != END, 1 / (SYMBOLS - len(SPECIALS))
    hidden, same = inputs == MASK, inputs == ids
    counts = np.array(
        [(hidden & chosen).sum(), (~hidden & ~same).sum(), (same & chosen).sum(), (~chosen & ordinary).sum()]
    )
    shares = np.array([0.8 * share, 0.1 * share * (1 - own), 0.1 * share * (1 + own), 1 - share])
    assert chi_squared(counts, shares) < 16.27  # three degrees of freedom
    changed = inputs[~hidden & ~same]
    drawn = np.bincount(changed, minlength=SYMBOLS)[len(SPECIALS) :]
    assert chi_squared(drawn, np.full(len(drawn), 1 / len(drawn))) < 80.1  # 45 degrees of freedom
    assert (inputs[~chosen] == ids[~chosen]).all() and not chosen[~ordinary].any()


def test_the_tokens_of_a_word_are_chosen_together():
    ids, begins = text(20_000), np.arange(SYMBOLS) % 3 == 0
    _, chosen = draw_masks(ids, begins, SYMBOLS, 0.3, draw_for(0))
    inside = ~begins[ids] & (ids != END)
    inside[0] = False
    inside[1:] &= ids[:-1] != END
    assert (chosen[1:] == chosen[:-1])[inside[1:]].all()
    words = (begins[ids] | np.concatenate([[True], ids[:-1] == END])) & (ids != END)
    share = chosen[words].mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / words.sum())


def test_a_draw_depends_on_its_place_alone():
    ids = text(200)
    first = draw_masks(ids, None, SYMBOLS, 0.3, draw_for(0, 1, 2))
    np.random.random(7)
    again = draw_masks(ids, None, SYMBOLS, 0.3, draw_for(0, 1, 2))
    other = draw_masks(ids, None, SYMBOLS, 0.3, draw_for(0, 2, 2))
    assert (first[0] == again[0]).all() and (first[1] == again[1]).all()
    assert (first[1] != other[1]).any()
