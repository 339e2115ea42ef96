"""Texts as fields: characters, words or subwords, fitted on texts, kept as JSON.

Every kind has the same four special numbers in front (`vocabulary`), which no text can produce, and turns numbers back
into text: characters and subwords exactly, words with white space normalized. Knows no files, splits or lengths.
"""

import math
from abc import abstractmethod
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ..config.recipe import Data, Model, Recipe
from ..data.ragged import Ragged, compute_offsets
from ..data.schema import Raw
from ..data.streams import Stream
from ..data.vocabulary import END, PAD, SPECIALS, START, UNKNOWN, Vocabulary
from ..errors import RunError
from ..search import Hypothesis
from .base import Body, Limits, Prediction, SymbolField, pick_evenly
from .cutting import CODE_POINTS, Cut, code_points, count_characters, count_words, show_invisible
from .id_table import UnitTable
from .spelling import spell_vocabulary
from .subwords import UNIT, BytePairs, Pieces
from .vectors import load_vectors
from .wordpieces import Unigrams, WordPieces

SILENT = frozenset((PAD, START, END))  # marks around a text, not part of it
BEFORE = 40  # tokens that are read before one is asked for


@dataclass(frozen=True)
class TextPrediction(Prediction):
    """An answer token by token; the score is the sum of their log-probabilities, over a power of their number
    (`search.length_penalty`): to the power of 1 it is their mean."""

    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached
    finish: str = "end"  # or "stop" at a string that was to end it, "length" or "time" where there was no more of that
    seconds: float = 0.0  # that it took, with the answers beside it
    alternatives: Sequence[dict[str, float]] = ()  # likely tokens at each step, where that was asked for

    def measures(self) -> dict[str, float]:
        """The probability of just these tokens, and the geometric mean of theirs, which does not shrink with length."""
        total, count = sum(self.logs), max(len(self.logs), 1)
        return {"probability": math.exp(total), "token_probability": math.exp(total / count)}


class Text(SymbolField):
    """Texts to ids and back. The ids of a text hold no special ones but UNKNOWN."""

    unknown = UNKNOWN
    is_text = True
    unit: ClassVar[str] = "word"  # what a token is, in the name of a score
    lowercase: bool

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]  # as narrow as the vocabulary allows
        return np.dtype(np.uint16 if len(self) <= 1 << 16 else np.int32)

    @classmethod
    def fit(cls, raws: Iterable[str], settings: Data) -> Self:
        """The field that suits these texts, which are read once and never all held in memory."""
        return cls._fit((text.lower() for text in raws) if settings.lowercase else raws, settings)

    @classmethod
    @abstractmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self: ...

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        lowercase = values.get("lowercase")
        if not isinstance(lowercase, bool):
            raise RunError(f"the tokenizer's lowercase is neither true nor false: {lowercase!r:.50}")
        return cls._from_json(Vocabulary.read(values.get("symbols")), lowercase, values)

    @classmethod
    @abstractmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self: ...

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "lowercase": self.lowercase, "symbols": list(self.symbols)}

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        return self._encode([text.lower() for text in raws] if self.lowercase else raws)

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> Ragged: ...

    def encode_part(self, text: str) -> NDArray[np.int32]:
        """The ids of a part of a text: without what some tokenizers put around a whole one."""
        ids: NDArray[np.int32] = self.encode(text)
        return ids

    def normalize(self, raw: str) -> str:
        """`raw` as `decode` gives it back when no token is unknown."""
        return raw.lower() if self.lowercase else raw

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; padding, start and end are silent, unknown tokens appear as <unk>."""

    def element_names(self, raw: Raw, encoded: Ragged, model: Model) -> list[str]:
        return self.names(encoded[0])

    def begins_word(self) -> NDArray[np.bool_] | None:
        """By number, whether a token begins a word and does not go on with one; None if every token is whole."""
        return None

    def places(self, encoded: Ragged) -> Stream:
        return Stream(encoded)

    def place_names(self, encoded: Ragged) -> list[str]:
        return [*self.names(encoded[0]), SPECIALS[END]]

    def beginnings(self, raw: str, at_most: int) -> Iterator[tuple[str, str]]:
        """Stretches of the text, and the token that comes after each."""
        ids = self.encode(raw).tolist()
        before = min(BEFORE, len(ids) - 1)
        for start in pick_evenly(len(ids) - before, at_most) if ids else ():
            [answer] = self.names(ids[start + before : start + before + 1])
            yield self.decode(ids[start : start + before]), answer

    def limits(self, recipe: Recipe) -> Limits:
        return Limits(recipe.search.max_length, END, ())

    def meaning(self, stop: Sequence[str]) -> Callable[[Hypothesis], Hashable]:
        """Answers mean the same if their texts do, however they are cut into tokens and spaced."""
        return lambda one: " ".join(self.read_hypothesis(one, stop).output.split())

    def read_hypothesis(self, hypothesis: Hypothesis, stop: Sequence[str] = (), seconds: float = 0.0) -> Prediction:
        text = self.decode(hypothesis.tokens)
        if hypothesis.finish == "stop":  # a stop may begin in the middle of a token
            text = text[: min(place for end in stop if end and (place := text.find(end)) >= 0)]
        others = [
            dict(zip(self.names([token for token, _ in step]), [log for _, log in step], strict=True))
            for step in hypothesis.alternatives
        ]
        return TextPrediction(
            text, hypothesis.score, self.names(hypothesis.tokens), hypothesis.logs, hypothesis.finish, seconds, others
        )


class Characters(Text):
    """A token a character (Unicode code point)."""

    kind = "characters"
    unit = "character"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool) -> None:
        self.symbols, self.lowercase = vocabulary.symbols, lowercase
        self._ids = np.full(CODE_POINTS, UNKNOWN, dtype=np.int32)
        letters = self.symbols[len(SPECIALS) :]
        self._ids[[ord(letter) for letter in letters]] = np.arange(len(SPECIALS), len(self.symbols))

    @classmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self:
        counts = count_characters(texts)
        return cls(Vocabulary.learn(counts, settings.vocabulary_size, settings.min_count), settings.lowercase)

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        if any(len(symbol) != 1 for symbol in vocabulary.symbols[len(SPECIALS) :]):
            raise RunError("the vocabulary of characters has a symbol of several characters")
        return cls(vocabulary, lowercase)

    def _encode(self, texts: Sequence[str]) -> Ragged:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return Ragged(self._ids[code_points(texts)], compute_offsets(lengths))

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.symbols[number] for number in ids if number not in SILENT)

    def names(self, ids: Iterable[int]) -> list[str]:
        return [show_invisible(self.symbols[number]) for number in ids]


class WordTokens(Text):
    """A token a word, and perhaps a punctuation mark and a line break."""

    spaced: ClassVar[bool]

    def __init__(self, vocabulary: Vocabulary, lowercase: bool, breaks: bool = False, characters: int = 0) -> None:
        self.symbols, self.lowercase, self.cut = vocabulary.symbols, lowercase, Cut(self.spaced, breaks)
        self.characters = characters  # of a word that are read; 0 is none: a word is a number
        self._numbers = {symbol: number for symbol, number in vocabulary.numbers.items() if number not in SILENT}
        self._units = UnitTable(self._encode_units)

    @classmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self:
        counts = count_words(texts, Cut(cls.spaced, settings.line_breaks))
        vocabulary = Vocabulary.learn(counts, settings.vocabulary_size, settings.min_count)
        return cls(vocabulary, settings.lowercase, settings.line_breaks, settings.characters)

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        characters = values.get("characters", 0)
        if not isinstance(characters, int) or not 0 <= characters <= 1000:
            raise RunError(f"the tokenizer reads {characters!r:.50} characters of a word, but 0 to 1000 were expected")
        return cls(vocabulary, lowercase, values.get("breaks") is True, characters)

    def normalize(self, raw: str) -> str:
        lines = super().normalize(raw).split("\n") if self.cut.breaks else [super().normalize(raw)]
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
            if self.cut.is_joined(token):
                text.append(token[1:])
            else:
                text.append(token if token == "\n" else blank + token)
            blank = "" if token == "\n" else " "
        return "".join(text)

    def names(self, ids: Iterable[int]) -> list[str]:
        tokens = [self.symbols[number] for number in ids]
        shown = (token[1:] if self.cut.is_joined(token) else token for token in tokens)
        return [show_invisible(token) if token == "\n" else token for token in shown]

    def to_json(self) -> dict[str, Any]:
        spelled = {"characters": self.characters} if self.characters else {}
        return super().to_json() | ({"breaks": True} if self.cut.breaks else {}) | spelled

    def begins_word(self) -> NDArray[np.bool_] | None:
        return None if self.spaced else np.array([not self.cut.is_joined(symbol) for symbol in self.symbols])

    def _list_plain(self) -> list[str]:
        """The symbols without what marks that no blank stood before them."""
        return [symbol[1:] if self.cut.is_joined(symbol) else symbol for symbol in self.symbols]

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        if not self.characters:
            return super().embedding(model, body)
        return spell_vocabulary(self._list_plain(), self.characters, model, body)

    def load_vectors(self, embedding: nn.Module, file: str) -> float:
        words = embedding.get_submodule("compose.words") if self.characters else embedding
        return load_vectors(words, self._list_plain(), file)


class Words(WordTokens):
    """The joiner in front of a token remembers that no blank was there."""

    kind, spaced = "words", False


class SpacedWords(WordTokens):
    """Cut at blanks alone, a text may hold <unk>, as published ones do: that is an unknown word."""

    kind, spaced = "spaced", True


class Subwords(Text):
    """A token a frequent piece of text, down to single bytes."""

    unit = "subword"
    pieces: ClassVar[type[BytePairs] | type[WordPieces] | type[Unigrams]]

    def __init__(self, pairs: Pieces, lowercase: bool) -> None:
        self.symbols, self.lowercase, self._pairs = SPECIALS + pairs.symbols, lowercase, pairs
        self._units = UnitTable(self._encode_units)
        self._bytes = [b"", SPECIALS[UNKNOWN].encode(), b"", b"", *pairs.bytes]

    @classmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self:
        return cls(cls.pieces.learn(texts, settings.vocabulary_size, settings.min_count), settings.lowercase)

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        return cls(cls.pieces.read(list(vocabulary.symbols[len(SPECIALS) :]), values), lowercase)

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
        texts = ((number, self._bytes[number].decode("utf-8", "backslashreplace")) for number in ids)
        return [shown.get(number) or show_invisible(text) for number, text in texts]

    def begins_word(self) -> NDArray[np.bool_] | None:
        return np.array([part[:1].isspace() for part in self._bytes])

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | self._pairs.more()


class BytePairText(Subwords):
    kind, pieces = "bpe", BytePairs


class WordPieceText(Subwords):
    kind, pieces = "wordpiece", WordPieces


class UnigramText(Subwords):
    kind, pieces = "unigram", Unigrams


SUBWORDS: dict[str, type[BytePairs] | type[WordPieces] | type[Unigrams]] = {
    text.kind: text.pieces for text in (BytePairText, WordPieceText, UnigramText)
}
TEXTS: dict[str, type[Text]] = {
    text.kind: text for text in (Characters, Words, BytePairText, WordPieceText, UnigramText, SpacedWords)
}
