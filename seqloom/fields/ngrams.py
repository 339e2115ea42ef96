"""Words and pairs of neighboring words, each a token, once a text: what a bag of them knows of the order of words."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ..config.recipe import Data
from ..data.ragged import Ragged
from ..data.vocabulary import UNKNOWN, Vocabulary
from .cutting import MOST_COUNTED, WORD
from .text import SILENT, Text

BETWEEN = " "  # the words of a pair; no word holds one


class WordPairs(Text):
    """A text as its words and marks and, behind each but the first, the pair that it ends. Each counts once: whether a
    word is there says more about a text than how often (Wang and Manning, 2012). An unknown word is <unk>, an unknown
    pair is left out."""

    kind = "ngrams"

    def __init__(self, vocabulary: Vocabulary, lowercase: bool) -> None:
        self.symbols, self.lowercase = vocabulary.symbols, lowercase
        self._numbers = {symbol: number for symbol, number in vocabulary.numbers.items() if number not in SILENT}

    @classmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self:
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(cut_pairs(text))
            if len(counts) > MOST_COUNTED:  # what was seen once so far is forgotten, which bounds the memory
                counts = Counter({token: count for token, count in counts.items() if count > 1})
        return cls(Vocabulary.learn(counts, settings.vocabulary_size, settings.min_count), settings.lowercase)

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        return cls(vocabulary, lowercase)

    def normalize(self, raw: str) -> str:
        return " ".join(super().normalize(raw).split())

    def _encode(self, texts: Sequence[str]) -> Ragged:
        get = self._numbers.get
        values, ends = array("i"), [0]
        for text in texts:
            pairs = ((get(token), token) for token in cut_pairs(text))
            numbers = (
                UNKNOWN if number is None else number
                for number, token in pairs
                if number is not None or BETWEEN not in token
            )
            values.extend(dict.fromkeys(numbers))
            ends.append(len(values))
        return Ragged(np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64))

    def decode(self, ids: Iterable[int]) -> str:
        """The words alone, each once."""
        words = (self.symbols[number] for number in ids if number not in SILENT)
        return " ".join(word for word in words if BETWEEN not in word)

    def names(self, ids: Iterable[int]) -> list[str]:
        return [self.symbols[number] for number in ids]


def cut_pairs(text: str) -> Iterator[str]:
    """The tokens of a text, in order, as often as they occur."""
    words = WORD.findall(text)
    yield from words[:1]
    for first, second in pairwise(words):
        yield second
        yield f"{first}{BETWEEN}{second}"
