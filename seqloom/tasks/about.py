"""Tasks that write about something: a text, numbers, an image. What is read, and what is written, token by token."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import build
from ..data import batches
from ..data.codec import Codec
from ..data.prepare import Prepared
from ..data.tokenizers import Tokenizer
from ..data.vocabulary import END, START
from ..layers.padding import mask_of
from ..layers.state import repeat
from ..metrics import Score
from ..models import Batch, Generator, Objective, Writing
from ..recipe import Recipe
from ..search import Hypothesis, Pieces, Recorder, Sampling, beam, likeliest, stream, write
from ..search.choosing import Choose, seeds_of
from . import sources
from .asking import Answering
from .base import Prediction, Scored, Shown
from .rows import ROOM, Encoded, Rows, check_positions, positions

Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], Score]
QUICK = 256  # validation examples that are written out each time


@dataclass(frozen=True)
class Written(Prediction):
    """An answer token by token; it is ranked by the mean log-probability of a token."""

    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached
    finish: str = "end"  # or "stop" at a string that was to end it, "length" where the room ended
    seconds: float = 0.0  # that it took, with the answers beside it
    alternatives: Sequence[dict[str, float]] = ()  # likely tokens at each step, where that was asked for


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

    def input_of(self, example: Sequence[Any]) -> Any:
        """What `predict` is asked with."""
        return example[0]

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

    def predict(self, model: Generator, inputs: Sequence[Any], width: int | None = None) -> list[list[Written]]:
        return self.answer(model, inputs, Answering(width or self.recipe.search.width))

    @torch.no_grad()
    def answer(
        self, model: Generator, inputs: Sequence[Any], ask: Answering, recorder: Recorder | None = None
    ) -> list[list[Written]]:
        """The answers to each input, best first."""
        encoded = self.encode_inputs(inputs)
        answers: list[list[Written]] = [[] for _ in inputs]
        for rows in batches.sequential(self.read_lengths(encoded), ROOM // max(ask.width, ask.count)):
            begun = perf_counter()
            found = self.write(model, encoded, rows, ask, recorder)
            seconds = perf_counter() - begun
            for row, hypotheses in zip(rows, found, strict=True):
                answers[row] = [self.read_out(one, ask, seconds) for one in hypotheses]
        return answers

    def encode_inputs(self, inputs: Sequence[Any]) -> Encoded:
        encoded = {"source": self.source.encode_many(list(inputs))}
        self.check_length(self.read_lengths(encoded), self.recipe.model.side("encoder"))
        return encoded

    def write(
        self, model: Generator, encoded: Encoded, rows: Any, ask: Answering, recorder: Recorder | None = None
    ) -> list[list[Hypothesis]]:
        search, count = self.recipe.search, len(rows)
        steps = ask.max_length or search.max_length
        state = model.start(count, *self.about(encoded, rows))
        last, step = torch.full((count, 1), START), model.stepper()
        stops = ask.rules.stops(self.target)
        if ask.sampling is None and (ask.width > 1 or recorder is not None):
            return beam(
                step,
                last,
                state,
                width=ask.width,
                steps=steps,
                end=END,
                length_penalty=search.length_penalty if ask.length_penalty is None else ask.length_penalty,
                groups=ask.groups,
                diversity=ask.diversity,
                best=ask.best,
                constraints=ask.rules.constraints(self.target, count, steps),
                stops=stops,
                recorder=recorder,
            )
        each = ask.count if ask.sampling is not None else 1
        choose = likeliest if ask.sampling is None else drawing(ask.sampling, each, count)
        found = write(
            step,
            choose,
            last.repeat_interleave(each, 0),
            repeat(state, each) if each > 1 else state,
            steps=steps,
            end=END,
            constraints=ask.rules.constraints(self.target, count * each, steps),
            stops=stops,
            alternatives=ask.alternatives,
        )
        groups = [found[start : start + each] for start in range(0, len(found), each)]
        return [sorted(group, key=lambda one: -one.score) for group in groups]

    def pieces(self, model: Generator, given: Any, ask: Answering) -> Iterator[str]:
        """The answer to one input as it is written: the likeliest token each time, or drawn."""
        encoded, steps = self.encode_inputs([given]), ask.max_length or self.recipe.search.max_length
        with torch.no_grad():
            state = model.start(1, *self.about(encoded, [0]))
        text = Pieces(self.target.decode, ask.rules.stop)
        for [pick] in stream(
            model.stepper(),
            likeliest if ask.sampling is None else drawing(ask.sampling, 1, 1),
            torch.full((1, 1), START),
            state,
            steps=steps,
            end=END,
            constraints=ask.rules.constraints(self.target, 1, steps),
            stops=ask.rules.stops(self.target),
        ):
            if pick.finish != "end" and (piece := text.add(pick.token)):
                yield piece
        if rest := text.finish():
            yield rest

    def read_out(self, found: Hypothesis, ask: Answering, seconds: float) -> Written:
        names, text = self.target.names, self.target.decode(found.tokens)
        if found.finish == "stop":  # a stop may begin in the middle of a token
            text = text[: min(place for stop in ask.rules.stop if stop and (place := text.find(stop)) >= 0)]
        others = [
            dict(zip(names([token for token, _ in step]), [log for _, log in step], strict=True))
            for step in found.alternatives
        ]
        return Written(text, found.score, names(found.tokens), found.logs, found.finish, seconds, others)

    def show(self, given: Any, answer: str) -> Shown:
        encoded = self.encode_inputs([given]) | {"target": self.target.encode_many([answer])}
        told = [*self.target.names(encoded["target"][0]), "<eos>"]
        read = self.source.symbols if isinstance(self.source, Tokenizer) else ()
        return Shown(self.batch_of(encoded, [0]), self.names_of(given, encoded), told, read, self.target.symbols)

    def names_of(self, given: Any, encoded: Encoded) -> list[str]:
        """What is read, as a person sees it in a picture; elements that are no text, by their number."""
        if isinstance(self.source, Tokenizer):
            return self.source.names(encoded["source"][0])
        return [str(number) for number in range(1, int(self.read_lengths(encoded)[0]) + 1)]


def drawing(sampling: Sampling, each: int, rows: int) -> Choose:
    """So many draws for each row; what they are does not depend on the rows beside it."""
    assert isinstance(sampling.seed, int)
    seeds: list[int] = seeds_of(sampling.seed, each).tolist()
    return replace(sampling, seed=seeds * rows).choose(each * rows)
