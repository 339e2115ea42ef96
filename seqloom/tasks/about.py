"""Tasks that write about something: a text, numbers, an image. What is read, and what is written, token by token."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import build_seq2seq
from ..config.recipe import Recipe
from ..data import batching
from ..data.prepare import Prepared
from ..data.vocabulary import END, START
from ..errors import SearchError
from ..fields import Field, Prediction, SymbolField
from ..layers.padding import lengths_to_mask
from ..layers.state import repeat
from ..models import Batch, GenerationObjective, Generator, Objective, device_of
from ..search import Constraint, Hypothesis, Patience, Recorder, Sampling, Stop, beam, likeliest, write
from ..search.base import score_of
from ..search.choosing import Choose, seeds_of
from .asking import Answering, Rules
from .base import Shown
from .rows import ROOM, Encoded, Rows, check_positions, positions


class About(Rows):
    """The sides are `source` and `target`, and perhaps more that say what is wanted."""

    @property
    def source(self) -> Field:
        return self.fields["source"]

    @property
    def target(self) -> SymbolField:
        return cast(SymbolField, self.fields["target"])

    @property
    def reads_text(self) -> bool:
        return self.source.is_text

    @classmethod
    def settled(cls, recipe: Recipe, prepared: Prepared) -> Recipe:
        """The recipe with the longest answer filled in; refused where learned positions do not reach far enough."""
        train, writes = prepared.splits["train"], recipe.model.side("decoder")
        read = prepared.fields["source"].lengths(train.ids["source"], recipe.model)
        check_positions("encoder", recipe.model.side("encoder"), read + bool(recipe.data.tag))
        written = train.ids["target"].lengths
        check_positions("decoder", writes, written + 1)
        if recipe.search.max_length:
            return recipe
        return recipe.changed("search.max_length", min(2 * int(written.max()) + 10, positions(writes)))

    def build(self) -> Generator:
        model, smoothing = self.recipe.model, self.recipe.train.label_smoothing
        return build_seq2seq(model, len(self.target), self.source.embedding(model), smoothing, self.cell)

    def objective(self, model: Generator) -> Objective:
        return GenerationObjective(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        """What is read, and what is written with its end."""
        return np.stack([self.read_lengths(encoded), encoded["target"].lengths + 1], 1)

    def read_lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return self.source.lengths(encoded["source"], self.recipe.model)

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        """The start goes in front of what the decoder reads, the end behind what it is to tell."""
        tokens, lengths = map(torch.from_numpy, encoded["target"].padded(rows))
        framed = tokens.new_zeros(len(tokens), tokens.shape[1] + 2)
        framed[:, 0], framed[:, 1:-1] = START, tokens
        framed[torch.arange(len(tokens)), lengths + 1] = END
        return Batch.shifted(framed, lengths_to_mask(lengths + 2, framed.shape[1]), self.about(encoded, rows))

    def about(self, encoded: Encoded, rows: Any) -> tuple[Tensor, Tensor]:
        """The sources side by side with their masks."""
        return self.source.collate(encoded["source"], rows, self.recipe.model)

    def predict(self, model: Generator, inputs: Sequence[Any], beam: int | None = None) -> list[list[Prediction]]:
        found = self.searched(model, inputs, Answering(beam or self.recipe.search.beam_size))
        return [[self.read_out(hypothesis) for hypothesis in hypotheses] for hypotheses, _ in found]

    @torch.no_grad()
    def searched(
        self, model: Generator, inputs: Sequence[Any], ask: Answering, recorder: Recorder | None = None
    ) -> list[tuple[list[Hypothesis], float]]:
        """What is found for each input, best first, and the seconds that it took with the inputs beside it."""
        encoded = self.encode_inputs(inputs)
        answers: list[tuple[list[Hypothesis], float]] = [([], 0.0) for _ in inputs]
        for rows in batching.sequential(self.read_lengths(encoded), ROOM // max(ask.beam_size, ask.count)):
            begun = perf_counter()
            found = self.write(model, encoded, rows, ask, recorder)
            seconds = perf_counter() - begun
            for row, hypotheses in zip(rows, found, strict=True):
                answers[row] = hypotheses, seconds
        return answers

    def encode_inputs(self, inputs: Sequence[Any]) -> Encoded:
        encoded = {"source": self.within(self.source.encode_many(list(inputs)))}
        self.check_length(self.read_lengths(encoded), self.recipe.model.side("encoder"))
        return encoded

    def source_of(self, given: Any) -> Any:
        """What of an input is read element by element."""
        return given

    def whole_lengths(self, inputs: Sequence[Any]) -> NDArray[np.int64]:
        """How long inputs are, whether or not all of it is read."""
        encoded = self.source.encode_many([self.source_of(given) for given in inputs])
        return self.source.lengths(encoded, self.recipe.model)

    def unread(self, inputs: Sequence[Any]) -> list[int]:
        return self.beyond(self.source.encode_many([self.source_of(given) for given in inputs]))

    def limits(self) -> tuple[int, int | None, Sequence[Constraint]]:
        """How many symbols are written at most, which of them ends it, and what is not to be written."""
        return self.recipe.search.max_length, END, ()

    def rules(self, ask: Answering, rows: int, steps: int) -> tuple[list[Constraint], list[Stop]]:
        """What a person's rules come to, for so many rows; here there are no texts to say them in."""
        if ask.rules != Rules():
            raise SearchError("rules about texts are for tasks that write texts")
        return [], []

    def meaning(self, ask: Answering) -> Callable[[Hypothesis], Hashable] | None:
        """What makes two answers of a beam the same one, if not their symbols."""
        return None

    def patience(self, ask: Answering, answers: int) -> Patience:
        """So many answers at once may take as long as one after the other."""
        return Patience(answers * (self.recipe.search.timeout if ask.timeout is None else ask.timeout))

    def write(
        self, model: Generator, encoded: Encoded, rows: Any, ask: Answering, recorder: Recorder | None = None
    ) -> list[list[Hypothesis]]:
        longest, end, own = self.limits()
        each, steps = ask.count if ask.sampling is not None else 1, ask.max_length or longest
        state = model.initial_state(len(rows), *self.about(encoded, rows))
        last, step = torch.full((len(rows), 1), START, device=device_of(model)), model.stepper()
        rules, stops = self.rules(ask, each * len(rows), steps)
        penalty = self.recipe.search.length_penalty if ask.length_penalty is None else ask.length_penalty
        patience = self.patience(ask, each * len(rows))
        if ask.sampling is None and (ask.beam_size > 1 or recorder is not None):
            return beam(
                step,
                last,
                state,
                beam_size=ask.beam_size,
                steps=steps,
                end=end,
                length_penalty=penalty,
                groups=ask.groups,
                diversity=ask.diversity,
                best=ask.best,
                constraints=[*own, *rules],
                stops=stops,
                meaning=self.meaning(ask),
                recorder=recorder,
                patience=patience,
            )
        found = write(
            step,
            likeliest if ask.sampling is None else drawing(ask.sampling, each, len(rows)),
            last.repeat_interleave(each, 0),
            repeat(state, each) if each > 1 else state,
            steps=steps,
            end=end,
            constraints=[*own, *rules],
            stops=stops,
            alternatives=ask.alternatives,
            patience=patience,
        )
        found = [one._replace(score=score_of(sum(one.logs), len(one.logs), penalty)) for one in found]
        groups = [found[start : start + each] for start in range(0, len(found), each)]
        return [sorted(group, key=lambda one: -one.score) for group in groups]

    @abstractmethod
    def read_out(self, found: Hypothesis) -> Prediction:
        """What was written, for a person."""

    def show(self, given: Any, answer: Any) -> Shown:
        encoded = self.encode_inputs([given]) | {"target": self.target.encode_many([answer])}
        told = [*self.target.names(encoded["target"][0]), "<eos>"]
        batch, names = self.batch_of(encoded, [0]), self.names_of(given, encoded)
        picture = self.source.picture(self.source_of(given))
        return Shown(batch, names, told, self.source.symbols, self.target.symbols, picture)

    def names_of(self, given: Any, encoded: Encoded) -> list[str]:
        """What is read, as a person sees it in a picture; elements that are no text, by their number."""
        return self.source.element_names(self.source_of(given), encoded["source"], self.recipe.model)


def drawing(sampling: Sampling, each: int, rows: int) -> Choose:
    """So many draws for each row; what they are does not depend on the rows beside it."""
    assert isinstance(sampling.seed, int)
    seeds: list[int] = seeds_of(sampling.seed, each).tolist()
    return replace(sampling, seed=seeds * rows).choose(each * rows)
