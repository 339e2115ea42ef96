"""What a task gives: examples as they are asked, predictions, what a chart is drawn from, and scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..fields import Prediction
from ..metrics import Score
from ..models import Batch


class Predictions(list[Prediction]):
    """The predictions for one input, best first, and how many elements of the input were not read."""

    def __init__(self, predictions: Iterable[Prediction], unread: int = 0) -> None:
        super().__init__(predictions)
        self.unread = unread

    @property
    def probabilities(self) -> dict[str, float]:
        """By class, as far as they are among the predictions."""
        return {name: value for one in self for name, value in one.get_class_probabilities().items()}


@dataclass(frozen=True)
class Example:
    """An example as it is asked."""

    input: Any  # what `predict` takes
    text: str  # the same for a person
    answer: str  # the right one
    inspected: Any = None  # what `inspect` takes, where that is not what `predict` takes
    target: Any = None  # the right answer in numbers, where it is numbers
    picture: Any = None  # what is to be seen, if it is an image: (height, width, channels) of bytes


@dataclass(frozen=True)
class Likelihood:
    """How probable a text is to a model: the log-probability of each token after those before it."""

    text: str
    tokens: list[str]  # with the end, where texts have one
    logs: list[float]
    unknown: int = 0  # tokens that are not in the vocabulary: the probability is that of any of them

    @property
    def log_probability(self) -> float:
        return sum(self.logs)

    @property
    def perplexity(self) -> float:
        """The perplexity per token."""
        return float(np.exp(-self.log_probability / len(self.logs)))


@dataclass(frozen=True)
class Inspection:
    """One input and one answer as a batch of one row, with the names that a chart needs."""

    batch: Batch
    elements: list[str]  # what is read
    answers: list[str]  # what is answered, element by element
    input_symbols: Sequence[str] = ()  # all symbols that can be read, by number
    output_symbols: Sequence[str] = ()  # all symbols or labels that can be answered
    picture: Any = None  # the pixels (height, width, channels), if an image is read


@dataclass(frozen=True)
class Lead:
    """By how much a baseline is better than the model: the 95 % interval of the difference."""

    baseline: str
    interval: tuple[float, float] | None  # None: there are too few examples to have one
    examples: int


@dataclass(frozen=True)
class ScoreWithBaselines:
    """A score of a model with the same score of what anyone could do without one."""

    score: Score
    baselines: dict[str, float]
    by_length: dict[str, Any] = field(default_factory=dict)  # of what is read: value and examples of some lengths
    ahead: Lead | None = None  # that of the best baseline, if it is better
