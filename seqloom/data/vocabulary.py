"""Symbols and their numbers: four special ones, then the learned ones, the most frequent first.

Knows nothing of texts or how they are cut into symbols; that is `tokenizers`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from seqloom.errors import RunError
from seqloom.schemas import MOST_SYMBOLS

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>")
NEVER_WRITTEN = (PAD, START)  # they stand around texts, never in one: whatever writes gives them no probability


class Vocabulary:
    """Symbols by number and numbers by symbol."""

    def __init__(self, symbols: Iterable[str]) -> None:
        """`symbols` begin with the four special ones, and none comes twice."""
        self.symbols = tuple(symbols)
        self.numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        assert self.symbols[: len(SPECIALS)] == SPECIALS and len(self.numbers) == len(self.symbols)

    @classmethod
    def learn(cls, counts: Mapping[str, int], max_size: int = 0, min_count: int = 1) -> "Vocabulary":
        """The symbols counted at least `min_count` times, the `max_size` most frequent of them (0: all).

        Sorted by frequency, then by symbol; the special symbols come on top of `max_size`.
        """
        symbols = [symbol for symbol, count in counts.items() if count >= min_count and symbol not in SPECIALS]
        symbols.sort(key=lambda symbol: (-counts[symbol], symbol))
        return cls(SPECIALS + tuple(symbols[: max_size or None]))

    @classmethod
    def read(cls, symbols: object) -> "Vocabulary":
        """The vocabulary of a list that came from a file; RunError if it is not one."""
        checked = check_symbols(symbols)
        if checked[: len(SPECIALS)] != list(SPECIALS):
            raise RunError(f"the vocabulary does not begin with the special symbols {' '.join(SPECIALS)}")
        return cls(checked)

    def __len__(self) -> int:
        return len(self.symbols)


def check_symbols(symbols: Any) -> list[str]:
    """The list of distinct, non-empty texts that `symbols` must be; RunError if it is something else."""
    if not isinstance(symbols, list):
        raise RunError(f"the vocabulary is not a list of symbols but of type {type(symbols).__name__}")
    if len(symbols) > MOST_SYMBOLS:
        raise RunError(f"the vocabulary has {len(symbols):,} symbols, more than the {MOST_SYMBOLS:,} that are read")
    seen: set[str] = set()
    for number, symbol in enumerate(symbols):
        if not isinstance(symbol, str) or not symbol or not _is_unicode(symbol):
            raise RunError(f"symbol {number} of the vocabulary is not a text: {symbol!r:.50}")
        if symbol in seen:
            raise RunError(f"symbol {number} of the vocabulary comes twice: {symbol!r:.50}")
        seen.add(symbol)
    return symbols


def _is_unicode(text: str) -> bool:
    """Whether `text` can be written as UTF-8; half a surrogate pair, which JSON can smuggle in, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
