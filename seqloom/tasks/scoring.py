"""Answers to scores: each beside its baselines, and by how long what was read is. Knows answers, not what they are."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..metrics import Score, score_by_length
from .base import Scored

BINS, FEWEST = 4, 20  # of length, and examples in each


class Measure(Protocol):
    """How good answers are."""

    def __call__(self, told: Any, true: Any, /, *, intervals: bool = True) -> Score: ...


def scored(
    measures: Mapping[str, Measure],
    told: Sequence[Any],
    true: Sequence[Any],
    rivals: Mapping[str, Sequence[Any]],
    lengths: NDArray[np.int64],
) -> dict[str, Scored]:
    """Every measure of the answers and of what the rivals answer; `lengths` is of what was read for each."""
    bins = min(BINS, len(lengths) // FEWEST)

    def by_length(measure: Measure) -> dict[str, Any]:
        if bins < 2 or lengths.min() == lengths.max():
            return {}

        def of(rows: NDArray[np.int64]) -> Score:
            return measure([told[row] for row in rows], [true[row] for row in rows], intervals=False)

        found = score_by_length(lengths, of, bins=bins)
        names = (str(one.longest) if one.shortest == one.longest else f"{one.shortest}–{one.longest}" for one in found)
        return {name: {"value": one.score.value, "examples": one.count} for name, one in zip(names, found, strict=True)}

    return {
        name: Scored(
            measure(told, true),
            {rival: measure(answers, true, intervals=False).value for rival, answers in rivals.items()},
            by_length(measure),
        )
        for name, measure in measures.items()
    }
