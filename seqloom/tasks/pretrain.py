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
from .packed_reading import BidirectionalReading, MaskedReading, PackedGeneration
from .scoring import Metric
from .task import Declaration, Task, check_per_symbol

SHOWN = 3  # blanks that are filled in after every validation


def declare(recipe: Recipe) -> Declaration:
    if recipe.train.objective == "causal":
        declaration = language.declare(recipe)
        return Declaration(**{**vars(declaration), "shape": PackedGeneration})
    data = recipe.data
    sides = {"target": text_side((data.target,), data.target_tokenizer)}
    return Declaration(
        schema=Schema(recipe.task, data, sides, dataset=Documents, ordered=is_text(data), limited=False),
        shape=MaskedReading if recipe.train.objective == "masked" else BidirectionalReading,
        facts=SymbolCounts,
        learn=language.learn,
        metrics=metrics,
        check=lambda task: check_per_symbol(task, counts=task.facts.counts),
        illustrate=illustrate,
    )


def metrics(task: Task) -> Mapping[str, Metric]:
    return {"perplexity": partial(perplexity, unit=task.target.unit)}


def illustrate(task: Task, model: Any, prepared: Any) -> str:
    """Blanks in held-out text, filled in by the model as it stands."""
    lines = []
    for example in task.pick_examples(task.examples(prepared, "validation"), SHOWN):
        [[best, *_]] = task.shape.fill(model, example.text, 1)
        lines.append(f"{example.text} → {best.output} ({best.probability:.0%})")
    return "filled in: " + "; ".join(" ".join(one.split()) for one in lines[:SHOWN]) if lines else ""
