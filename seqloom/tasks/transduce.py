"""One sequence of tokens into another: translation, spelling to sound, dates. Knows texts, not files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import build
from ..baselines import most_frequent, transduction
from ..data import batches
from ..data.labels import Labels
from ..data.layout import Layout, Side, tokens
from ..data.prepare import Prepared
from ..data.tokenizers import Tokenizer
from ..data.vocabulary import END, START
from ..errors import DataError
from ..layers.padding import mask_of
from ..metrics import Score, bleu, chrf, exact_match, token_error_rate
from ..models import Batch, Generator, Objective, Writing
from ..recipe import Recipe
from ..search import Hypothesis, beam, greedy
from .base import Prediction, Scored
from .rows import ROOM, Encoded, Rows, check_positions, padded, positions

Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], Score]
QUICK = 256  # validation examples that are written out each time


@dataclass(frozen=True)
class Written(Prediction):
    """An answer token by token; it is ranked by the mean log-probability of a token."""

    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached


class Transduce(Rows):
    @property
    def source(self) -> Tokenizer:
        return cast(Tokenizer, self.codecs["source"])

    @property
    def target(self) -> Tokenizer:
        return cast(Tokenizer, self.codecs["target"])

    @property
    def tags(self) -> tuple[str, ...]:
        """The languages or styles that the target may be asked for in."""
        return cast(Labels, self.codecs["tag"]).names if "tag" in self.codecs else ()

    @classmethod
    def layout(cls, recipe: Recipe) -> Layout:
        data = recipe.data
        sides = {
            "source": tokens(data, data.source, data.source_tokens),
            "target": tokens(data, (data.target,), data.target_tokens),
        }
        if data.tag:
            sides["tag"] = Side((data.tag,), Labels.kind, Labels.learn)
        return Layout("transduce", data, sides, shared=("source", "target") if data.shared else ())

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        train, writes = prepared.splits["train"], recipe.model.side("decoder")
        lengths = train.ids["target"].lengths
        check_positions("encoder", recipe.model.side("encoder"), train.ids["source"].lengths + bool(recipe.data.tag))
        check_positions("decoder", writes, lengths + 1)
        if not recipe.search.max_length:
            recipe = recipe.changed("search.max_length", min(2 * int(lengths.max()) + 10, positions(writes)))
        return recipe, {"usual": most_frequent(train.raws["target"])}

    def build(self) -> Generator:
        model, smoothing = self.recipe.model, self.recipe.train.smoothing
        return build.generator(model, len(self.target), len(self.source) + len(self.tags), smoothing, self.cell)

    def objective(self, model: Generator) -> Objective:
        return Writing(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        """What is read, and what is written with its end."""
        return np.stack([encoded["source"].lengths + bool(self.tags), encoded["target"].lengths + 1], 1)

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        """The start goes in front of what the decoder reads, the end behind what it is to tell (SPEC D7)."""
        tokens, lengths = map(torch.from_numpy, encoded["target"].padded(rows))
        framed = tokens.new_zeros(len(tokens), tokens.shape[1] + 2)
        framed[:, 0], framed[:, 1:-1] = START, tokens
        framed[torch.arange(len(tokens)), lengths + 1] = END
        return Batch.shifted(framed, mask_of(lengths + 2, framed.shape[1]), self.about(encoded, rows))

    def about(self, encoded: Encoded, rows: Any) -> tuple[Tensor, Tensor]:
        """The sources with their masks. A tag is one more token in front, numbered after those of the source."""
        tokens, mask = padded(encoded["source"], rows)
        if not self.tags:
            return tokens, mask
        tags = torch.from_numpy(encoded["tag"].padded(rows)[0]) + len(self.source)
        return torch.cat([tags, tokens], 1), torch.cat([torch.ones_like(mask[:, :1]), mask], 1)

    @torch.no_grad()
    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        quick = range(min(QUICK, len(part)))
        written = self.predict(model, [self.input_of([raw[row] for raw in part.raws.values()]) for row in quick], 1)
        targets = part.raws["target"]
        right = sum(best.output == targets[row] for row, (best, *_) in zip(quick, written, strict=True))
        return {"loss": self.loss(model, part.ids), "exact": right / max(len(quick), 1)}

    def input_of(self, example: Sequence[str]) -> Any:
        """What `predict` is asked with: the source, with its tag where there are tags."""
        source, _, *tag = example
        return (source, *tag) if tag else source

    def score(self, model: Generator, examples: Sequence[Sequence[str]]) -> dict[str, Scored]:
        """A source that stands on several lines has several right answers."""
        answers: dict[Any, list[str]] = {}
        for example in examples:
            answers.setdefault(self.input_of(example), []).append(example[1])
        inputs, references = list(answers), list(answers.values())
        outputs = [best.output for best, *_ in self.predict(model, inputs)]
        sources = [given if isinstance(given, str) else given[0] for given in inputs]
        rivals = transduction(sources, self.facts["usual"])
        return {
            name: Scored(
                measure(outputs, references),
                {rival: measure(given, references).value for rival, given in rivals.items()},
            )
            for name, measure in self.measures().items()
        }

    def measures(self) -> dict[str, Measure]:
        """Errors are counted in characters where the model writes characters, otherwise in words."""
        data = self.recipe.data
        cut = list if data.target_tokens == "characters" else str.split
        return {
            "exact": exact_match,
            "token error rate": partial(token_error_rate, tokens=cut),
            "BLEU": partial(bleu, lowercase=data.lowercase),
            "chrF": partial(chrf, lowercase=data.lowercase),
        }

    @torch.no_grad()
    def predict(self, model: Generator, inputs: Sequence[Any], width: int | None = None) -> list[list[Written]]:
        """An input is a text; where there are tags, a text and its tag."""
        width, encoded = width or self.recipe.search.width, self.encode_inputs(inputs)
        answers: list[list[Written]] = [[] for _ in inputs]
        for rows in batches.sequential(encoded["source"].lengths, ROOM // max(width, 1)):
            for row, found in zip(rows, self.write(model, encoded, rows, width), strict=True):
                answers[row] = [self.read_out(hypothesis) for hypothesis in found]
        return answers

    def encode_inputs(self, inputs: Sequence[Any]) -> Encoded:
        texts = [given if isinstance(given, str) else given[0] for given in inputs]
        encoded = {"source": self.source.encode_many(texts)}
        self.check_length(encoded["source"].lengths + bool(self.tags), self.recipe.model.side("encoder"))
        if self.tags:
            tags = [None if isinstance(given, str) else given[1] for given in inputs]
            if unknown := [tag for tag in tags if tag not in self.tags]:
                asked = f"the tag {unknown[0]!r}" if unknown[0] else "no tag"
                raise DataError(f"this model is told what to write: one of {', '.join(self.tags)}, not {asked}")
            encoded["tag"] = self.codecs["tag"].encode_many(tags)
        elif any(not isinstance(given, str) for given in inputs):
            raise DataError("a tag is given, but this model was trained without one (data.tag)")
        return encoded

    def write(self, model: Generator, encoded: Encoded, rows: Any, width: int) -> Iterator[list[Hypothesis]]:
        search = self.recipe.search
        state = model.start(len(rows), *self.about(encoded, rows))
        last = torch.full((len(rows), 1), START)
        if width == 1:
            return ([one] for one in greedy(model, last, state, steps=search.max_length, end=END))
        return iter(
            beam(
                model,
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

    def example(self, given: Any, target: str) -> tuple[Batch, list[str], list[str]]:
        """One input and its answer as a batch, with the names of what is read and of what is written, for pictures."""
        encoded = self.encode_inputs([given]) | {"target": self.target.encode_many([target])}
        told = [] if isinstance(given, str) else [f"<{given[1]}>"]
        names = self.source.names(encoded["source"][0]), self.target.names(encoded["target"][0])
        return self.batch_of(encoded, [0]), [*told, *names[0]], [*names[1], "<eos>"]
