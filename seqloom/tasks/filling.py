"""Blanks in a text, and the words that fill them, ranked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise
from math import exp
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data.masking import MASK
from ..data.vocabulary import SPECIALS
from ..errors import DataError
from ..fields import Prediction, Text

BLANK = re.compile(r"_{2,}|\[MASK\]|<mask>")


@dataclass(frozen=True)
class FilledBlank(Prediction):
    """A word for a blank."""

    probability: float


class Blanks(NamedTuple):
    """A text with blanks as numbers."""

    ids: NDArray[np.int64]
    hidden: NDArray[np.bool_]  # where a blank is
    sizes: list[int]  # tokens of each blank
    spaced: list[bool]  # whether a new word begins with it


def encode_blanks(field: Text, text: str) -> Blanks:
    """A word with its blank before it is one token or more: where the text is cut so, a blank takes in the white space
    before it. A blank of characters has as many of them as it is written with."""
    pieces, marks = BLANK.split(text), BLANK.findall(text)
    if not marks:
        raise DataError(f"there is no blank in {text[:60]!r}: two or more underscores are one, as in 'the ___ sat'")
    ids: list[int] = []
    hidden: list[bool] = []
    sizes, spaced = [], []
    letters = field.unit == "character"
    for number, piece in enumerate(pieces):
        if number:
            sizes.append(len(marks[number - 1]) if letters else 1)
            ids += [MASK] * sizes[-1]
            hidden += [True] * sizes[-1]
        if number < len(marks):
            first = number == 0 and not piece.strip()  # there a word is cut without white space
            spaced.append(field.unit == "word" if first else piece[-1:].isspace())
            piece = piece if letters else piece.rstrip()
        read = field.encode_part(piece).tolist() if piece else []
        ids += read
        hidden += [False] * len(read)
    return Blanks(np.array(ids, dtype=np.int64), np.array(hidden), sizes, spaced)


def fill_blanks(field: Text, blanks: Blanks, logs: Tensor, count: int) -> list[list[FilledBlank]]:
    """The likeliest words for each blank; `logs` (hidden tokens, symbols) are log-probabilities. Their probabilities
    are among the words that can stand there: those that begin as the text before the blank asks for."""
    starts, letters = field.begins_word(), field.unit == "character"
    marked = torch.tensor([letters or bool(field.decode([number]).strip()) for number in range(len(field))])
    ends = np.cumsum([0, *blanks.sizes]).tolist()
    candidates = []
    for spaced, (first, last) in zip(blanks.spaced, pairwise(ends), strict=True):
        allowed = marked.clone()  # white space alone is no word
        allowed[: len(SPECIALS)] = False
        if starts is not None:
            fitting = allowed & torch.from_numpy(starts == spaced)
            allowed = fitting if fitting.any() else allowed
        part = logs[first:last].masked_fill(~allowed, -torch.inf).log_softmax(-1)
        candidates.append(rank(field, part, count))
    return candidates


def rank(field: Text, logs: Tensor, count: int) -> list[FilledBlank]:
    """The likeliest sequences of tokens, as if the tokens of a blank did not depend on one another."""
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    for row in logs:
        values, tokens = row.topk(min(count, len(row)))
        grown = [
            (score + log, [*ids, token])
            for score, ids in best
            for log, token in zip(values.tolist(), tokens.tolist(), strict=True)
            if log > float("-inf")
        ]
        best = nlargest(count, grown, key=lambda pair: pair[0])
    letters = field.unit == "character"
    words = [(score, field.decode(ids)) for score, ids in best]
    return [FilledBlank(word if letters else word.strip(), score, exp(score)) for score, word in words]


def join_filled(text: str, filled: Sequence[Sequence[FilledBlank]], count: int) -> list[Prediction]:
    """The whole text with its blanks filled in the likeliest ways; the score is the sum of their log-probabilities."""
    pieces = BLANK.split(text)
    best: list[tuple[float, list[str]]] = [(0.0, [])]
    for words in filled:
        grown = [(score + word.score, [*before, word.output]) for score, before in best for word in words]
        best = nlargest(count, grown, key=lambda pair: pair[0])
    return [
        Prediction("".join(part for pair in zip(pieces, [*words, ""], strict=True) for part in pair), score)
        for score, words in best
    ]
