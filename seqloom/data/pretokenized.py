"""Words that somebody has cut already, one after the other, as in tagging; and the same with their spelling.

Between two words stands a tab, or a blank where there is no tab. A tag belongs to each, so nothing is cut further.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from seqloom.data.codec import Codec
from seqloom.data.labels import Named
from seqloom.data.ragged import Ragged
from seqloom.data.tokenizers import Characters, Tokenizer, count_characters, read_tokenizer, visible
from seqloom.data.vocabulary import PAD, UNKNOWN, Vocabulary
from seqloom.errors import RunError

BETWEEN = "\t"


def elements(text: str) -> list[str]:
    """The words, or the tags, of a text."""
    return [word for word in (text.split(BETWEEN) if BETWEEN in text else text.split()) if word]


class Listed(Tokenizer):
    """A token a word, as somebody has cut them."""

    kind = "listed"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool) -> None:
        self.symbols, self.lowercase = vocabulary.symbols, lowercase
        self._numbers = vocabulary.numbers

    @classmethod
    def learn(cls, texts: Iterable[str], *, lowercase: bool, max_size: int, min_count: int) -> "Listed":
        counts = Counter(word for text in texts for word in elements(text.lower() if lowercase else text))
        return cls(Vocabulary.learn(counts, max_size, min_count), lowercase)

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Listed":
        if not isinstance(found.get("lowercase"), bool):
            raise RunError("the words' lowercase is neither true nor false")
        return cls(Vocabulary.read(found.get("symbols")), found["lowercase"])

    def normalize(self, text: str) -> str:
        return text  # words are shown as they stand, whatever is looked up

    def _encode(self, texts: Sequence[str]) -> Ragged:
        get = self._numbers.get
        return Ragged.of([[get(word, UNKNOWN) for word in elements(text)] for text in texts])

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.symbols[number] for number in ids if number >= UNKNOWN)

    def names(self, ids: Iterable[int]) -> list[str]:
        return [visible(self.symbols[number]) for number in ids]


class Spelled(Codec):
    """A word's number, then the numbers of its letters: of a long word the first half of them and the last."""

    kind = "spelled"
    dtype = np.dtype(np.int32)

    def __init__(self, words: Listed, letters: Characters, longest: int) -> None:
        self.words, self.letters, self.longest = words, letters, longest
        self.shape = (1 + longest,)

    @classmethod
    def learn(cls, texts: list[str], words: Callable[[list[str]], Listed], longest: int) -> "Spelled":
        letters = Characters(Vocabulary.learn(count_characters(texts)), lowercase=False)
        return cls(words(texts), letters, longest)

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Spelled":
        words, longest = found.get("words"), found.get("longest")
        letters = read_tokenizer(found.get("letters"))
        if not isinstance(words, dict) or not isinstance(longest, int) or not 1 < longest <= 1000:
            raise RunError("a spelling does not say its words and how many letters are read")
        if not isinstance(letters, Characters):
            raise RunError(f"the letters of words are {letters.kind}, not characters")
        return cls(Listed.read(words), letters, longest)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.words.symbols

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        found = self.words.encode_many(raws)
        spelled = self.letters.encode_many([self._cut(word) for text in raws for word in elements(text)])
        table = np.full((len(spelled), self.longest), PAD, dtype=np.int32)
        padded, _ = spelled.padded(np.arange(len(spelled)))
        table[:, : padded.shape[1]] = padded
        return Ragged(np.concatenate([found.values[:, None], table], 1), found.offsets)

    def _cut(self, word: str) -> str:
        half = self.longest // 2
        return word if len(word) <= self.longest else word[: self.longest - half] + word[-half:]

    def to_json(self) -> dict[str, Any]:
        parts = {"words": self.words.to_json(), "letters": self.letters.to_json()}
        return {"kind": self.kind, "longest": self.longest} | parts


class TagLists(Named):
    """A label for each element, between them what stands between the elements."""

    kind = "tags"

    @classmethod
    def parts(cls, raw: str) -> list[str]:
        return elements(raw)
