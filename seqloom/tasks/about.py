"""Tasks that write about something: a text, numbers, an image. What is read, and what is written, token by token."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import build
from ..data import batches
from ..data.codec import Codec
from ..data.pictures import Pictures
from ..data.prepare import Prepared
from ..data.tokenizers import Tokenizer
from ..data.vocabulary import END, START
from ..layers.padding import mask_of
from ..metrics import Score
from ..models import Batch, Generator, Objective, Writing, device_of
from ..recipe import Recipe
from ..search import Hypothesis, beam, greedy
from . import sources
from .base import Prediction, Scored, Shown
from .rows import ROOM, Encoded, Rows, check_positions, positions

Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], Score]
QUICK = 256  # validation examples that are written out each time


@dataclass(frozen=True)
class Written(Prediction):
    """An answer token by token; it is ranked by the mean log-probability of a token."""

    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached


class About(Rows):
    """The sides are `source` and `target`, and perhaps more that say what is wanted."""

    @property
    def source(self) -> Codec:
        return self.codecs["source"]

    @property
    def target(self) -> Tokenizer:
        return cast(Tokenizer, self.codecs["target"])

    @property
    def reads_text(self) -> bool:
        return sources.is_text(self.source)

    @abstractmethod
    def measures(self) -> dict[str, Measure]: ...

    @abstractmethod
    def rivals(self, inputs: Sequence[Any]) -> dict[str, list[str]]:
        """What each baseline answers."""

    @classmethod
    def settled(cls, recipe: Recipe, prepared: Prepared) -> Recipe:
        """The recipe with the longest answer filled in; refused where learnt positions do not reach far enough."""
        train, writes = prepared.splits["train"], recipe.model.side("decoder")
        read = sources.lengths(prepared.codecs["source"], train.ids["source"], recipe.model.patch)
        check_positions("encoder", recipe.model.side("encoder"), read + bool(recipe.data.tag))
        written = train.ids["target"].lengths
        check_positions("decoder", writes, written + 1)
        if recipe.search.max_length:
            return recipe
        return recipe.changed("search.max_length", min(2 * int(written.max()) + 10, positions(writes)))

    def build(self) -> Generator:
        model, smoothing = self.recipe.model, self.recipe.train.smoothing
        return build.teller(model, len(self.target), sources.embed(self.source, model), smoothing, self.cell)

    def objective(self, model: Generator) -> Objective:
        return Writing(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        """What is read, and what is written with its end."""
        return np.stack([self.read_lengths(encoded), encoded["target"].lengths + 1], 1)

    def read_lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return sources.lengths(self.source, encoded["source"], self.recipe.model.patch)

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        """The start goes in front of what the decoder reads, the end behind what it is to tell (SPEC D7)."""
        tokens, lengths = map(torch.from_numpy, encoded["target"].padded(rows))
        framed = tokens.new_zeros(len(tokens), tokens.shape[1] + 2)
        framed[:, 0], framed[:, 1:-1] = START, tokens
        framed[torch.arange(len(tokens)), lengths + 1] = END
        return Batch.shifted(framed, mask_of(lengths + 2, framed.shape[1]), self.about(encoded, rows))

    def about(self, encoded: Encoded, rows: Any) -> tuple[Tensor, Tensor]:
        """The sources side by side with their masks."""
        return sources.read(self.source, encoded["source"], rows, self.recipe.model.patch)

    @torch.no_grad()
    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        quick = range(min(QUICK, len(part)))
        written = self.predict(model, [self.input_of([raw[row] for raw in part.raws.values()]) for row in quick], 1)
        targets = part.raws["target"]
        right = sum(best.output == targets[row] for row, (best, *_) in zip(quick, written, strict=True))
        return {"loss": self.loss(model, part.ids), "exact": right / max(len(quick), 1)}

    def score(self, model: Generator, examples: Sequence[Sequence[Any]]) -> dict[str, Scored]:
        """What stands on several lines has several right answers."""
        inputs: dict[Any, Any] = {}
        answers: dict[Any, list[str]] = {}
        for example in examples:
            given = self.input_of(example)
            key = given.tobytes() if isinstance(given, np.ndarray) else given
            inputs.setdefault(key, given)
            answers.setdefault(key, []).append(example[1])
        asked, references = list(inputs.values()), list(answers.values())
        outputs = [best.output for best, *_ in self.predict(model, asked)]
        rivals = self.rivals(asked)
        return {
            name: Scored(
                measure(outputs, references),
                {rival: measure(told, references).value for rival, told in rivals.items()},
            )
            for name, measure in self.measures().items()
        }

    @torch.no_grad()
    def predict(self, model: Generator, inputs: Sequence[Any], width: int | None = None) -> list[list[Written]]:
        width, encoded = width or self.recipe.search.width, self.encode_inputs(inputs)
        answers: list[list[Written]] = [[] for _ in inputs]
        for rows in batches.sequential(self.read_lengths(encoded), ROOM // max(width, 1)):
            for row, found in zip(rows, self.write(model, encoded, rows, width), strict=True):
                answers[row] = [self.read_out(hypothesis) for hypothesis in found]
        return answers

    def encode_inputs(self, inputs: Sequence[Any]) -> Encoded:
        encoded = {"source": self.source.encode_many(list(inputs))}
        self.check_length(self.read_lengths(encoded), self.recipe.model.side("encoder"))
        return encoded

    def write(self, model: Generator, encoded: Encoded, rows: Any, width: int) -> Iterator[list[Hypothesis]]:
        search = self.recipe.search
        state = model.start(len(rows), *self.about(encoded, rows))
        last, step = torch.full((len(rows), 1), START, device=device_of(model)), model.stepper()
        if width == 1:
            return ([one] for one in greedy(step, last, state, steps=search.max_length, end=END))
        return iter(
            beam(
                step,
                last,
                state,
                width=width,
                steps=search.max_length,
                end=END,
                length_penalty=search.length_penalty,
            )
        )

    def read_out(self, found: Hypothesis) -> Written:
        return Written(self.target.decode(found.tokens), found.score, self.target.names(found.tokens), found.logs)

    def show(self, given: Any, answer: str) -> Shown:
        encoded = self.encode_inputs([given]) | {"target": self.target.encode_many([answer])}
        told = [*self.target.names(encoded["target"][0]), "<eos>"]
        read = self.source.symbols if isinstance(self.source, Tokenizer) else ()
        batch, names = self.batch_of(encoded, [0]), self.names_of(given, encoded)
        picture = encoded["source"][0][0] if isinstance(self.source, Pictures) else None
        return Shown(batch, names, told, read, self.target.symbols, picture)

    def names_of(self, given: Any, encoded: Encoded) -> list[str]:
        """What is read, as a person sees it in a picture; elements that are no text, by their number."""
        if isinstance(self.source, Tokenizer):
            return self.source.names(encoded["source"][0])
        return [str(number) for number in range(1, int(self.read_lengths(encoded)[0]) + 1)]
