"""What a diagnosis is made from and of: a `Checkup` of measurements, and a `Finding`."""

from dataclasses import dataclass, field
from typing import Any

from ..recipe import Recipe
from .anatomy import Anatomy
from .schedules import Curves


@dataclass(frozen=True)
class Finding:
    """Something that ails the model."""

    name: str
    severity: float  # 0 to 1: findings are ranked by it
    says: str  # one sentence with the numbers in it
    measured: dict[str, float]
    change: str = ""  # what to type, such as train.clip=1; empty where no setting helps
    why: str = ""


@dataclass(frozen=True)
class Checkup:
    """Everything that is known about a run."""

    recipe: Recipe
    anatomy: Anatomy
    curves: Curves
    skipped: int = 0  # steps that changed nothing because something was not finite
    scores: dict[str, Any] = field(default_factory=dict)  # by name: value, better, baselines; as scores.json holds them
    data: dict[str, Any] = field(default_factory=dict)  # the data's report, as data.json holds it

    @property
    def learnt(self) -> float:
        """The share of its first training loss that the model has got rid of; 0 where nothing is known."""
        losses = self.curves.training[:, 1]
        return float(1 - losses.min() / losses[0]) if len(losses) and losses[0] > 0 else 0.0
