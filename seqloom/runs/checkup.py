"""From a run to what its diagnosis needs: the run's own training examples are read again and measured with its model,
and short trials are made ready. What the numbers mean is the business of `look.doctor`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..config.recipe import Recipe
from ..look.doctor.anatomy import examine
from ..look.doctor.evidence import gather
from ..look.doctor.findings import NOTHING, Checkup
from ..look.doctor.trials import Trials
from ..look.measures.schedules import curves
from ..models import Batch, Generator, Labeler, Objective
from ..tasks.task import Feed, Prepared, Task
from ..training.randomness import preserve_random_state

COUNTED = 60  # batches that are read to be counted
EXAMINED = 16  # rows that the inside is measured on


@dataclass(frozen=True)
class Known:
    """What a run's folder says without its examples."""

    records: Sequence[dict[str, Any]]
    scores: dict[str, Any]
    data: dict[str, Any]  # the report


def checkup(
    task: Task, known: Known, model: Labeler | Generator | None, prepared: Prepared | None, seconds: float
) -> Checkup:
    """Everything that can be known: without a trained model, of what training would begin with; without the examples,
    of the records alone."""
    recipe = task.recipe
    skipped = max((record["skipped"] for record in known.records), default=0)
    outside = Checkup(recipe, NOTHING, curves(known.records), skipped, known.scores, known.data)
    if prepared is None:
        return outside
    fresh = begun(task, recipe)
    shown = fresh if model is None else model
    batches, drawn = some_batches(task, prepared, recipe), some_batches(task, prepared, drawn_order(recipe))
    return replace(
        outside,
        anatomy=examine(shown, batches[len(batches) // 2].rows(slice(0, EXAMINED))),
        evidence=gather(shown, fresh, batches, drawn),
        trying=Trials(lambda changed: beginning(task, prepared, changed), recipe, seconds) if seconds else None,
    )


def some_batches(task: Task, prepared: Prepared, recipe: Recipe) -> list[Batch]:
    """Batches of the first epoch, evenly over it."""
    asked = changed(task, recipe)
    order = asked.order(prepared, 0)
    places = torch.linspace(0, len(order) - 1, min(len(order), COUNTED)).long().tolist()
    return [asked.batch(prepared, order[place]) for place in places]


def drawn_order(recipe: Recipe) -> Recipe:
    return recipe if recipe.train.shuffle else recipe.override("train.shuffle=true")


def changed(task: Task, recipe: Recipe) -> Task:
    """The same task by another recipe."""
    other = copy.copy(task)
    other.recipe = recipe
    return other


def begun(task: Task, recipe: Recipe) -> Labeler | Generator:
    """The model as it was before its first step."""
    other = changed(task, recipe)
    with preserve_random_state():
        torch.manual_seed(recipe.train.seed)
        model: Any = other.build()
        other.initialize(model, lambda line: None)
    return model


def beginning(task: Task, prepared: Prepared, recipe: Recipe) -> tuple[Objective, Feed]:
    other = changed(task, recipe)
    return other.objective(begun(task, recipe)), Feed(other, prepared)
