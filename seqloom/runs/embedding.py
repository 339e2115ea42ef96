"""Vectors out of a run: of texts, of the words in them, and of the words of the vocabulary with their neighbors."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..arrays import Floats
from ..counts import format_count
from ..data.batching import plan_scoring
from ..data.formats.lines import read_lines
from ..data.ragged import Ragged
from ..data.vocabulary import SPECIALS, START, UNKNOWN
from ..errors import DataError, RunError
from ..layers.embeddings import find_token_table
from ..models import device_of
from ..tasks.shape import ROOM, count_positions

if TYPE_CHECKING:
    from .run import Run

SECTION = ":"  # before the name of a section of analogies
BATCH = 512  # analogies that are looked up at once


class WordVectors(NamedTuple):
    """The words of one text, and a vector for each: the mean of its tokens."""

    words: list[str]
    vectors: Floats


@dataclass(frozen=True)
class Neighbor:
    word: str
    cosine: float


class Embedder:
    """What of a run makes vectors of texts. `layer` 0 is the embedding of the tokens, 1 the first layer, and so on; the
    last one if none is given."""

    def __init__(self, run: "Run", layer: int | None = None) -> None:
        self.field: Any = run.task.fields.get("source", run.task.fields["target"])
        self.run, self.layer, self.cut = run, layer, 0
        if not getattr(self.field, "is_text", False):
            raise RunError(f"{run.folder}: reads {self.field.kind}, but only texts have vectors here")
        source = run.net.source
        self.starts = run.net.generates and source is None  # then the first element is the start of a text
        self.embed = run.net.embed if source is None else source.embed
        body = source.encoder if source is not None else run.net.decoder if self.starts else run.net.encoder
        self.body = body if self.starts else body.layer
        self.side = run.recipe.model.side("decoder" if self.starts else "encoder")
        self.depth = len(self.states(self.encode(["a"]), [0])[0]) - 1
        if layer is not None and not 0 <= layer <= self.depth:
            raise DataError(f"the layer is {layer}, but this model has the embedding, 0, and layers 1 to {self.depth}")

    def encode(self, texts: Sequence[str]) -> Ragged:
        """The tokens of texts, no more than the run reads of one; how many were cut is counted."""
        most = min(self.run.task.shape.most, count_positions(self.side) - self.starts)
        encoded = self.field.encode_many([self.field.accept(text) for text in texts])
        self.cut += int((encoded.lengths > most).sum())
        return encoded.cut(most)

    @torch.no_grad()
    def states(self, encoded: Ragged, rows: Any) -> tuple[list[torch.Tensor], torch.Tensor]:
        """What is known after each layer of some of the texts, and where they have elements."""
        inputs, mask = self.field.collate(encoded, rows, self.run.recipe.model)
        if self.starts:
            inputs, mask = (
                torch.nn.functional.pad(one, (1, 0), value=fill) for one, fill in ((inputs, START), (mask, 1))
            )
        here = device_of(self.run.net)
        states = self.body.read_states(self.embed(inputs.to(here)), mask.to(here))
        return [state[:, int(self.starts) :].cpu() for state in states], mask[:, int(self.starts) :]

    def elements(self, texts: Sequence[str]) -> Iterator[tuple[int, NDArray[Any], Floats]]:
        """Of each text, in any order: its number, its tokens and a vector for each of them."""
        encoded = self.encode(texts)
        for rows in plan_scoring(self.field.lengths(encoded, self.run.recipe.model), ROOM):
            states, mask = self.states(encoded, rows)
            chosen = states[self.depth if self.layer is None else self.layer]
            for row, vectors, there in zip(rows, chosen, mask, strict=True):
                yield int(row), encoded[int(row)], vectors[there].double().numpy()

    def texts(self, texts: Sequence[str]) -> Floats:
        """A vector for each text, (N, D): the mean of its tokens; of a text without any, zeros."""
        vectors: dict[int, Floats] = {
            row: each.mean(0) if len(each) else each.sum(0) for row, _, each in self.elements(texts)
        }
        return np.stack([vectors[row] for row in range(len(texts))]) if vectors else np.zeros((0, 0))

    def words(self, texts: Sequence[str]) -> list[WordVectors]:
        """The words of each text, each with the mean of its tokens."""
        vectors = {row: self.group(texts[row], ids, each) for row, ids, each in self.elements(texts)}
        return [vectors[row] for row in range(len(texts))]

    def group(self, text: str, ids: NDArray[Any], vectors: Floats) -> WordVectors:
        """Tokens in a row make a word, from one that begins it to the next that does; white space belongs to none. A
        word is called as it stands in the text where that has as many between its blanks."""
        field = getattr(self.field, "words", self.field)
        tokens = ids if ids.ndim == 1 else ids[:, 0]
        blank = np.array([not read_symbol(field, int(token)).strip() for token in tokens], dtype=bool)
        starts = find_starts(field)
        if getattr(field, "unit", "") == "character":
            begins = np.concatenate([[True], blank[:-1]])[: len(blank)]
        else:
            begins = np.ones(len(tokens), dtype=bool) if starts is None else starts[tokens]
        begins[:1] = True
        owner = np.cumsum(begins) - 1
        groups = [np.flatnonzero((owner == number) & ~blank) for number in range(int(owner.max(initial=-1)) + 1)]
        groups = [group for group in groups if len(group)]
        words = text.split()
        if len(words) != len(groups):
            words = ["".join(read_symbol(field, int(token)) for token in tokens[group]).strip() for group in groups]
        means = [vectors[group].mean(0) for group in groups]
        return WordVectors(words, np.stack(means) if means else np.zeros((0, vectors.shape[-1])))


def read_symbol(field: Any, number: int) -> str:
    """A token as text; of words that somebody has cut, the word."""
    text: str = field.decode([number]) if hasattr(field, "decode") else field.symbols[number]
    return text


def find_starts(field: Any) -> NDArray[np.bool_] | None:
    """Which tokens begin a word; None if every token is one."""
    starts: NDArray[np.bool_] | None = field.begins_word() if hasattr(field, "begins_word") else None
    return starts


class Lexicon:
    """The words of a run's vocabulary by the vectors of its embedding. Special symbols and pieces within words are none
    of them."""

    def __init__(self, run: "Run") -> None:
        embedder = Embedder(run, 0)
        self.field: Any = getattr(embedder.field, "words", embedder.field)
        if getattr(self.field, "unit", "word") == "character":
            raise RunError(f"{run.folder}: its vocabulary is {self.field.kind}, which are no words")
        table = find_token_table(embedder.embed).detach().cpu().double().numpy()
        starts = find_starts(self.field)
        texts = [read_symbol(self.field, number).strip() for number in range(len(self.field))]
        chosen = [
            number
            for number, text in enumerate(texts)
            if number >= len(SPECIALS) and re.search(r"\w", text) and (starts is None or starts[number])
        ]
        self.words = [texts[number] for number in chosen]
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
        self.table: Floats = table / np.where(lengths > 0, lengths, 1)
        self.directions = self.table[chosen]

    @cached_property
    def places(self) -> dict[str, int]:
        return {word: place for place, word in reversed(list(enumerate(self.words)))}

    def direction(self, word: str) -> Floats:
        """Of a word of the vocabulary its own; of another one the mean of its tokens."""
        name = self.field.normalize(word).strip()
        if name in self.places:
            return self.directions[self.places[name]]
        ids = self.field.encode_part(f" {name}").tolist() if name and hasattr(self.field, "encode_part") else [UNKNOWN]
        if UNKNOWN in ids:
            raise DataError(f"{word!r:.80} is not among the {len(self.words):,} words of this run's vocabulary")
        mean = self.table[ids].mean(0)
        return mean / (np.linalg.norm(mean) or 1)

    def nearest(self, word: str, count: int = 10) -> list[Neighbor]:
        """The words nearest by the cosine, the word itself left out."""
        return self.rank(self.direction(word), [word], count)

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[Neighbor]:
        """a is to b as c is to …: nearest to b − a + c (Mikolov et al., 2013), the three themselves left out."""
        first, second, third = map(self.direction, (a, b, c))
        towards = second - first + third
        return self.rank(towards / (np.linalg.norm(towards) or 1), [a, b, c], count)

    def rank(self, direction: Floats, without: Sequence[str], count: int) -> list[Neighbor]:
        cosines, excluded = self.directions @ direction, {self.field.normalize(word).strip() for word in without}
        order = (place for place in np.argsort(-cosines, kind="stable") if self.words[place] not in excluded)
        return [
            Neighbor(self.words[place], float(cosines[place])) for place, _ in zip(order, range(count), strict=False)
        ]

    def answer(self, file: str) -> dict[str, dict[str, int]]:
        """How many analogies of a file are right, by section: lines of four words, and lines that begin with a colon.
        Those with a word that the vocabulary does not have are counted, and not asked."""
        sections: dict[str, list[list[int]]] = {}
        unknown: dict[str, int] = {}
        name = ""
        for line in read_lines(file, "utf-8"):
            if line.text.startswith(SECTION):
                name = line.text.removeprefix(SECTION).strip()
            elif words := line.text.split():
                if len(words) != 4:
                    raise DataError(
                        f"the line has {format_count(len(words), 'word')}, but an analogy has four", file, line.number
                    )
                places = [self.places.get(self.field.normalize(word), -1) for word in words]
                sections.setdefault(name, [])
                if min(places) < 0:
                    unknown[name] = unknown.get(name, 0) + 1
                else:
                    sections[name].append(places)
        return {
            name: {"right": self.count_right(questions), "asked": len(questions), "unknown": unknown.get(name, 0)}
            for name, questions in sections.items()
        }

    def count_right(self, questions: Sequence[Sequence[int]]) -> int:
        right = 0
        for first in range(0, len(questions), BATCH):
            a, b, c, d = np.array(questions[first : first + BATCH]).T
            cosines = (self.directions[b] - self.directions[a] + self.directions[c]) @ self.directions.T
            for each in (a, b, c):
                cosines[np.arange(len(a)), each] = -np.inf
            right += int((cosines.argmax(1) == d).sum())
        return right
