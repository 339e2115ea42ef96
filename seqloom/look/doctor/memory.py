"""How long a model remembers, in steps: how far back what it reads moves its answer or, where it has not learned to use
anything yet, how far back a gradient still reaches.

Both were held against recall at a distance (docs/doctor.md): what is learned at one distance is used from there, and a
model that failed at a distance would have learned nearer than the second number, and not further.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...models import Batch, Generator, Labeler
from ..measures.receptive_field import compute_influence_by_lag, compute_memory_length
from .perturbation import Perturbation, perturb_by_lag

ROWS = 16  # whose gradients are asked for
USES = 0.1  # the most that any swap moves the answer: below it, nothing that is read is used yet


@dataclass(frozen=True)
class MemoryReach:
    """By swaps of elements, and by gradients."""

    sway: Perturbation
    influence: NDArray[np.floating]

    @property
    def uses(self) -> bool:
        """Whether the answer depends on anything that is read."""
        return bool(len(self.sway.moved)) and bool(self.sway.moved.max() >= USES)

    @property
    def length(self) -> float:
        """The memory length, in steps."""
        return self.sway.length if self.uses else float(compute_memory_length(self.influence))


def measure_memory(model: Labeler | Generator, batch: Batch, also: Sequence[int] = ()) -> MemoryReach:
    """Of what the model reads step by step, counted back from the end of each row."""
    return MemoryReach(perturb_by_lag(model, batch, also), compute_influence_by_lag(model, batch.rows(slice(0, ROWS))))
