"""What the examples of a task consist of: its sides, where each stands in a file, and how it becomes numbers."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from seqloom.config.recipe import Data
from seqloom.data.codec import Codec, Learn, Raw
from seqloom.data.tokenizers import learn_tokenizer

JOINED = " | "  # between the columns of a source that has several


def no_fault(raws: Sequence[Raw]) -> str:
    """Every example will do."""
    return ""


class Side(NamedTuple):
    """One side of an example."""

    columns: tuple[str, ...]  # of a table, joined
    kind: str  # of its codec
    learn: Learn  # from the training examples to that codec


@dataclass(frozen=True)
class Layout:
    """The sides of an example, in order; the first decides what counts as the same example in two parts."""

    task: str
    data: Data
    sides: dict[str, Side]
    label: str = ""  # the side that drawn parts are to have in equal shares
    shared: tuple[str, ...] = ()  # sides that learn from one another, and get one codec
    fault: Callable[[Sequence[Raw]], str] = no_fault  # what is wrong with an example, in a sentence
    origin: Callable[["Layout"], Any] | None = None  # where examples of files come from, if not from rows with columns
    ordered: bool = False  # whether the examples are one text, divided where a share of it ends instead of drawn
    limited: bool = True  # whether data.max_length holds
    known: str = ""  # a sum over the codecs that were learned before, if they were

    def knowing(self, codecs: Mapping[str, Codec]) -> "Layout":
        """The same with codecs that are not learned any more."""
        content = json.dumps({name: codec.to_json() for name, codec in codecs.items()}, sort_keys=True)
        sides = {name: side._replace(learn=partial(_as_known, codecs[name])) for name, side in self.sides.items()}
        return replace(self, sides=sides, known=hashlib.sha256(content.encode()).hexdigest())

    @property
    def pictured(self) -> bool:
        """Whether arrays of a file are images."""
        return self.data.source_type == "image" or any(side.kind == "mosaic" for side in self.sides.values())

    def only(self, side: str) -> "Layout":
        """A layout of one side alone, for examples that have no answer yet."""
        return Layout(self.task, self.data, {side: self.sides[side]})

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of a table that are read."""
        return tuple(name for side in self.sides.values() for name in side.columns)


def _as_known(codec: Codec, raws: Iterator[Raw]) -> Codec:
    return codec


def tokens(data: Data, columns: tuple[str, ...], kind: str) -> Side:
    """A side that is text, cut into tokens as the settings say."""

    def learn(texts: Iterator[str]) -> Codec:
        return learn_tokenizer(
            kind,
            texts,
            lowercase=data.lowercase,
            max_size=data.vocabulary_size,
            min_count=data.min_count,
            breaks=data.line_breaks,
        )

    return Side(columns, kind, learn)
