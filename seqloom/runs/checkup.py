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
from ..look.doctor.evidence import collect_evidence
from ..look.doctor.findings import NOTHING, Checkup
from ..look.doctor.trials import Trials
from ..look.measures.schedules import read_curves
from ..models import Batch, Generator, Labeler, Objective
from ..tasks.task import Feed, Task, TaskData
from ..training.randomness import preserve_random_state

COUNTED = 60  # batches that are read to be counted
EXAMINED = 16  # rows that the inside is measured on


@dataclass(frozen=True)
class RunFacts:
    """What a run's folder says without its examples."""

    records: Sequence[dict[str, Any]]
    scores: dict[str, Any]
    data: dict[str, Any]  # the report


def examine_run(
    task: Task, known: RunFacts, model: Labeler | Generator | None, prepared: TaskData | None, seconds: float
) -> Checkup:
    """Everything that can be known: without a trained model, of what training would begin with; without the examples,
    of the records alone."""
    recipe = task.recipe
    skipped = max((record["skipped"] for record in known.records), default=0)
    outside = Checkup(recipe, NOTHING, read_curves(known.records), skipped, known.scores, known.data)
    if prepared is None:
        return outside
    task.prepared = prepared  # a bag begins as naive Bayes, which counts the examples
    fresh = build_untrained(task, recipe)
    shown = fresh if model is None else model
    batches, drawn = pick_batches(task, prepared, recipe), pick_batches(task, prepared, enable_shuffling(recipe))
    return replace(
        outside,
        anatomy=examine(shown, batches[len(batches) // 2].rows(slice(0, EXAMINED))),
        evidence=collect_evidence(shown, fresh, batches, drawn),
        trying=Trials(lambda other: build_trial(task, prepared, other), recipe, seconds) if seconds else None,
    )


def pick_batches(task: Task, prepared: TaskData, recipe: Recipe) -> list[Batch]:
    """Batches of the first epoch, evenly over it."""
    changed = replace_recipe(task, recipe)
    order = changed.shape.order(prepared, 0)
    places = torch.linspace(0, len(order) - 1, min(len(order), COUNTED)).long().tolist()
    return [changed.shape.batch(prepared, order[place]) for place in places]


def enable_shuffling(recipe: Recipe) -> Recipe:
    return recipe if recipe.train.shuffle else recipe.override("train.shuffle=true")


def replace_recipe(task: Task, recipe: Recipe) -> Task:
    """The same task by another recipe."""
    other = copy.copy(task)
    other.recipe = recipe
    return other


def build_untrained(task: Task, recipe: Recipe) -> Labeler | Generator:
    """The model as it was before its first step."""
    other = replace_recipe(task, recipe)
    with preserve_random_state():
        torch.manual_seed(recipe.train.seed)
        model: Any = other.shape.build()
        other.initialize(model, lambda line: None)
    return model


def build_trial(task: Task, prepared: TaskData, recipe: Recipe) -> tuple[Objective, Feed]:
    other = replace_recipe(task, recipe)
    return other.objective(build_untrained(task, recipe)), Feed(other, prepared)
