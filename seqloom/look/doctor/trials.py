"""Short trainings that a diagnosis may ask for: would this setting have helped? They leave no trace in the run."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter

import torch

from ...config.recipe import Recipe, Train
from ...errors import RecipeError, RunError
from ...models import Batch, Objective
from ...training.loop import Feed, Rows, evaluation_mode, fit
from ...training.probe import estimate_seconds
from ...training.randomness import preserve_random_state

STEPS = 120  # of a trial, at most
FEWEST = 12
TRIALS = 6  # about, that a diagnosis asks for
PROBED = 4  # batches on which the loss is taken afterwards
MEMORIZED = 8  # examples that are to be learned by heart

Make = Callable[[Recipe], tuple[Objective, Feed]]  # a new objective, its weights drawn by the seed, and its batches


class OneBatchFeed:
    """A feed of one small batch, again and again."""

    def __init__(self, batch: Batch) -> None:
        self.one = batch

    def order(self, epoch: int) -> Sequence[Rows]:
        return [torch.zeros(1, dtype=torch.long).numpy()]

    def batch(self, rows: Rows) -> Batch:
        return self.one


class Trials:
    """Trainings of a few seconds in all, in miniature: warm-up and schedule shrink with the number of steps."""

    def __init__(self, make: Make, recipe: Recipe, seconds: float) -> None:
        self._make, self._recipe, self._seconds = make, recipe, seconds
        self._known: dict[tuple[str, ...], float] = {}
        self._spent = 0.0

    @cached_property
    def steps(self) -> int:
        """As many as fit into the time there is, for so many trials."""
        objective, feed = self._make(self._recipe)
        train = self._recipe.train.resolved()
        step = estimate_seconds(objective, feed, train) / train.steps
        return max(FEWEST, min(STEPS, int(self._seconds / TRIALS / step)))

    def after(self, *settings: str) -> float | None:
        """The loss on a few batches after a trial with these settings changed, without dropout; infinite if training
        broke off, none if there is no time left or no such model."""
        if settings not in self._known:
            try:
                recipe = self._recipe.override(*settings) if settings else self._recipe
            except RecipeError:
                return None
            if self._spent > self._seconds:
                return None
            start = perf_counter()
            with preserve_random_state():
                objective, feed = self._make(recipe)
                batches = [feed.batch(rows) for rows in feed.order(0)[:PROBED]]
                self._known[settings] = _train(objective, feed, recipe.train, self.steps, batches)
            self._spent += perf_counter() - start
        return self._known[settings]

    @cached_property
    def by_heart(self) -> float:
        """What is left of the loss, as a share of the first, when a few examples are read again and again."""
        with preserve_random_state():
            objective, feed = self._make(self._recipe)
            order = feed.order(0)
            few = feed.batch(order[len(order) // 2]).rows(slice(0, MEMORIZED))
            first = _compute_loss(objective, [few])
            left = _train(objective, OneBatchFeed(few), self._recipe.train, STEPS, [few])
        return left / first if first > 0 else 1.0


def _train(objective: Objective, feed: Feed, train: Train, steps: int, probed: Sequence[Batch]) -> float:
    train = train.resolved()
    settings = {
        "steps": steps,
        "time": "",
        "warmup": max(1, round(train.warmup / max(train.steps, 1) * steps)),
        "validate_every": steps,
        "checkpoint_every": steps,
        "patience": 0,
    }
    try:
        for _ in fit(objective, feed, train.model_copy(update=settings), lambda: {"loss": 0.0}):
            pass
    except RunError:
        return math.inf
    left = _compute_loss(objective, probed)
    return left if math.isfinite(left) else math.inf


def _compute_loss(objective: Objective, batches: Sequence[Batch]) -> float:
    total = count = 0.0
    with evaluation_mode(objective):
        for batch in batches:
            loss, elements, _ = objective(batch)
            total, count = total + float(loss), count + float(elements)
    return total / max(count, 1.0)
