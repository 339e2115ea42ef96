"""A task is the meaning around a model: which examples, how they are read, what a person sees, and how good it is.

To add one: a class in a file of its own, a line in `TASKS`, a recipe. Everything above (runs, commands) and below
(training, models) knows a task only by what stands here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from torch import nn

from ..data.prepare import Prepared
from ..layers.cells import MakeCell
from ..metrics import Score
from ..models import Batch, Objective
from ..recipe import Recipe

Tell = Callable[[str], object]  # what goes on, in a line for a person


@dataclass(frozen=True)
class Prediction:
    """One answer: what a person reads, and how sure the model is of it."""

    output: str
    score: float  # what answers are ranked by: the mean log-probability of a token
    tokens: list[str]
    logs: list[float]  # the log-probability of each token; one more for the end, if it was reached

    def __str__(self) -> str:
        return self.output


@dataclass(frozen=True)
class Scored:
    """A score of a model with the same score of what anyone could do without one."""

    score: Score
    baselines: dict[str, float]


class Task(ABC):
    """`recipe` is complete: what follows from the data has been filled in."""

    recipe: Recipe
    cell: MakeCell | None = None  # a person's own, in place of the recipe's; given in Python, never named in a file

    @classmethod
    @abstractmethod
    def prepare(cls, recipe: Recipe, tell: Tell) -> tuple[Self, Prepared]:
        """Learn how to read from the training examples, and read them all."""

    @classmethod
    @abstractmethod
    def restore(cls, recipe: Recipe, saved: dict[str, Any]) -> Self:
        """The task again, from what `saved` gave."""

    @abstractmethod
    def saved(self) -> dict[str, Any]:
        """What was learnt from the examples, for JSON."""

    @abstractmethod
    def vocabularies(self) -> dict[str, int]:
        """The sizes that the model's first and last layers must have."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A new model, its weights drawn at random."""

    @abstractmethod
    def objective(self, model: Any) -> Objective:
        """What training makes small."""

    @abstractmethod
    def order(self, prepared: Prepared, epoch: int) -> Sequence[Any]:
        """The rows of each batch of an epoch: a pure function of the seed and the epoch."""

    @abstractmethod
    def padded_share(self, prepared: Prepared) -> float:
        """How much of the training batches is padding."""

    @abstractmethod
    def batch(self, prepared: Prepared, rows: Any, split: str = "train") -> Batch: ...

    @abstractmethod
    def validate(self, model: Any, prepared: Prepared) -> dict[str, float]:
        """Quick scores on the validation examples, the loss among them."""

    @abstractmethod
    def read(self, files: Sequence[str]) -> list[tuple[str, str]]:
        """The examples of files of one's own, read as the recipe says."""

    @abstractmethod
    def score(self, model: Any, pairs: Sequence[tuple[str, str]]) -> dict[str, Scored]:
        """All scores on these examples, each with its baselines beside it."""

    @abstractmethod
    def predict(self, model: Any, inputs: Sequence[str], width: int) -> list[list[Prediction]]:
        """The best `width` answers to each input, best first."""

    @abstractmethod
    def example(self, source: str, target: str) -> tuple[Batch, list[str], list[str]]:
        """One example as a batch, with the names of what is read and of what is written, for pictures."""
