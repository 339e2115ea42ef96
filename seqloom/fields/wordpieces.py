"""Two more ways to cut texts into subwords through the library `tokenizers`: WordPiece, and a unigram model.

Both have the alphabet of bytes that `subwords` has, so every text can be written and comes back exactly. WordPiece
(Schuster and Nakajima, 2012) takes the longest subword each time; the mark in front of one that goes on within a word
is none of the names of bytes, so that it cannot be confused with what is in a text. The unigram model (Kudo, 2018)
takes the likeliest cut. What either learns depends on the texts alone: the library's own trainers break ties by chance.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.vocabulary import check_symbols
from ..errors import RecipeError, RunError
from .subwords import BYTE_OF, DEFAULT_SIZE, UNIT, BytePairs, Pieces, build_library, sample

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

ON = "￭"  # in front of a subword that goes on within a word
LONGEST_WORD = 100  # characters that are taken whole: the longest subword is looked for from the end of the word
ROUNDS = 3  # of counting and cutting anew, before and after every time that the rarest are left out
LEFT = 0.75  # of the subwords that are too many, after each time
RARELY = 0.1  # how often a subword that did not occur is taken to have occurred


class WordPieces(Pieces):
    kind = "wordpiece"
    longest = LONGEST_WORD

    def __init__(self, symbols: Sequence[str]) -> None:
        super().__init__(symbols, [symbol.removeprefix(ON) for symbol in symbols])

    @classmethod
    def learn(cls, texts: Iterable[str], max_size: int, min_count: int) -> "WordPieces":
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        alphabet = [*BYTE_OF, *(ON + name for name in BYTE_OF)]
        if 0 < max_size < len(alphabet):
            raise RecipeError(
                f"data.vocabulary_size is {max_size}, but wordpiece begins with two subwords a byte: "
                f"at least {len(alphabet)}"
            )
        trainer = trainers.WordPieceTrainer(
            vocab_size=max_size or DEFAULT_SIZE,
            min_frequency=max(2, min_count),
            special_tokens=alphabet,  # so that each has its number before anything is counted
            continuing_subword_prefix=ON,
            show_progress=False,
        )
        library = Tokenizer(models.WordPiece(unk_token=alphabet[0], continuing_subword_prefix=ON))
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.train_from_iterator(sample(texts), trainer)
        numbers = library.get_vocab()
        return cls(sorted(numbers, key=numbers.__getitem__))

    @classmethod
    def read(cls, symbols: object, stored: dict[str, Any]) -> "WordPieces":
        checked = check_symbols(symbols)
        bare = {symbol.removeprefix(ON) for symbol in checked}
        if any(not symbol or any(name not in BYTE_OF for name in symbol) for symbol in bare):
            raise RunError("the vocabulary has a subword that is not written in the names of bytes")
        if not set(checked).issuperset(name for byte in BYTE_OF for name in (byte, ON + byte)):
            raise RunError("the vocabulary of subwords lacks some of the 256 bytes, at the beginning or within a word")
        pieces = cls(checked)
        pieces._library  # noqa: B018  # built now, so that a fault shows here and not at the first text
        return pieces

    @cached_property
    def _library(self) -> "Library":
        from tokenizers import models

        def model() -> Any:
            numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
            return models.WordPiece(
                vocab=numbers,
                unk_token=self.symbols[0],
                max_input_chars_per_word=4 * LONGEST_WORD,  # of bytes
                continuing_subword_prefix=ON,
            )

        return build_library(model)


class Unigrams(Pieces):
    kind = "unigram"

    def __init__(self, symbols: Sequence[str], logs: Sequence[float]) -> None:
        super().__init__(symbols, symbols)
        self.logs = tuple(logs)  # the log-probability of each

    @classmethod
    def learn(cls, texts: Iterable[str], max_size: int, min_count: int) -> "Unigrams":
        """Twice as many as are wanted, as byte pairs have them; then the rarest are left out, a few at a time."""
        size = max_size or DEFAULT_SIZE
        if size < len(BYTE_OF):
            raise RecipeError(
                f"data.vocabulary_size is {max_size}, but unigram begins with one subword a byte: at "
                f"least {len(BYTE_OF)}"
            )
        kept = sample(texts)
        units = Counter(unit for piece in kept for unit in UNIT.findall(piece))
        known = BytePairs.learn(kept, 2 * size, min_count).symbols
        pieces = cls(known, [-1.0] * len(known))  # at first, the fewer the better
        while True:
            for _ in range(ROUNDS):
                counts = pieces._counts(units)
                pieces = cls(pieces.symbols, compute_logs(counts))
            if len(pieces.symbols) <= size:
                return pieces
            left = max(size, int(len(pieces.symbols) * LEFT))
            order = sorted(range(len(counts)), key=lambda n: (pieces.symbols[n] not in BYTE_OF, -counts[n], n))
            chosen = sorted(order[:left])
            pieces = cls([pieces.symbols[n] for n in chosen], compute_logs([counts[n] for n in chosen]))

    def _counts(self, units: Counter[str]) -> list[int]:
        """How often each subword occurs when every word is cut in its likeliest way."""
        ids, times = self.encode(units), np.fromiter(units.values(), np.int64, len(units))
        counts = np.bincount(ids.values, np.repeat(times, ids.lengths), len(self.symbols))
        return counts.astype(np.int64).tolist()

    @classmethod
    def read(cls, symbols: object, stored: dict[str, Any]) -> "Unigrams":
        checked, logs = check_symbols(symbols), stored.get("logs")
        if any(name not in BYTE_OF for symbol in checked for name in symbol):
            raise RunError("the vocabulary has a subword that is not written in the names of bytes")
        if not set(checked).issuperset(BYTE_OF):
            raise RunError("the vocabulary of subwords lacks some of the 256 bytes")
        if not isinstance(logs, list) or len(logs) != len(checked) or not all(map(_is_log, logs)):
            raise RunError("the subwords do not have a log-probability each, a number not above 0")
        pieces = cls(checked, logs)
        pieces._library  # noqa: B018
        return pieces

    def more(self) -> dict[str, Any]:
        return {"logs": list(self.logs)}

    @cached_property
    def _library(self) -> "Library":
        from tokenizers import models

        return build_library(lambda: models.Unigram(list(zip(self.symbols, self.logs, strict=True)), 0, False))


def compute_logs(counts: Sequence[int]) -> list[float]:
    total = math.log(sum(counts) + RARELY * len(counts))
    return [math.log(count + RARELY) - total for count in counts]


def _is_log(value: object) -> bool:
    return isinstance(value, float) and -1e6 < value <= 0
