"""How the answers of a task stand to what it reads, and all that follows from that: one class a shape.

This is what they have in common where examples are rows with sides. Knows sides by name, and fields as `Field`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..architectures import Architecture
from ..config.recipe import Recipe
from ..counts import format_count
from ..data import batching
from ..data.datasets import read_frame
from ..data.files import find_files
from ..data.formats.tables import SkippedRows
from ..data.inputs import InputFile, InputReading, read_inputs
from ..data.preprocess import NO_LIMIT
from ..data.preview import Preview
from ..data.ragged import Ragged
from ..data.readers import read_files
from ..errors import DataError, RecipeError
from ..fields import Field, Prediction
from ..fields.base import pick_evenly
from ..models import Batch
from .results import Example, Inspection, Predictions, ScoreWithBaselines

if TYPE_CHECKING:
    from .task import Task

ROOM = 16384  # padded elements that are read at once when nothing is trained
QUICK = 256  # validation examples that are written out each time
Encoded = dict[str, Ragged]  # by side


class Shape(ABC):
    """Made anew for every question to a task: it holds nothing but that task."""

    searches = False  # whether answers are searched for token by token
    answers_in_text = False  # whether such answers are texts

    def __init__(self, task: "Task") -> None:
        self.task = task

    @property
    def recipe(self) -> Recipe:
        return self.task.recipe

    @property
    def source(self) -> Field:
        return self.task.source

    # --- training ---

    @abstractmethod
    def settle(self, prepared: Any) -> Recipe:
        """The recipe with what follows from the data filled in; refused where the data does not fit the model."""

    @abstractmethod
    def build(self) -> nn.Module:
        """A new model, its weights drawn at random."""

    def initialize(self, model: Any, note: Callable[[str], object]) -> bool:
        """Begin with what is known about the training examples, where the settings ask for it, and say if it did."""
        return False

    def begin_head(self, model: Any, note: Callable[[str], object]) -> None:  # noqa: B027  # most begin at random
        """Begin a new head on a body that was taught before, where the settings ask for it."""

    @abstractmethod
    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        """The size of each example in a batch (N, sides)."""

    @abstractmethod
    def collate(self, encoded: Encoded, rows: Any) -> Batch: ...

    @abstractmethod
    def validate(self, model: Any, prepared: Any) -> dict[str, float]:
        """Quick scores on the validation examples, the loss among them."""

    def score(self, model: Any, examples: Sequence[Any]) -> dict[str, ScoreWithBaselines]:
        """What the metrics of the task measure; a task may have more scores than these."""
        return {}

    def order(self, prepared: Any, epoch: int) -> Sequence[Any]:
        """The rows of each batch of an epoch: a pure function of the seed and the epoch."""
        lengths, train = self.lengths(prepared.splits["train"].ids), self.recipe.train
        if not train.shuffle:
            return batching.batch_in_order(lengths, train.batch_tokens)
        return batching.plan_epoch(lengths, train.batch_tokens, train.seed, epoch)

    def padded_share(self, prepared: Any) -> float:
        """How much of the training batches is padding."""
        return batching.compute_padded_share(self.lengths(prepared.splits["train"].ids), self.order(prepared, 0))

    def batch(self, prepared: Any, rows: Any, split: str = "train") -> Batch:
        return self.collate(prepared.splits[split].ids, rows)

    @torch.no_grad()
    def loss(self, model: Any, encoded: Encoded) -> float:
        """The mean loss per target element."""
        objective, total, count = model.objective(), 0.0, 0
        for rows in batching.plan_scoring(self.lengths(encoded), ROOM):
            loss, elements, _ = objective(self.collate(encoded, rows))
            total, count = total + loss.item(), count + int(elements)
        return total / max(count, 1)

    # --- examples ---

    def encode(self, examples: Sequence[Sequence[Any]]) -> Encoded:
        columns = zip(self.task.fields.items(), zip(*examples, strict=True), strict=True)
        return {side: field.encode_many(raws) for (side, field), raws in columns}

    def examples(self, prepared: Any, split: str) -> Sequence[Any]:
        """The examples of a part as a person knows them, to be scored."""
        part = prepared.splits[split]
        columns = [map(field.restore, part.raws[side]) for side, field in self.task.fields.items()]
        return list(zip(*columns, strict=True))

    def preview(self, prepared: Any) -> list[Preview]:
        """Some training examples as they were read, and as the model sees them."""
        return prepared.examples

    def side_of(self, example: Sequence[Any], side: str) -> Any:
        """One side of an example."""
        return example[list(self.task.fields).index(side)]

    def input_of(self, example: Sequence[Any]) -> Any:
        """The input that `predict` would get."""
        return self.side_of(example, "source")

    def answer_of(self, example: Sequence[Any]) -> str:
        """The expected output of `predict`."""
        return self.task.target.describe(self.side_of(example, "target"))

    def pick_examples(self, examples: Sequence[Any], at_most: int) -> list[Example]:
        """Some of these examples, evenly over all of them, as a person would ask them."""
        return [self.example(examples[place]) for place in pick_evenly(len(examples), at_most)]

    def example(self, example: Sequence[Any]) -> Example:
        source, sides = self.source, zip(example, self.task.fields.values(), strict=True)
        pictures = (field.picture(raw) for raw, field in sides)
        return Example(
            input=self.input_of(example),
            text=source.describe(self.side_of(example, "source")),
            answer=self.answer_of(example),
            picture=next((picture for picture in pictures if picture is not None), None),
        )

    def error(self, prediction: Prediction, example: Example) -> float:
        """How wrong a prediction is: 0 or 1; of numbers, how far off."""
        return self.task.target.error(prediction, example.answer)

    def read_files(self, files: Sequence[str]) -> Sequence[Any]:
        """The examples of files, as the fields have them: two side by side, others and patterns one after another."""
        fields, groups = list(self.task.fields.values()), find_files(files, self.task.recipe.data.format)
        rows = (row for group in groups for row in read_files(group, self.task.schema, SkippedRows()))
        return [tuple(field.normalize(raw) for field, raw in zip(fields, row, strict=True)) for row in rows]

    # --- inputs ---

    @property
    def reads_text(self) -> bool:
        """Whether an input of `predict` is a text; otherwise inputs come from files, or from Python."""
        return self.source.is_text

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that a whole input may belong to, in the order of their probabilities, if there are any."""
        return ()

    def accept_input(self, raw: Any) -> Any:
        """An input of `predict` that can be read; DataError says what was expected in place of another."""
        return self.source.accept(raw)

    def split_inputs(self, raw: Any) -> list[Any] | None:
        """The inputs that a list, an array or a column of a data frame holds; None if all of it is one input."""
        if hasattr(raw, "columns"):
            sides = [name for name in self.task.schema.sides if name != "target"]
            return read_frame(raw, self.task.schema.only(*sides))
        return list(raw) if is_several(raw) and not self.source.is_one(raw) else None

    def read_inputs(self, file: str, reading: InputReading, skipped: SkippedRows) -> InputFile:
        """What a file asks, by the columns that were trained on."""
        return read_inputs(file, self.task.schema.only("source"), reading, skipped)

    def count_cut(self, examples: Sequence[Any]) -> int:
        """How many examples are longer than the model reads."""
        encoded = self.source.encode_many([self.side_of(example, "source") for example in examples])
        return sum(left > 0 for left in self.unread(encoded))

    @property
    def most(self) -> int:
        """The elements that are read of an input: as many as an example of training has at most."""
        return self.recipe.data.max_length if self.task.schema.limited else NO_LIMIT

    def unread(self, encoded: Ragged) -> list[int]:
        """How many elements of each input lie behind what is read of it."""
        return [max(length - self.most, 0) for length in encoded.lengths.tolist()]

    # --- answers ---

    @abstractmethod
    def predict(self, model: Any, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """The best `beam` answers to each input, best first; None is as many as the recipe says."""

    @abstractmethod
    def inspect(self, raw: Any, answer: str) -> Inspection:
        """An input and an answer, ready to be looked at."""


def group_references(shape: Shape, examples: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[str]]]:
    """Each input once, with all answers that are right."""
    inputs, references = dict[Any, Any](), dict[Any, list[str]]()
    for example in examples:
        raw = shape.input_of(example)
        key = raw.tobytes() if isinstance(raw, np.ndarray) else raw
        inputs.setdefault(key, raw)
        references.setdefault(key, []).append(shape.side_of(example, "target"))
    return list(inputs.values()), list(references.values())


def is_several(raw: Any) -> bool:
    """Whether something is a list, an array with an axis to go along, or a column of a data frame."""
    return isinstance(raw, list) or hasattr(raw, "to_list") or (hasattr(raw, "shape") and len(raw.shape) > 0)


def count_positions(body: Architecture) -> int:
    """How long a sequence a body can read."""
    return body.max_positions if body.kind == "transformer" and body.positions == "learned" else 10**6


def check_positions(name: str, body: Architecture, lengths: NDArray[np.int64], ahead: bool = False) -> None:
    """Refuse learned positions that do not reach as far as the training examples, and a window that hides nothing:
    one that counts an element and those before it or, where it may look `ahead`, those on each side."""
    check_window(name, body, lengths, ahead)
    longest = int(lengths.max(initial=0))
    if count_positions(body) < longest:
        raise RecipeError(
            f"model.{name}.max_positions is {body.max_positions}, but a training example has "
            f"{format_count(longest, 'element')} there"
        )


def check_window(name: str, body: Architecture, lengths: NDArray[np.int64], ahead: bool = False) -> None:
    """Refuse a window of self-attention that hides nothing of any training example."""
    longest, window = int(lengths.max(initial=0)), getattr(body, "window", 0)
    if window and longest and window >= longest - ahead:
        raise RecipeError(
            f"model.{name}.window is {window}, but no training example has more than "
            f"{format_count(longest, 'element')} there, so the "
            "window would hide nothing: leave it at 0, or choose a smaller one"
        )


def check_attention_window(body: Architecture, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
    """Refuse a local attention over a source that sees all of it from every step of every training example. One that
    predicts its center weighs what it sees by the distance, which changes something however wide it is."""
    if getattr(body, "local_attention", "none") != "monotonic":
        return
    furthest = int(np.maximum(sources - 1, targets).max(initial=0))
    if body.attention_window >= furthest:
        raise RecipeError(
            f"model.decoder.attention_window is {body.attention_window}, but in no training example an element of the "
            f"source is further than {furthest} from the step that looks at it, so the window would hide nothing: "
            'choose a smaller one, or local_attention "none"'
        )


def check_length(lengths: NDArray[np.int64], body: Architecture) -> None:
    """Refuse an input that reaches beyond the positions that a model has learned."""
    longest = int(lengths.max(initial=0))
    if count_positions(body) < longest:
        raise DataError(
            f"an input has {format_count(longest, 'token')}, but this model knows "
            f"{format_count(body.max_positions, 'position')}"
        )
