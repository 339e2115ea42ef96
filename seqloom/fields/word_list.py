"""Words that somebody has cut already, one after the other, as in tagging; and the same with their characters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ..config.recipe import Data, Model
from ..data.pretokenized import join_elements, split_elements
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..data.vocabulary import PAD, UNKNOWN, Vocabulary
from ..errors import RunError
from .base import Body, Field
from .cutting import count_characters, visible
from .spelling import compose_words, cut_word
from .text import Characters, Text
from .vectors import load_vectors


class WordList(Text):
    """A token a word, as somebody has cut them."""

    kind = "listed"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool) -> None:
        self.symbols, self.lowercase = vocabulary.symbols, lowercase
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
        return cls(Vocabulary.learn(counts, settings.vocabulary_size, settings.min_count), settings.lowercase)

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        return cls(vocabulary, lowercase)

    def normalize(self, raw: str) -> str:
        return raw  # words are shown as they stand, whatever is looked up

    def _encode(self, texts: Sequence[str]) -> Ragged:
        get = self._numbers.get
        return Ragged.of([[get(word, UNKNOWN) for word in split_elements(text)] for text in texts])

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.symbols[number] for number in ids if number >= UNKNOWN)

    def names(self, ids: Iterable[int]) -> list[str]:
        return [visible(self.symbols[number]) for number in ids]

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

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        return self.words.names(encoded[:, 0])

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        return compose_words(len(self), len(self.letters), model, body)

    def element_names(self, raw: Raw, encoded: Ragged, model: Model) -> list[str]:
        return split_elements(raw)

    def load_vectors(self, embedding: nn.Module, file: str) -> float:
        return load_vectors(getattr(embedding, "tokens", embedding).get_submodule("words"), self.symbols, file)
