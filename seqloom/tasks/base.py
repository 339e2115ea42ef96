"""A task is the meaning around a model: which examples, how they are read, what a person sees, and how good it is.

To add one: a class in a file of its own, a line in `TASKS`, a recipe. Everything above (runs, commands) and below
(training, models) knows a task only by what stands here.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from torch import nn

from ..arguments import text
from ..config.recipe import Recipe
from ..errors import DataError
from ..fields import Prediction
from ..layers.cells import MakeCell
from ..metrics import Score
from ..models import Batch, Objective
from ..training.probe import Stopped

Tell = Callable[[str], object]  # what goes on, in a line for a person


class Report(Protocol):
    """What was done to the data, in numbers."""

    def to_json(self) -> dict[str, Any]: ...


class Prepared(Protocol):
    """The examples of all parts, read and turned into numbers. What they look like is the task's business."""

    @property
    def report(self) -> Report: ...

    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Scored:
    """A score of a model with the same score of what anyone could do without one."""

    score: Score
    baselines: dict[str, float]
    by_length: dict[str, Any] = field(default_factory=dict)  # of what is read: value and examples of some lengths


@dataclass(frozen=True)
class Question:
    """An example as it is asked."""

    given: Any  # what `predict` takes
    words: str  # the same for a person
    truth: str  # the right answer
    whole: Any = None  # what `look` takes, where that is not what `predict` takes
    target: Any = None  # the right answer in numbers, where it is numbers
    picture: Any = None  # what is to be seen, if it is a picture: (height, width, channels) of bytes


@dataclass(frozen=True)
class Shown:
    """One input and one answer as a batch of one row, with the names that a picture needs."""

    batch: Batch
    elements: list[str]  # what is read
    told: list[str]  # what is answered, element by element
    read: Sequence[str] = ()  # all symbols that can be read, by number
    symbols: Sequence[str] = ()  # all symbols or labels that can be told
    picture: Any = None  # the pixels (height, width, channels), if it is about a picture


class Task(ABC):
    """`recipe` is complete: what follows from the data has been filled in."""

    recipe: Recipe
    cell: MakeCell | None = None  # a person's own, in place of the recipe's; given in Python, never named in a file

    @classmethod
    def form(cls, recipe: Recipe) -> "type[Task]":
        """The class that does it: this one, or another where a task comes in several forms."""
        return cls

    @classmethod
    @abstractmethod
    def prepare(
        cls, recipe: Recipe, tell: Tell, examples: object = None, known: dict[str, Any] | None = None
    ) -> tuple[Self, Any]:
        """Learn how to read from the training examples, and read them all; what is `known`, as `saved` gave it, is not
        learned again.

        The examples are the recipe's, or such as were given from Python. What comes with the task is `Prepared`.
        """

    @classmethod
    @abstractmethod
    def restore(cls, recipe: Recipe, saved: dict[str, Any]) -> Self:
        """The task again, from what `saved` gave."""

    @abstractmethod
    def saved(self) -> dict[str, Any]:
        """What was learned from the examples, for JSON."""

    @abstractmethod
    def vocabularies(self) -> dict[str, int]:
        """The sizes that the model's first and last layers must have, by name."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A new model, its weights drawn at random."""

    def begin(self, model: Any, tell: Tell) -> None:
        """What a new model is given before its first step, beyond what was drawn."""
        return None

    @abstractmethod
    def objective(self, model: Any) -> Objective:
        """What training makes small."""

    @abstractmethod
    def order(self, prepared: Any, epoch: int) -> Sequence[Any]:
        """The rows of each batch of an epoch: a pure function of the seed and the epoch."""

    @abstractmethod
    def padded_share(self, prepared: Any) -> float:
        """How much of the training batches is padding."""

    @abstractmethod
    def batch(self, prepared: Any, rows: Any, split: str = "train") -> Batch: ...

    @abstractmethod
    def validate(self, model: Any, prepared: Any) -> dict[str, float]:
        """Quick scores on the validation examples, the loss among them."""

    @abstractmethod
    def examples(self, prepared: Any, split: str) -> Sequence[Any]:
        """The examples of a part as a person knows them, to be scored."""

    @abstractmethod
    def questions(self, examples: Sequence[Any], at_most: int) -> list[Question]:
        """Some of these examples, evenly over all of them, as a person would ask them."""

    def wrong(self, answer: Prediction, asked: Question) -> float:
        """How wrong an answer is: 0 or 1; of numbers, how far off."""
        return float(answer.output != asked.truth)

    @abstractmethod
    def read(self, files: Sequence[str]) -> Sequence[Any]:
        """The same of files of one's own, read as the recipe says."""

    @property
    def reads_text(self) -> bool:
        """Whether an input of `predict` is a text; otherwise inputs come from files, or from Python."""
        return True

    def accepted(self, given: Any) -> Any:
        """An input of `predict` that can be read, here a text; DataError says what was expected in place of another."""
        return text("an input", given)

    def inputs(self, file: str) -> Iterator[tuple[str, Any]]:
        """What a file asks, each question with what it is called: here, line by line."""
        for line in lines_of(file):
            yield line, line

    def unread(self, inputs: Sequence[Any]) -> list[int]:
        """How many elements of each input of `predict` lie behind what is read of it."""
        return [0] * len(inputs)

    def cut_in(self, examples: Sequence[Any]) -> int:
        """Of how many examples not all is read."""
        return 0

    @abstractmethod
    def score(self, model: Any, examples: Sequence[Any]) -> dict[str, Scored]:
        """All scores on these examples, each with its baselines beside it."""

    @abstractmethod
    def show(self, given: Any, answer: str) -> Shown:
        """An input and an answer, ready to be looked at."""

    @abstractmethod
    def predict(self, model: Any, inputs: Sequence[Any], beam: int | None = None) -> Sequence[Sequence[Prediction]]:
        """The best `width` answers to each input, best first; None is as many as the recipe says."""


def evenly(count: int, at_most: int) -> list[int]:
    """So many places out of `count`, evenly over all of them."""
    step = max(1, -(-count // max(at_most, 1)))
    return list(range(0, count, step))


def lines_of(file: str) -> Iterator[str]:
    """The lines of a text file, without their ends."""
    try:
        with open(file, "rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise DataError("is not UTF-8 text", file, number) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file) from None


class Feed:
    """The training part of a task's data, as the loop wants it. Trial steps end at the next batch after `stop`."""

    def __init__(self, task: Task, prepared: Prepared, stop: threading.Event | None = None) -> None:
        self.task, self.prepared, self.stop = task, prepared, stop

    def order(self, epoch: int) -> Sequence[Any]:
        return self.task.order(self.prepared, epoch)

    def batch(self, rows: Any) -> Batch:
        if self.stop is not None and self.stop.is_set():
            raise Stopped
        return self.task.batch(self.prepared, rows)
