"""Tasks that write texts about something, and how good these are beside what needs no model. Knows no files."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from ..data.prepare import Prepared
from ..data.tokenizers import Tokenizer
from ..models import Generator
from ..search import Hypothesis
from .about import About
from .base import Prediction, Scored
from .scoring import Measure, scored

QUICK = 256  # validation examples that are written out each time


@dataclass(frozen=True)
class Written(Prediction):
    """An answer token by token; it is ranked by the mean log-probability of a token."""

    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached


class Tells(About):
    @property
    def target(self) -> Tokenizer:
        return cast(Tokenizer, self.codecs["target"])

    @abstractmethod
    def measures(self) -> dict[str, Measure]: ...

    @abstractmethod
    def rivals(self, inputs: Sequence[Any]) -> dict[str, list[str]]:
        """What each baseline answers."""

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
        return scored(self.measures(), outputs, references, self.rivals(asked), self.whole_lengths(asked))

    def read_out(self, found: Hypothesis) -> Written:
        return Written(self.target.decode(found.tokens), found.score, self.target.names(found.tokens), found.logs)
