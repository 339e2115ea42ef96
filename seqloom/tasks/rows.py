"""Tasks whose examples are rows with sides: a source and a target, each with its field.

What is the same for all of them: preparing, saving, the order of the batches, reading files. Knows sides only by name.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures import Architecture
from ..config.recipe import Recipe
from ..data import batching
from ..data.formats.tables import Skipped
from ..data.prepare import Prepared, prepare
from ..data.preprocess import NO_LIMIT
from ..data.ragged import Ragged
from ..data.readers import read_files
from ..data.schema import Schema
from ..errors import DataError, RecipeError, RunError
from ..fields import Field, Text
from ..models import Batch, Generator, Labeler
from ..schemas import Shape, checked
from .base import Question, Task, Tell, evenly

ROOM = 16384  # padded elements that are read at once when nothing is trained
Encoded = dict[str, Ragged]  # by side


class Rows(Task):
    """`facts` is what baselines have learned from the training part, small enough for JSON."""

    learned: ClassVar[type[Shape]]  # the shape of the facts; numbers in a list are of the target's symbols

    def __init__(self, recipe: Recipe, fields: dict[str, Field], facts: dict[str, Any]) -> None:
        self.recipe, self.fields, self.facts = recipe, fields, facts
        self.prepared: Prepared | None = None  # while the examples are at hand, for baselines that learn from them

    @classmethod
    @abstractmethod
    def schema(cls, recipe: Recipe) -> Schema: ...

    @classmethod
    @abstractmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        """What follows from the data: settings that were left open, and what baselines know."""

    @abstractmethod
    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        """What each example takes in a batch: (N, sides)."""

    @abstractmethod
    def batch_of(self, encoded: Encoded, rows: Any) -> Batch: ...

    @classmethod
    def prepare(
        cls, recipe: Recipe, tell: Tell, examples: object = None, known: dict[str, Any] | None = None
    ) -> tuple[Self, Prepared]:
        schema = cls.schema(recipe) if known is None else cls.schema(recipe).knowing(cls.read_fields(recipe, known))
        prepared = prepare(schema, tell=tell, examples=examples)
        if known is not None:
            train = prepared.splits["train"]
            for side, field in prepared.fields.items():
                field.check_known(train.ids[side], train.raws[side], side)
        recipe, facts = cls.learn(recipe, prepared)
        task = cls(recipe, prepared.fields, facts if known is None else known["facts"])
        task.prepared = prepared
        return task, prepared

    @classmethod
    def restore(cls, recipe: Recipe, saved: dict[str, Any]) -> Self:
        return cls(recipe, cls.read_fields(recipe, saved), saved["facts"])

    @classmethod
    def read_fields(cls, recipe: Recipe, saved: dict[str, Any]) -> dict[str, Field]:
        """The fields of a task.json, which holds facts beside them."""
        found, facts, sides = saved.get("fields"), saved.get("facts"), cls.schema(recipe).sides
        if not isinstance(found, dict) or not isinstance(facts, dict) or set(found) != set(sides):
            raise RunError(f"task.json does not hold facts, and fields of {' and '.join(sides)}")
        checked(cls.learned, facts, "task.json, facts")
        fields = cls.schema(recipe).read_fields(found)
        symbols = len(fields["target"])
        for name, fact in facts.items():
            lists = [] if not isinstance(fact, list) else fact if fact and isinstance(fact[0], list) else [fact]
            if wrong := next((one for one in lists if one and len(one) != symbols), None):
                raise RunError(f"task.json has {len(wrong)} {name}, but the target has {symbols} symbols")
        return fields

    def begin(self, model: Labeler | Generator, tell: Tell) -> None:
        """Words may begin with vectors from a file."""
        file, source = self.recipe.data.vectors, self.fields.get("source", next(iter(self.fields.values())))
        if not file:
            return
        share = source.load_vectors(model.embedding_of("source"), file)
        tell(f"{share:.0%} of the {len(source.symbols):,} words have a vector in {file}")

    def saved(self) -> dict[str, Any]:
        return {"fields": {side: field.to_json() for side, field in self.fields.items()}, "facts": self.facts}

    def vocabularies(self) -> dict[str, int]:
        return {side: len(field) for side, field in self.fields.items()}

    def order(self, prepared: Prepared, epoch: int) -> Sequence[Any]:
        lengths, train = self.lengths(prepared.splits["train"].ids), self.recipe.train
        if not train.shuffle:
            return batching.as_they_stand(lengths, train.batch_tokens)
        return batching.order(lengths, train.batch_tokens, train.seed, epoch)

    def padded_share(self, prepared: Prepared) -> float:
        return batching.padded_share(self.lengths(prepared.splits["train"].ids), self.order(prepared, 0))

    def batch(self, prepared: Prepared, rows: Any, split: str = "train") -> Batch:
        return self.batch_of(prepared.splits[split].ids, rows)

    @torch.no_grad()
    def loss(self, model: Any, encoded: Encoded) -> float:
        """The mean loss of an element of the target."""
        objective, total, count = self.objective(model), 0.0, 0
        for rows in batching.sequential(self.lengths(encoded), ROOM):
            loss, elements, _ = objective(self.batch_of(encoded, rows))
            total, count = total + loss.item(), count + int(elements)
        return total / max(count, 1)

    def encode(self, examples: Sequence[Sequence[Any]]) -> Encoded:
        columns = zip(self.fields.items(), zip(*examples, strict=True), strict=True)
        return {side: field.encode_many(raws) for (side, field), raws in columns}

    def examples(self, prepared: Prepared, split: str) -> Sequence[Any]:
        return prepared.splits[split].examples()

    def questions(self, examples: Sequence[Any], at_most: int) -> list[Question]:
        some = [examples[place] for place in evenly(len(examples), at_most)]
        return [self.question(one) for one in some]

    def question(self, example: Sequence[Any]) -> Question:
        raw, source = example[0], self.fields["source"]
        text, picture = source.describe(raw), source.picture(raw)
        return Question(self.input_of(example), text, self.truth_of(example), picture=picture)

    def input_of(self, example: Sequence[Any]) -> Any:
        """What `predict` is asked with."""
        return example[0]

    def truth_of(self, example: Sequence[Any]) -> str:
        """What would be the right answer."""
        return str(example[1])

    def read(self, files: Sequence[str]) -> Sequence[Any]:
        found = read_files(files, self.schema(self.recipe), Skipped())
        fields = list(self.fields.values())
        return [tuple(field.normalize(raw) for field, raw in zip(fields, row, strict=True)) for row in found]

    def accepted(self, given: Any) -> Any:
        """As the source's field has it; what is written without a source goes on from a text."""
        if sentence := self.fields.get("source", Text).check(given):
            raise DataError(f"an input {sentence}")
        return given

    def inputs(self, file: str) -> Iterator[tuple[str, Any]]:
        """Lines of text; what is no text goes by its number."""
        if self.reads_text:
            yield from super().inputs(file)
            return
        found = read_files([file], self.schema(self.recipe).only("source"), Skipped())
        for number, [source] in enumerate(found, 1):
            yield str(number), source

    def cut_in(self, examples: Sequence[Any]) -> int:
        return sum(left > 0 for left in self.unread([self.input_of(example) for example in examples]))

    @property
    def most(self) -> int:
        """The elements that are read of an input: as many as an example of training has at most."""
        return self.recipe.data.max_length if self.schema(self.recipe).limited else NO_LIMIT

    def within(self, encoded: Ragged) -> Ragged:
        return encoded.cut(self.most)

    def beyond(self, encoded: Ragged) -> list[int]:
        """How much of each is left unread with that."""
        return [max(length - self.most, 0) for length in encoded.lengths.tolist()]

    def check_length(self, lengths: NDArray[np.int64], body: Architecture) -> None:
        """Refuse an input that reaches beyond the positions a model has learned."""
        longest = int(lengths.max(initial=0))
        if positions(body) < longest:
            raise DataError(f"an input has {longest} tokens, but this model knows {body.max_positions} positions")


def positions(body: Architecture) -> int:
    """How long a sequence a body can read."""
    return body.max_positions if body.kind == "transformer" and body.positions == "learned" else 10**6


def check_positions(name: str, body: Architecture, lengths: NDArray[np.int64]) -> None:
    """Refuse learned positions that do not reach as far as the training examples."""
    longest = int(lengths.max(initial=0))
    if positions(body) < longest:
        raise RecipeError(
            f"model.{name}.longest is {body.max_positions}, but a training example has {longest} elements there"
        )
