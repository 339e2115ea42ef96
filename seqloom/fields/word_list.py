"""Words that somebody has cut already, one after the other, as in tagging; and the same with their characters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ..arrays import Integers
from ..config.recipe import Data, Model
from ..data.pretokenized import join_elements, split_elements
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..data.vocabulary import PAD, SPECIALS, UNKNOWN, Vocabulary
from ..errors import RunError
from .base import Body, Field
from .cutting import count_characters, show_invisible
from .endings import learn_endings, list_shorter, name_endings
from .spelling import compose_words, cut_word
from .text import Characters, Text
from .vectors import load_vectors

MOST_LETTERS = 8  # of an ending


class WordList(Text):
    """A token a word, as somebody has cut them. The last symbols, `suffixes` of them, are not words but what unknown
    ones look like, with at most `longest` letters."""

    kind = "listed"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool, longest: int = 0, suffixes: int = 0) -> None:
        self.symbols, self.lowercase = vocabulary.symbols, lowercase
        self.longest, self.suffixes = longest, suffixes
        self._numbers = vocabulary.numbers

    @classmethod
    def convert(cls, value: Any) -> Raw:
        """A list of words, or a text."""
        return super().convert(join_elements(value))

    def accept(self, raw: Any) -> Raw:
        return super().accept(join_elements(raw))

    @classmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self:
        counts = Counter(word for text in texts for word in split_elements(text))
        words = Vocabulary.learn(counts, settings.vocabulary_size, settings.min_count)
        if not settings.endings:
            return cls(words, settings.lowercase)
        endings = [name for name in learn_endings(counts, settings.endings) if name not in words.numbers]
        vocabulary = Vocabulary([*words.symbols, *endings])
        return cls(vocabulary, settings.lowercase, settings.endings, len(endings))

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        longest, endings = values.get("longest", 0), values.get("endings", 0)
        if not isinstance(longest, int) or not 0 <= longest <= MOST_LETTERS:
            raise RunError(f"endings of words have {longest!r:.50} letters, but 0 to {MOST_LETTERS} were expected")
        if not isinstance(endings, int) or not 0 <= endings <= len(vocabulary) - len(SPECIALS):
            raise RunError(f"{endings!r:.50} of {len(vocabulary)} symbols are said to be endings of words")
        return cls(vocabulary, lowercase, longest, endings)

    def to_json(self) -> dict[str, Any]:
        ends = {"longest": self.longest, "endings": self.suffixes} if self.suffixes else {}
        return super().to_json() | ends

    def normalize(self, raw: str) -> str:
        return raw  # words are shown as they stand, whatever is looked up

    def _encode(self, texts: Sequence[str]) -> Ragged:
        return Ragged.of([[self._find(word) for word in split_elements(text)] for text in texts])

    def _find(self, word: str) -> int:
        """The number of a word; of one that is not known, that of the longest ending that is."""
        number = self._numbers.get(word)
        if number is None and self.suffixes:
            names = name_endings(word, self.longest)
            number = next((self._numbers[name] for name in names if name in self._numbers), None)
        return UNKNOWN if number is None else number

    def look_alikes(self) -> Integers:
        if not self.suffixes:
            return super().look_alikes()
        numbers = np.full((len(self), self.longest + 1), UNKNOWN)
        for number in range(len(SPECIALS), len(self)):
            word = number < len(self) - self.suffixes
            names = (name_endings if word else list_shorter)(self.symbols[number], self.longest)
            numbers[number, -len(names) :] = [self._numbers.get(name, UNKNOWN) for name in names]
        return numbers

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.symbols[number] for number in ids if number >= UNKNOWN)

    def names(self, ids: Iterable[int]) -> list[str]:
        return [show_invisible(self.symbols[number]) for number in ids]

    def load_vectors(self, embedding: nn.Module, file: str) -> float:
        return load_vectors(embedding, self.symbols, file)


class SpelledWordList(Field):
    """A word's number, then the numbers of its characters: of a long word the first half of them and the last."""

    kind = "spelled"
    dtype = np.dtype(np.int32)
    is_text = True

    def __init__(self, words: WordList, letters: Characters, longest: int) -> None:
        self.words, self.letters, self.longest = words, letters, longest
        self.shape, self.symbols = (1 + longest,), words.symbols

    @classmethod
    def convert(cls, value: Any) -> Raw:
        """A list of words, or a text."""
        return super().convert(join_elements(value))

    def accept(self, raw: Any) -> Raw:
        return super().accept(join_elements(raw))

    @classmethod
    def fit(cls, raws: Iterable[str], settings: Data) -> Self:
        texts = list(raws)
        letters = Characters(Vocabulary.learn(count_characters(texts)), lowercase=False)
        return cls(WordList.fit(texts, settings), letters, settings.characters)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        words, letters, longest = values.get("words"), values.get("letters"), values.get("longest")
        if not isinstance(words, dict) or not isinstance(longest, int) or not 1 < longest <= 1000:
            raise RunError("a spelling does not say its words and how many letters are read")
        if not isinstance(letters, dict) or letters.get("kind") != Characters.kind:
            raise RunError("the letters of words are not characters")
        return cls(WordList.from_json(words), Characters.from_json(letters), longest)

    def to_json(self) -> dict[str, Any]:
        parts = {"words": self.words.to_json(), "letters": self.letters.to_json()}
        return {"kind": self.kind, "longest": self.longest} | parts

    def __len__(self) -> int:
        return len(self.words)

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        words = self.words.encode_many(raws)
        spelled = self.letters.encode_many(
            [cut_word(word, self.longest) for text in raws for word in split_elements(text)]
        )
        table = np.full((len(spelled), self.longest), PAD, dtype=np.int32)
        padded, _ = spelled.pad(np.arange(len(spelled)))
        table[:, : padded.shape[1]] = padded
        return Ragged(np.concatenate([words.values[:, None], table], 1), words.offsets)

    def look_alikes(self) -> Integers:
        return self.words.look_alikes()

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        return self.words.names(encoded[:, 0])

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        return compose_words(len(self), len(self.letters), model, body)

    def element_names(self, raw: Raw, encoded: Ragged, model: Model) -> list[str]:
        return split_elements(raw)

    def load_vectors(self, embedding: nn.Module, file: str) -> float:
        return load_vectors(getattr(embedding, "tokens", embedding).get_submodule("words"), self.symbols, file)
