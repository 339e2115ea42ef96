"""Tasks that write texts about something, and how good these are beside what needs no model. Knows no files."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch

from ..data.prepare import Prepared
from ..data.vocabulary import START
from ..fields import Prediction, Text
from ..models import Generator, device_of
from ..search import Constraint, Hypothesis, Pieces, Stop, likeliest, stream
from .about import About, drawing
from .asking import Answering
from .base import Scored
from .scoring import Measure, scored

QUICK = 256  # validation examples that are written out each time


@dataclass(frozen=True)
class Written(Prediction):
    """An answer token by token; the score is the sum of their log-probabilities, over a power of their number
    (`search.length_penalty`): to the power of 1 it is their mean."""

    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached
    finish: str = "end"  # or "stop" at a string that was to end it, "length" or "time" where there was no more of that
    seconds: float = 0.0  # that it took, with the answers beside it
    alternatives: Sequence[dict[str, float]] = ()  # likely tokens at each step, where that was asked for


class Tells(About):
    @property
    def target(self) -> Text:
        return cast(Text, self.fields["target"])

    @abstractmethod
    def measures(self) -> dict[str, Measure]: ...

    @abstractmethod
    def rivals(self, inputs: Sequence[Any]) -> dict[str, list[str]]:
        """What each baseline answers."""

    @torch.no_grad()
    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        # From all over the part: files are often sorted, and the words in A are not like the others.
        quick = np.linspace(0, len(part), min(QUICK, len(part)), endpoint=False).astype(int).tolist()
        asked = [self.input_of([raw[row] for raw in part.raws.values()]) for row in quick]
        written = self.answer(model, asked, Answering(1, timeout=0))  # a score is not a matter of how busy a machine is
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
        found = self.answer(model, asked, Answering(self.recipe.search.beam_size, timeout=0))
        outputs = [best.output for best, *_ in found]
        return scored(self.measures(), outputs, references, self.rivals(asked), self.whole_lengths(asked))

    def predict(self, model: Generator, inputs: Sequence[Any], beam: int | None = None) -> list[list[Prediction]]:
        return self.answer(model, inputs, Answering(beam or self.recipe.search.beam_size))

    def answer(self, model: Generator, inputs: Sequence[Any], ask: Answering) -> list[list[Prediction]]:
        """The answers to each input, best first, searched for as asked."""
        found = self.searched(model, inputs, ask)
        return [[self.read_answer(one, ask, seconds) for one in hypotheses] for hypotheses, seconds in found]

    def pieces(self, model: Generator, given: Any, ask: Answering) -> Iterator[str]:
        """The answer to one input as it is written: the likeliest token each time, or drawn."""
        longest, end, own = self.limits()
        encoded, steps = self.encode_inputs([given]), ask.max_length or longest
        with torch.no_grad():
            state = model.initial_state(1, *self.about(encoded, [0]))
        text, (rules, stops) = Pieces(self.target.decode, ask.rules.stop), self.rules(ask, 1, steps)
        for [pick] in stream(
            model.stepper(),
            likeliest if ask.sampling is None else drawing(ask.sampling, 1, 1),
            torch.full((1, 1), START, device=device_of(model)),
            state,
            steps=steps,
            end=end,
            constraints=[*own, *rules],
            stops=stops,
            patience=self.patience(ask, 1),
        ):
            if pick.finish != "end" and (piece := text.add(pick.token)):
                yield piece
        if rest := text.finish():
            yield rest

    def rules(self, ask: Answering, rows: int, steps: int) -> tuple[list[Constraint], list[Stop]]:
        allowed = replace(ask.rules, allow_unknown=ask.rules.allow_unknown or self.recipe.search.allow_unknown)
        return allowed.constraints(self.target, rows, steps), allowed.stops(self.target)

    def meaning(self, ask: Answering) -> Callable[[Hypothesis], str]:
        """Answers mean the same if their texts do, however they are cut into tokens and spaced."""
        return lambda one: " ".join(self.read_answer(one, ask, 0.0).output.split())

    def read_out(self, found: Hypothesis) -> Written:
        return self.read_answer(found, Answering(1), 0.0)

    def read_answer(self, found: Hypothesis, ask: Answering, seconds: float) -> Written:
        names, text = self.target.names, self.target.decode(found.tokens)
        if found.finish == "stop":  # a stop may begin in the middle of a token
            text = text[: min(place for stop in ask.rules.stop if stop and (place := text.find(stop)) >= 0)]
        others = [
            dict(zip(names([token for token, _ in step]), [log for _, log in step], strict=True))
            for step in found.alternatives
        ]
        return Written(text, found.score, names(found.tokens), found.logs, found.finish, seconds, others)
