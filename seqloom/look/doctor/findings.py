"""What a diagnosis is made from and of: a `Checkup` of measurements, and a `Finding`."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...config.recipe import Recipe
from ...errors import SeqloomError
from ..measures.schedules import Curves, compute_learning_rates
from .anatomy import Anatomy
from .evidence import Evidence

NOTHING = Anatomy([], {}, [], {}, [], {})


class ShortTrials(Protocol):
    """Short trainings from the beginning, the way the run was trained but for some settings."""

    def after(self, *settings: str) -> float | None:
        """The loss that is left, with nothing changed or these; infinite if training broke off, none if not tried."""

    @property
    def by_heart(self) -> float:
        """What is left of the loss, as a share, when a few examples are read again and again."""


@dataclass(frozen=True)
class Finding:
    """Something that ails the model."""

    name: str
    severity: float  # 0 to 1: findings are ranked by it; above a half, it keeps the model from learning
    says: str  # one sentence with the numbers in it
    measured: dict[str, float]
    change: str = ""  # what to type, such as train.clip_norm=1 model.init_gain=1; empty where no setting helps
    why: str = ""

    @property
    def settings(self) -> list[str]:
        """What is to be typed, one setting at a time."""
        return self.change.split()


def can_change(recipe: Recipe, change: str) -> bool:
    """Whether the recipe takes these settings: not every kind and task has every one."""
    try:
        recipe.override(*change.split()).resolved()
    except SeqloomError:
        return False
    return True


@dataclass(frozen=True)
class Checkup:
    """Everything that is known about a run."""

    recipe: Recipe  # resolved
    anatomy: Anatomy
    curves: Curves
    skipped: int = 0  # steps that changed nothing because something was not finite
    scores: dict[str, Any] = field(default_factory=dict)  # on validation, as scores.json holds them
    data: dict[str, Any] = field(default_factory=dict)  # the data's report, as data.json holds it
    evidence: Evidence | None = None  # measured on the run's own training examples; none where they are not at hand
    trying: ShortTrials | None = None

    @property
    def skill(self) -> float:
        """The share of the surprise that the best weights took away from what reading nothing leaves, on validation.

        1 is all of it, 0 none. Without the examples at hand, training's first loss stands for reading nothing.
        """
        best = self.best_validation
        if best is None:
            return 0.0
        if self.evidence is not None:
            return compute_saved_share(best, self.evidence.blind)
        losses = self.curves.training[:, 1]
        return compute_saved_share(best, float(losses[0])) if len(losses) else 0.0

    @property
    def fitted(self) -> float:
        """The same of the training examples, as the kept weights answer them."""
        return 0.0 if self.evidence is None else compute_saved_share(self.evidence.loss, self.evidence.blind)

    @property
    def best_validation(self) -> float | None:
        losses = self.curves.validation[:, 1]
        return float(losses.min()) if len(losses) else None

    @property
    def late(self) -> float:
        """How much of the whole fall came on the second half of the way; the way is the sum of the learning rates.

        A half says that training stopped in full descent, next to nothing that it had arrived.
        """
        losses = self.curves.training
        if len(losses) < 8:
            return 0.0
        train = self.recipe.train.resolved()
        rates = compute_learning_rates(train, at_most=10**6)
        way = np.interp(losses[:, 0], rates.steps, np.cumsum(rates.rates))
        middle = int(np.searchsorted(way, way[-1] / 2))
        few = max(1, len(losses) // 20)
        first, half, end = (_average_around(losses[:, 1], place, few) for place in (0, middle, len(losses) - 1))
        return (half - end) / (first - end) if first > end else 0.0

    @property
    def rise(self) -> float:
        """How far above its lowest point the training loss ended, as a share of its whole fall."""
        losses = smooth(self.curves.training[:, 1])
        if len(losses) < 3:
            return 0.0
        fall = max(float(losses[0] - losses.min()), 0.02 * abs(float(losses[0])), 1e-9)
        return float(losses[-1] - losses.min()) / fall


def _average_around(losses: "np.ndarray[Any, Any]", place: int, few: int) -> float:
    return float(np.mean(losses[max(0, place - few) : place + few + 1])) if place else float(losses[0])


def smooth(losses: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The mean of a few records side by side: one batch may be harder than another."""
    few = max(1, len(losses) // 20)
    return np.convolve(losses, np.ones(few) / few, "valid") if len(losses) >= few else losses


def compute_saved_share(loss: float, blind: float) -> float:
    """The share of the blind loss that is gone; of a density's, which may be negative, what the spread has lost."""
    if blind > 0:
        return 1 - loss / blind
    return 1 - float(np.exp(min(loss - blind, 50.0)))
