"""Between texts and numbers: characters, words or subwords, learned from texts, kept as JSON.

Every kind has the same four special numbers in front (`vocabulary`), which no text can produce, and turns numbers back
into text: characters and subwords exactly, words with white space normalized. Knows no files, splits or lengths.
"""

import re
from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.data.codec import Symbols
from seqloom.data.id_table import MOST_UNITS, UnitTable
from seqloom.data.ragged import Ids, Ragged, offsets_of
from seqloom.data.subwords import PIECE, UNIT, BytePairs, Pieces, batched, pieces
from seqloom.data.vocabulary import END, PAD, SPECIALS, START, UNKNOWN, Vocabulary
from seqloom.data.wordpieces import Unigrams, WordPieces
from seqloom.errors import RunError

SILENT = frozenset((PAD, START, END))  # marks around a text, not part of it
JOINER = "￭"  # in front of a token that follows the one before it without white space
WORD = re.compile(r"\w+|[^\w\s]")  # every character that is not white space is in exactly one match
WORD_OR_BREAK = re.compile(r"\n|\S+")
MOST_COUNTED = 1 << 22  # different tokens in memory while counting
CODE_POINTS = 0x110000
SUBWORDS: dict[str, type[BytePairs] | type[WordPieces] | type[Unigrams]] = {
    way.kind: way for way in (BytePairs, WordPieces, Unigrams)
}
VISIBLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


class Tokenizer(Symbols):
    """Texts to ids and back. The ids of a text hold no special ones but UNKNOWN."""

    unknown = UNKNOWN
    lowercase: bool

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]  # as narrow as the vocabulary allows
        return np.dtype(np.uint16 if len(self) <= 1 << 16 else np.int32)

    def encode(self, text: str) -> Ids:
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> Ragged:
        return self._encode([text.lower() for text in texts] if self.lowercase else texts)

    def normalize(self, text: str) -> str:
        """`text` as `decode` gives it back when no token is unknown."""
        return text.lower() if self.lowercase else text

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Ragged: ...

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; padding, start and end are silent, unknown tokens appear as <unk>."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "lowercase": self.lowercase, "symbols": list(self.symbols)}


class Characters(Tokenizer):
    """A token a character (Unicode code point)."""

    kind = "characters"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool) -> None:
        self.symbols, self.lowercase = vocabulary.symbols, lowercase
        self._ids = np.full(CODE_POINTS, UNKNOWN, dtype=np.int32)
        letters = self.symbols[len(SPECIALS) :]
        self._ids[[ord(letter) for letter in letters]] = np.arange(len(SPECIALS), len(self.symbols))

    def _encode(self, texts: Sequence[str]) -> Ragged:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return Ragged(self._ids[code_points(texts)], offsets_of(lengths))

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.symbols[number] for number in ids if number not in SILENT)

    def names(self, ids: Iterable[int]) -> list[str]:
        return [visible(self.symbols[number]) for number in ids]


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

    def joined(self, token: str) -> bool:
        """Whether no blank stands before `token`. A joiner alone is one that stood in the text."""
        return not self.spaced and len(token) > 1 and token[0] == JOINER


class Words(Tokenizer):
    """A token a word or a punctuation mark; the joiner in front of a token remembers that no blank was there.

    Cut at blanks alone, a text may hold <unk>, as published ones do: that is an unknown word.
    """

    def __init__(self, vocabulary: Vocabulary, lowercase: bool, cut: Cut) -> None:
        self.symbols, self.lowercase, self.cut = vocabulary.symbols, lowercase, cut
        self.kind = "spaced" if cut.spaced else "words"
        self._numbers = {symbol: number for symbol, number in vocabulary.numbers.items() if number not in SILENT}
        self._units = UnitTable(self._encode_units)

    def normalize(self, text: str) -> str:
        lines = super().normalize(text).split("\n") if self.cut.breaks else [super().normalize(text)]
        return "\n".join(" ".join(line.split()) for line in lines)

    def _encode(self, texts: Sequence[str]) -> Ragged:
        return self._units.encode(map(self.cut.units, texts))

    def _encode_units(self, units: list[str]) -> Ragged:
        get = self._numbers.get
        values, ends = array("i"), array("q", [0])
        for unit in units:
            values.extend(get(token, UNKNOWN) for token in self.cut.tokens(unit))
            ends.append(len(values))
        return Ragged(np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64))

    def decode(self, ids: Iterable[int]) -> str:
        text, blank = [], ""  # what goes in front of a word
        for token in (self.symbols[number] for number in ids if number not in SILENT):
            if self.cut.joined(token):
                text.append(token[1:])
            else:
                text.append(token if token == "\n" else blank + token)
            blank = "" if token == "\n" else " "
        return "".join(text)

    def names(self, ids: Iterable[int]) -> list[str]:
        tokens = [self.symbols[number] for number in ids]
        shown = (token[1:] if self.cut.joined(token) else token for token in tokens)
        return [visible(token) if token == "\n" else token for token in shown]

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | ({"breaks": True} if self.cut.breaks else {})


class Subwords(Tokenizer):
    """A token a frequent piece of text, down to single bytes: byte pairs, word pieces, or of a unigram model."""

    def __init__(self, pairs: Pieces, lowercase: bool) -> None:
        self.symbols, self.lowercase = SPECIALS + pairs.symbols, lowercase
        self._pairs, self.kind = pairs, pairs.kind
        self._units = UnitTable(self._encode_units)
        self._bytes = [b"", SPECIALS[UNKNOWN].encode(), b"", b"", *pairs.bytes]

    def _encode(self, texts: Sequence[str]) -> Ragged:
        return self._units.encode(UNIT.findall(text) for text in texts)

    def _encode_units(self, units: list[str]) -> Ragged:
        # Half a surrogate pair (say, from a strange command line) is no text, and the library would stop at it.
        whole = [unit.encode("utf-8", "replace").decode("utf-8") for unit in units]
        ids = self._pairs.encode(whole)
        return Ragged(ids.values + np.int32(len(SPECIALS)), ids.offsets)

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(self._bytes[number] for number in ids).decode("utf-8", "replace")

    def names(self, ids: Iterable[int]) -> list[str]:
        """Pieces of text with the blank in front made visible; bytes that are no character alone in hexadecimal."""
        shown = {special: SPECIALS[special] for special in (PAD, START, END)}
        return [shown.get(number) or visible(self._bytes[number].decode("utf-8", "backslashreplace")) for number in ids]

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | self._pairs.more()


def learn_tokenizer(
    kind: str,
    texts: Iterable[str],
    *,
    lowercase: bool = False,
    max_size: int = 0,
    min_count: int = 1,
    breaks: bool = False,
) -> Tokenizer:
    """The tokenizer that suits `texts`, which are read once and never all held in memory."""
    seen = (text.lower() for text in texts) if lowercase else texts
    if kind in SUBWORDS:
        return Subwords(SUBWORDS[kind].learn(seen, max_size, min_count), lowercase)
    if kind in ("words", "spaced"):
        cut = Cut(kind == "spaced", breaks)
        return Words(Vocabulary.learn(count_words(seen, cut), max_size, min_count), lowercase, cut)
    assert kind == "characters", kind
    return Characters(Vocabulary.learn(count_characters(seen), max_size, min_count), lowercase)


def read_tokenizer(found: object) -> Tokenizer:
    """The tokenizer that `to_json` described; RunError in one sentence if a file says something else."""
    if not isinstance(found, dict):
        raise RunError(f"the tokenizer is not a table of settings but of type {type(found).__name__}")
    kind, lowercase, symbols = (found.get(key) for key in ("kind", "lowercase", "symbols"))
    if not isinstance(lowercase, bool):
        raise RunError(f"the tokenizer's lowercase is neither true nor false: {lowercase!r:.50}")
    if kind not in ("characters", "words", "spaced", *SUBWORDS):
        known = ", ".join(("characters", "words", *SUBWORDS))
        raise RunError(f"there is no kind of tokenizer {kind!r:.50}: it is {known} or spaced")
    vocabulary = Vocabulary.read(symbols)
    learned = list(vocabulary.symbols[len(SPECIALS) :])
    if kind in SUBWORDS:
        return Subwords(SUBWORDS[kind].read(learned, found), lowercase)
    if kind in ("words", "spaced"):
        return Words(vocabulary, lowercase, Cut(kind == "spaced", found.get("breaks") is True))
    if any(len(symbol) != 1 for symbol in learned):
        raise RunError("the vocabulary of characters has a symbol of several characters")
    return Characters(vocabulary, lowercase)


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


def visible(text: str) -> str:
    """`text` with everything in it that leaves no mark on paper made visible."""
    shown = text.translate(VISIBLE)
    return shown if shown.isprintable() else "".join(map(_escaped, shown))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


def code_points(texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.uint32]]":
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")


def count_characters(texts: Iterable[str]) -> dict[str, int]:
    counts = np.zeros(CODE_POINTS, dtype=np.int64)
    for batch in batched(texts):
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
