"""Pre-training on text without labels: a body that other tasks start from with `model.from`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..config.recipe import Recipe
from ..data.documents import Documents, is_text
from ..data.schema import Schema
from ..fields import text_side
from ..metrics import perplexity
from ..schemas import SymbolCounts
from . import language
from .document_reading import DocumentReading
from .packed_reading import BidirectionalReading, MaskedReading, PackedGeneration
from .scoring import Metric
from .shape import Shape
from .task import Declaration, Task, check_per_symbol

SHOWN = 3  # examples after every validation
SHAPES: dict[str, type[Shape]] = {
    "masked": MaskedReading,
    "bidirectional": BidirectionalReading,
    "document": DocumentReading,
}


def declare(recipe: Recipe) -> Declaration:
    if recipe.train.objective == "causal":
        declaration = language.declare(recipe)
        return Declaration(**{**vars(declaration), "shape": PackedGeneration})
    data = recipe.data
    sides = {"target": text_side((data.target,), data.target_tokenizer)}
    return Declaration(
        schema=Schema(recipe.task, data, sides, dataset=Documents, ordered=is_text(data), limited=False),
        shape=SHAPES[recipe.train.objective],
        facts=SymbolCounts,
        learn=language.learn,
        metrics=metrics,
        check=lambda task: check_per_symbol(task, counts=task.facts.counts),
        illustrate=illustrate,
    )


def metrics(task: Task) -> Mapping[str, Metric]:
    return {"perplexity": partial(perplexity, unit=task.target.unit)}


def illustrate(task: Task, model: Any, prepared: Any) -> str:
    """What the model as it stands predicts about held-out text."""
    return task.shape.illustrate(model, task.shape.pick_examples(task.shape.examples(prepared, "validation"), SHOWN))
