"""Byte-pair encoding through the library `tokenizers`: texts to numbers of subwords and back to bytes.

The alphabet is the 256 bytes of UTF-8, each under a visible name of its own, so that every text can be written and
comes back exactly: nothing is unknown, in any script. (The other usual form, a mark in place of the blank with bytes
as a last resort, confuses that mark with one in the text.) Numbers here begin with 0 and know no special symbols: so
"<eos>" in somebody's text is five characters, whatever the library thinks of it. `text.Subwords` adds the rest.
"""

import json
import random
import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.ragged import Ragged
from ..data.vocabulary import check_symbols
from ..errors import RecipeError, RunError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

DEFAULT_SIZE = 8000
PIECE = 1 << 16  # characters a word is cut at: the library takes a hundred bytes and more for each of them
BATCH = 1 << 20  # characters the library gets at once, for the same reason
SAMPLE_PIECES = 100_000  # what is learned from: a merge needs to be frequent, not to be counted exactly
SAMPLE_PIECE = 1000  # characters

UNIT = re.compile(r"\s*\S+|\s+\Z")  # a word with the white space before it: no subword goes over its end

Merge = tuple[str, str]


def byte_names() -> list[str]:
    """The name of each byte: itself where it is visible Latin-1, else the next letter after Latin-1 (as in GPT-2)."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


BYTE_OF = {name: byte for byte, name in enumerate(byte_names())}


class Pieces(ABC):
    """Subwords by number, and what each of them is in bytes."""

    kind: str
    longest = 0  # characters of a word that is taken whole; 0 is PIECE

    def __init__(self, symbols: Sequence[str], named: Sequence[str]) -> None:
        """`named` are the symbols in names of bytes alone."""
        self.symbols = tuple(symbols)
        self.bytes = [bytes(BYTE_OF[name] for name in symbol) for symbol in named]

    def encode(self, texts: Iterable[str]) -> Ragged:
        """The subwords of each text."""
        values, ends = array("i"), array("q", [0])
        for batch in split_batches(texts):
            cut = [list(pieces(text, self.longest or PIECE)) for text in batch]
            encodings = iter(self._library.encode_batch_fast([piece for parts in cut for piece in parts]))
            for parts in cut:
                for encoding in islice(encodings, len(parts)):
                    values.extend(encoding.ids)
                ends.append(len(values))
        return Ragged(np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64))

    def more(self) -> dict[str, Any]:
        """What has to be kept beside the symbols, for JSON."""
        return {}

    @property
    @abstractmethod
    def _library(self) -> "Library": ...


def build_library(model: Callable[[], Any]) -> "Library":
    """The library's tokenizer with a model; RunError if that cannot be."""
    from tokenizers import Tokenizer, pre_tokenizers

    try:
        library = Tokenizer(model())
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # which has no public name
            raise
        raise RunError(f"the subwords cannot be read: {str(error):.100}") from None
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return library


class BytePairs(Pieces):
    """Subwords, and the merges that make them, in the order they were learned."""

    kind = "bpe"

    def __init__(self, symbols: Sequence[str], merges: Sequence[Merge]) -> None:
        super().__init__(symbols, symbols)
        self.merges = tuple(merges)

    @classmethod
    def learn(cls, texts: Iterable[str], max_size: int, min_count: int) -> "BytePairs":
        """The most useful subwords of a sample of `texts`; the same texts always give the same ones."""
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        if 0 < max_size < len(BYTE_OF):
            raise RecipeError(
                f"data.vocabulary_size is {max_size}, but bpe begins with one subword a byte: at least {len(BYTE_OF)}"
            )
        trainer = trainers.BpeTrainer(
            vocab_size=max_size or DEFAULT_SIZE,
            min_frequency=max(2, min_count),  # what was seen once is no pattern
            initial_alphabet=list(BYTE_OF),
            show_progress=False,
        )
        library = Tokenizer(models.BPE())
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.train_from_iterator(sample(texts), trainer)
        model = json.loads(library.to_str())["model"]
        symbols = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return cls(symbols, [(left, right) for left, right in model["merges"]])

    @classmethod
    def read(cls, symbols: object, stored: dict[str, Any]) -> "BytePairs":
        """From what came out of a file; RunError if it is damaged, before the library gets to see it."""
        known, merges = set(checked := check_symbols(symbols)), stored.get("merges")
        if any(name not in BYTE_OF for symbol in checked for name in symbol):
            raise RunError("the vocabulary has a subword that is not written in the names of bytes")
        if not known.issuperset(BYTE_OF):
            raise RunError("the vocabulary of subwords lacks some of the 256 bytes")
        if not isinstance(merges, list):
            raise RunError(f"the merges are not a list but of type {type(merges).__name__}")
        for number, merge in enumerate(merges):
            if not (isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge)):
                raise RunError(f"merge {number} is not a pair of subwords: {merge!r:.50}")
            if not known.issuperset((*merge, "".join(merge))):
                raise RunError(f"merge {number} has subwords that are not in the vocabulary: {merge!r:.50}")
        pairs = cls(checked, [(left, right) for left, right in merges])
        pairs._library  # noqa: B018  # built now, so that a fault shows here and not at the first text
        return pairs

    def more(self) -> dict[str, Any]:
        return {"merges": [list(merge) for merge in self.merges]}

    @cached_property
    def _library(self) -> "Library":
        from tokenizers import models

        numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        return build_library(lambda: models.BPE(vocab=numbers, merges=list(self.merges)))


def split_batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in lists of about BATCH characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) + 1
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def pieces(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of at most `size` characters."""
    return (text[start : start + size] for start in range(0, max(1, len(text)), size))


def sample(texts: Iterable[str]) -> list[str]:
    """SAMPLE_PIECES pieces of the texts, each as likely as any other (a reservoir); all of them if they are fewer."""
    every = (piece for text in texts for piece in pieces(text, SAMPLE_PIECE))
    kept = list(islice(every, SAMPLE_PIECES))
    draw = random.Random(0)
    for seen, piece in enumerate(every, start=SAMPLE_PIECES + 1):
        place = int(draw.random() * seen)
        if place < SAMPLE_PIECES:
            kept[place] = piece
    return kept
