"""What a run remembers of its training: its settings, and what its records tell. Reads no files and draws nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..config.recipe import Recipe
from .measures.schedules import Curves, LearningRates, Record, compute_learning_rates, read_curves
from .watching import WatchedTraining, read_watched


@dataclass(frozen=True)
class History:
    recipe: Recipe
    records: Sequence[Record] = ()  # the lines of records.jsonl
    scores: Mapping[str, Any] = field(default_factory=dict)  # the final ones by name, as scores.json holds them
    notes: Sequence[str] = ()  # what was said when they were read: of a line that a kill has cut

    @cached_property
    def curves(self) -> Curves:
        return read_curves(self.records)

    @cached_property
    def rates(self) -> LearningRates:
        return compute_learning_rates(self.recipe.train)

    @cached_property
    def watched(self) -> WatchedTraining:
        return read_watched(self.records)
