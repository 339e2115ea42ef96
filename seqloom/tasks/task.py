"""A task is the meaning around a model: which examples, how they are read, what a person sees, and how good it is.

To add one: a file with a function that declares it, a line in `TASKS`, a recipe. Everything above (runs, commands) and
below (training, models) knows a task only by what stands here.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from ..config.recipe import Recipe
from ..data.formats.tables import SkippedRows, drop_faults
from ..data.inputs import InputFile, InputReading, read_each
from ..data.prepare import prepare
from ..data.preprocess import Note
from ..data.schema import FieldKind, Schema
from ..errors import RecipeError, RunError
from ..fields import Field
from ..layers.cells import MakeCell
from ..models import Batch, Objective
from ..schemas import DataReport, JsonShape, check_shape
from ..training.probe import Stopped
from .generation import Continuation, Generation, SamplingOptions
from .mixture import Mixture
from .results import ScoreWithBaselines
from .scoring import Metric
from .shape import Shape


class TaskData(Protocol):
    """The examples of all parts, read and turned into numbers. What they look like is the business of the shape."""

    @property
    def fields(self) -> dict[str, Any]: ...

    @property
    def report(self) -> DataReport: ...

    @property
    def fingerprint(self) -> str: ...

    def sample_validation(self, tokens: int) -> "TaskData": ...


class Writer(Protocol):
    """What writes freely from a beginning, and makes files of what it wrote."""

    def generate(self, model: Any, prompt: str, options: SamplingOptions) -> Generation: ...

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """Shares of what was written that can be measured without a model; `known` texts are those of training."""

    def save(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """Write files that a person can use into a folder that is there; a line about each."""


def load_rows(recipe: Recipe, schema: Schema, note: Note, examples: object, known: dict[str, Field] | None) -> TaskData:
    """Examples that are rows with sides; `known` fields are not fitted again, and must know all labels."""
    prepared = prepare(schema if known is None else schema.reuse_fields(known), note=note, examples=examples)
    if known is not None:
        train = prepared.splits["train"]
        for side, field in prepared.fields.items():
            field.check_known(train.ids[side], train.raws[side], side)
    return prepared


def size_one_hot(recipe: Recipe, fields: Mapping[str, Field]) -> Recipe:
    """With one-hot vectors as long as the largest vocabulary that is read, where the recipe wants such."""
    if not recipe.model.one_hot:
        return recipe
    size = max(field.one_hot_size for side, field in fields.items() if side == "source" or recipe.use.decodes)
    if not size:
        raise RecipeError("model.one_hot is set, but nothing that is read has a vocabulary")
    return recipe.changed("model.embedding", size)


def measure_nothing(task: "Task", *of: Any) -> dict[str, Any]:
    """Of a task whose scores are none of those that its shape measures."""
    return {}


Load = Callable[[Recipe, Schema, Note, object, "dict[str, Field] | None"], TaskData]


class Mixing(NamedTuple):
    """What a task mixes into the answers of a trained net: how it is fitted, and how it is read from a run folder."""

    fit: "Callable[[Task, Any, Any], tuple[Mixture, list[str]] | None]"  # and a sentence on what each part brings
    load: "Callable[[Task, dict[str, Tensor], object], Mixture]"  # of tensors, and the place to name in an error


@dataclass(frozen=True)
class Declaration:
    """What a task consists of, for one recipe."""

    schema: Schema  # the sides of an example and the field of each
    shape: type[Shape]
    facts: type[JsonShape]  # what baselines learn from the training part, small enough for JSON
    learn: "Callable[[Task, Any], JsonShape]"
    baselines: "Callable[..., dict[str, Any]]" = measure_nothing  # what each of them answers, or its losses
    metrics: "Callable[..., Mapping[str, Metric]]" = measure_nothing
    quick: Mapping[str, Any] | None = None  # what a validation measures beside the loss
    more_scores: "Callable[[Task, Any, Any], dict[str, ScoreWithBaselines]] | None" = None
    writer: "Callable[[Task], Any] | None" = None  # of what writes freely
    mixing: "Mixing | None" = None  # what is fitted beside a trained net
    illustrate: "Callable[[Task, Any, Any], str] | None" = None  # what the model can do now, for a person
    check: "Callable[[Task], None] | None" = None  # that facts from a file fit the fields
    load: Load = load_rows

    def with_fields(self, fields: Mapping[str, FieldKind]) -> "Declaration":
        """The same with fields of one's own for some sides."""
        sides = dict(self.schema.sides)
        for side, field in fields.items():
            if side not in sides:
                raise RecipeError(
                    f"there is no side {side!r} for the field {field.kind!r}; there are {', '.join(sides)}"
                )
            sides[side] = sides[side]._replace(field=field)
        return replace(self, schema=replace(self.schema, sides=sides))

    def reuse_fields(self, fields: Mapping[str, Field]) -> "Declaration":
        """The same with fields that were fitted before, for some sides: they are not fitted again."""
        return replace(self, schema=self.schema.reuse_fields(fields)) if fields else self

    def prepare(
        self, recipe: Recipe, note: Note, examples: object = None, known: dict[str, Any] | None = None
    ) -> "tuple[Task, Any]":
        """Fit the fields on the training examples, and read them all; what is `known`, as `to_json` gave it, is not
        learned again. The examples are the recipe's, or such as were given from Python."""
        before = None if known is None else self.restore(recipe, known)
        prepared = self.load(recipe, self.schema, note, examples, before.fields if before else None)
        task = Task(self, size_one_hot(recipe, prepared.fields), prepared.fields)
        task.recipe = task.shape.settle(prepared)
        task.facts = self.learn(task, prepared) if before is None else before.facts
        task.prepared = prepared
        return task, prepared

    def restore(self, recipe: Recipe, saved: dict[str, Any]) -> "Task":
        """The task again, from what `to_json` gave."""
        fields, facts, sides = saved.get("fields"), saved.get("facts"), self.schema.sides
        if not isinstance(fields, dict) or not isinstance(facts, dict) or set(fields) != set(sides):
            raise RunError(f"task.json does not hold facts, and fields of {' and '.join(sides)}")
        facts = check_shape(self.facts, facts, "task.json, facts")
        task = Task(self, recipe, self.schema.read_fields(fields), facts)
        if self.check is not None:
            self.check(task)
        return task


class Task:
    """Fields and facts, composed as declared. `recipe` is complete: what follows from the data has been filled in."""

    def __init__(self, declaration: Declaration, recipe: Recipe, fields: dict[str, Any], facts: Any = None) -> None:
        self.declaration, self.recipe, self.fields, self.facts = declaration, recipe, fields, facts
        self.prepared: Any = None  # while the examples are at hand, for baselines that learn from them
        self.cell: MakeCell | None = None  # a person's own, in place of the recipe's; never named in a file

    @property
    def schema(self) -> Schema:
        return self.declaration.schema

    @property
    def shape(self) -> Any:
        """What reads, trains and answers: see `Shape`. Some can do more than that."""
        return self.declaration.shape(self)

    @property
    def writer(self) -> Any:
        """What generates freely, if the task does that."""
        return None if self.declaration.writer is None else self.declaration.writer(self)

    @property
    def source(self) -> Any:
        return self.fields["source"]

    @property
    def target(self) -> Any:
        return self.fields["target"]

    def to_json(self) -> dict[str, Any]:
        """What was learned from the examples."""
        fields = {side: field.to_json() for side, field in self.fields.items()}
        return {"fields": fields, "facts": self.facts.model_dump()}

    def sizes(self) -> dict[str, int]:
        """The sizes that the model's first and last layers must have, by name."""
        return {name: size for side, field in self.fields.items() for name, size in field.sizes(side).items()}

    # --- training ---

    def initialize(self, model: Any, note: Note) -> bool:
        """Begin words with the vectors of a file, where the recipe names one. Whether the model knows something about
        the targets already."""
        if file := self.recipe.data.vectors:
            field = self.fields.get("source", self.target)
            share = field.load_vectors(model.embedding_of("source"), file)
            note(f"{share:.0%} of the {len(field):,} words have a vector in {file}")
        if file := self.recipe.data.target_vectors:
            share = self.target.load_vectors(model.embed, file)
            note(f"{share:.0%} of the {len(self.target):,} words of the target have a vector in {file}")
        initialized: bool = self.shape.initialize(model, note)
        return initialized

    def objective(self, model: Any) -> Objective:
        """The training objective of a model."""
        return model.objective()

    def illustrate(self, model: Any, prepared: Any) -> str:
        """What the model makes of a few validation examples, in a sentence; nothing where that is not shown."""
        illustrate = self.declaration.illustrate
        return illustrate(self, model, prepared) if illustrate is not None else ""

    def fit_mixture(self, model: Any, prepared: Any) -> "tuple[Mixture, list[str]] | None":
        """What is mixed into what a trained net expects, where the recipe wants that; and what it brings."""
        mixing = self.declaration.mixing
        return None if mixing is None else mixing.fit(self, model, prepared)

    # --- examples and scores ---

    def score(self, model: Any, examples: Sequence[Any]) -> dict[str, ScoreWithBaselines]:
        """All scores on these examples, each with its baselines beside it."""
        scores, more = self.shape.score(model, examples), self.declaration.more_scores
        return scores if more is None else scores | more(self, model, examples)

    def judge(self, model: Any, examples: Sequence[Any]) -> dict[str, ScoreWithBaselines]:
        """The scores that decide between a model and its baselines: those of its answers, if there are such. What it
        writes freely is not written again; beside that stands what is real, which is no baseline."""
        return self.shape.score(model, examples) or self.score(model, examples)

    # --- answers ---

    @property
    def reads_images(self) -> bool:
        return "source" in self.fields and bool(self.source.is_image)

    @property
    def reads_named_files(self) -> bool:
        """Whether a file of its own holds an input."""
        return "source" in self.fields and bool(self.source.endings)

    def read_inputs(
        self, *names: str, reading: InputReading | None = None, skipped: SkippedRows | None = None
    ) -> InputFile:
        """What files ask, each input with its row; what was detected and passed over is added to `skipped`."""
        how, passed = reading or InputReading(), SkippedRows() if skipped is None else skipped
        return read_each(names, lambda file: self.shape.read_inputs(file, how, passed))

    def read_first_input(self, file: str) -> Any:
        """The first input of a file."""
        return next(drop_faults(self.read_inputs(file).inputs, file, False, SkippedRows(), "input")).value


def check_per_symbol(task: Task, **facts: Sequence[Any]) -> None:
    """Refuse facts from a file that are not one number for each symbol of the target."""
    for name, values in facts.items():
        if values and len(values) != (symbols := len(task.target)):
            raise RunError(f"task.json has {len(values)} {name}, but the target has {symbols} symbols")


class Feed:
    """The training part of a task's data, as the loop wants it. Trial steps end at the next batch after `stop`."""

    def __init__(self, task: Task, prepared: TaskData, stop: threading.Event | None = None) -> None:
        self.task, self.prepared, self.stop = task, prepared, stop

    def order(self, epoch: int) -> Sequence[Any]:
        return self.task.shape.order(self.prepared, epoch)

    def batch(self, rows: Any) -> Batch:
        if self.stop is not None and self.stop.is_set():
            raise Stopped
        return self.task.shape.batch(self.prepared, rows)
