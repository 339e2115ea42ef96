"""Short trainings that a diagnosis may ask for: would this setting have helped? They leave no trace in the run."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import torch

from ..errors import RecipeError, RunError
from ..models import Batch, Objective
from ..recipe import Recipe, Train
from ..training.loop import Feed, Rows, evaluating, fit
from ..training.probe import estimate
from ..training.randomness import undisturbed

STEPS = 80  # of a trial, at most
FEWEST = 12
PROBED = 4  # batches on which the loss is taken afterwards
HEART = 8  # examples that are to be learnt by heart
REPEATED = 2  # times as many steps for that

Make = Callable[[Recipe], tuple[Objective, Feed]]  # a new objective, its weights drawn by the seed, and its batches


class Few:
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

    @cached_property
    def steps(self) -> int:
        """As many as fit ten times into the time there is."""
        with undisturbed():
            objective, feed = self._make(self._recipe)
            train = self._recipe.train.resolved()
            step = estimate(objective, feed, train) / train.steps
        return max(FEWEST, min(STEPS, int(self._seconds / 10 / step)))

    @property
    def as_it_is(self) -> float:
        return self.after()

    def after(self, *settings: str) -> float:
        """The loss on a few batches after a trial with these settings changed, without dropout; infinite if it broke
        off or cannot be built."""
        if settings not in self._known:
            try:
                recipe = self._recipe.override(*settings) if settings else self._recipe
            except RecipeError:
                return math.inf
            with undisturbed():
                objective, feed = self._make(recipe)
                batches = [feed.batch(rows) for rows in feed.order(0)[:PROBED]]
                self._known[settings] = self._trained(objective, feed, recipe.train, self.steps, batches)
        return self._known[settings]

    @cached_property
    def by_heart(self) -> float:
        """What is left of the loss, as a share of the first, when a few examples are read again and again."""
        with undisturbed():
            objective, feed = self._make(self._recipe)
            order = feed.order(0)
            few = feed.batch(order[len(order) // 2]).rows(slice(0, HEART))
            first = _loss(objective, [few])
            left = self._trained(objective, Few(few), self._recipe.train, REPEATED * self.steps, [few])
        return left / first if first > 0 else 1.0

    def _trained(self, objective: Objective, feed: Feed, train: Train, steps: int, probed: Sequence[Batch]) -> float:
        share = train.resolved().warmup / max(train.resolved().steps, 1)
        settings = {
            "steps": steps,
            "time": "",
            "warmup": max(1, round(share * steps)),
            "validate_every": steps,
            "checkpoint_every": steps,
            "patience": 0,
        }
        try:
            for _ in fit(objective, feed, train.model_copy(update=settings), lambda: {"loss": 0.0}):
                pass
        except RunError:
            return math.inf
        left = _loss(objective, probed)
        return left if math.isfinite(left) else math.inf


def _loss(objective: Objective, batches: Sequence[Batch]) -> float:
    total = count = 0.0
    with evaluating(objective):
        for batch in batches:
            loss, elements, _ = objective(batch)
            total, count = total + float(loss), count + float(elements)
    return total / max(count, 1.0)
