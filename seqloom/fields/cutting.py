"""Cutting texts into words and characters, counting them, and showing them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .id_table import MOST_UNITS
from .subwords import PIECE, pieces, split_batches

JOINER = "￭"  # in front of a token that follows the one before it without white space
WORD = re.compile(r"\w+|[^\w\s]")  # every character that is not white space is in exactly one match
WORD_OR_BREAK = re.compile(r"\n|\S+")
MOST_COUNTED = 1 << 22  # different tokens in memory while counting
CODE_POINTS = 0x110000
VISIBLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


@dataclass(frozen=True)
class Cut:
    """How a text is cut into words."""

    spaced: bool = False  # at blanks alone; else punctuation marks are tokens too
    breaks: bool = False  # whether a line break is a token

    def units(self, text: str) -> list[str]:
        """What stands between blanks, and the line breaks if they count."""
        return WORD_OR_BREAK.findall(text) if self.breaks else text.split()

    def tokens(self, unit: str) -> Iterable[str]:
        return (unit,) if self.spaced or unit == "\n" else parts(unit)

    def is_joined(self, token: str) -> bool:
        """Whether no blank stands before `token`. A joiner alone is one that stood in the text."""
        return not self.spaced and len(token) > 1 and token[0] == JOINER


def parts(unit: str) -> Iterable[str]:
    """The tokens of what stands between two blanks: the first as it is, the others with the joiner."""
    if len(unit) > PIECE:
        return _parts_of_long(unit)
    if unit.isalnum():  # most are one word
        return (unit,)
    first, *others = WORD.findall(unit)
    return first, *[JOINER + token for token in others]


def _parts_of_long(unit: str) -> Iterator[str]:
    """The same in little memory; a word is cut where it is longer than any word, and the joiner remembers it."""
    tokens = (token for piece in pieces(unit, PIECE) for token in WORD.findall(piece))
    yield next(tokens)
    for token in tokens:
        yield JOINER + token


def show_invisible(text: str) -> str:
    """`text` with everything in it that leaves no mark on paper made visible."""
    shown = text.translate(VISIBLE)
    return shown if shown.isprintable() else "".join(map(_escape, shown))


def _escape(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


def code_points(texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.uint32]]":
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")


def count_characters(texts: Iterable[str]) -> dict[str, int]:
    counts = np.zeros(CODE_POINTS, dtype=np.int64)
    for batch in split_batches(texts):
        counts += np.bincount(code_points(batch), minlength=CODE_POINTS)
    return {chr(code): int(counts[code]) for code in np.flatnonzero(counts)}


def count_words(texts: Iterable[str], cut: Cut) -> Counter[str]:
    """How often each token of `Words` occurs.

    Of more than MOST_COUNTED different ones, those seen once so far are forgotten, which bounds the memory; a
    vocabulary of millions cannot be trained, so nobody misses them.
    """
    tokens: Counter[str] = Counter()
    words: Counter[str] = Counter()  # between blanks: far fewer to cut up than if every text were
    for text in texts:
        words.update(cut.units(text))
        if len(words) >= MOST_UNITS:
            count_parts(words, tokens, cut)
    count_parts(words, tokens, cut)
    return tokens


def count_parts(words: Counter[str], tokens: Counter[str], cut: Cut) -> None:
    """Empty `words` into `tokens`."""
    for word, times in words.items():
        for token in cut.tokens(word):
            tokens[token] += times
    words.clear()
    while len(tokens) > MOST_COUNTED:
        least = min(tokens.values())
        for token in [token for token, times in tokens.items() if times == least]:
            del tokens[token]
