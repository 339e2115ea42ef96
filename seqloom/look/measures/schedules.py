"""How training went and was meant to go: the learning rate of each step, and what the records say."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats
from ...config.recipe import Train
from ...training.schedules import learning_rate_at, teacher_forcing_at

Record = dict[str, Any]  # a line of records.jsonl


@dataclass(frozen=True)
class LearningRates:
    """The learning rate of each step, and the share of true elements that a decoder is given at it."""

    steps: NDArray[np.int64]
    rates: Floats
    truths: Floats


@lru_cache(maxsize=4)
def compute_learning_rates(settings: Train, at_most: int = 1000) -> LearningRates:
    """The rate of every step or, of a long training, of so many of them, the first and the last included."""
    settings = settings.resolved()
    steps = np.unique(np.linspace(1, max(settings.steps, 1), min(max(settings.steps, 1), at_most)).astype(int))
    rates, truths = ([at(step, settings) for step in steps.tolist()] for at in (learning_rate_at, teacher_forcing_at))
    return LearningRates(steps, np.array(rates), np.array(truths))


def compute_rectification(steps: int, beta: float = 0.999) -> Floats:
    """(N, 2): steps and the share of Adam's step that RAdam makes at each (Liu et al., 2020), which warms up by itself.

    Before the first of them it does not divide by the second moment at all: its variance is not known yet.
    """
    step = np.arange(1, steps + 1, dtype=np.float64)
    limit = 2 / (1 - beta) - 1
    length = limit - 2 * step * beta**step / (1 - beta**step)
    known = length > 5
    step, length = step[known], length[known]
    share = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return np.stack([step, np.sqrt(share)], 1)


@dataclass(frozen=True)
class Curves:
    """Training against validation. A number that was none is left out."""

    training: Floats  # (records, 2): step and loss
    validation: Floats  # (validations, 2)
    gradients: Floats  # (records, 2): step and the gradient's norm before clipping
    scores: dict[str, Floats]  # of the validations, by name, (validations, 2) each


def read_curves(records: Sequence[Record]) -> Curves:
    validations = [record for record in records if record.get("scores")]
    names = dict.fromkeys(name for record in validations for name in record["scores"])
    scores = {name: _make_points((r["step"], r["scores"].get(name)) for r in validations) for name in names}
    return Curves(
        _make_points((record["step"], record.get("loss")) for record in records),
        scores.pop("loss", np.zeros((0, 2))),
        _make_points((record["step"], record.get("gradient_norm")) for record in records),
        scores,
    )


def _make_points(pairs: Any) -> Floats:
    kept = [(step, value) for step, value in pairs if value is not None and np.isfinite(value)]
    return np.array(kept, float).reshape(-1, 2)
