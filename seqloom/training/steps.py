"""One step of the optimiser: the gradient of several batches together, looked at, clipped and used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ..layers.state import State, detach
from ..models import Batch, Objective
from ..recipe import Train
from .optimiser import scale


@dataclass(frozen=True)
class Update:
    """What one step has met: the summed loss over so many target tokens, the norm of its mean gradient, the state."""

    loss: float
    count: float
    norm: float
    state: State = None  # where the last batch has arrived

    @property
    def finite(self) -> bool:
        return math.isfinite(self.loss) and math.isfinite(self.norm)


def update(
    objective: Objective,
    optimiser: torch.optim.Optimizer,
    batches: Sequence[Batch],
    settings: Train,
    state: State = None,
) -> Update:
    """One step on these batches together; none if the loss or the gradient is not finite.

    The sums are backpropagated and the gradient is divided once by the count over all batches: a mean of means would
    give a token in a short batch more weight. Clipping does not help against NaN, hence the look at the norm.
    """
    optimiser.zero_grad()
    loss, count, state = backpropagate(objective, batches, state)
    gradients = [parameter.grad for parameter in objective.parameters() if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients).item() / max(count, 1.0)
    made = Update(loss, count, norm, state)
    if made.finite:
        scale(gradients, norm, max(count, 1.0), settings)
        optimiser.step()
    return made


def backpropagate(objective: Objective, batches: Sequence[Batch], state: State = None) -> tuple[float, float, State]:
    """Leave the gradient of the summed loss of all batches in the parameters; the sum, its count and the state after.

    A batch that is not fresh goes on from the state of the one before, the first from the state that is given.
    """
    total = count = 0.0
    for batch in batches:
        loss, number, state = objective(batch, None if batch.fresh else state)
        loss.backward()
        state = detach(state)
        total += loss.item()
        count += number.item()
    return total, count, state


def tokens_in(batch: Batch) -> int:
    """The tokens of a batch, source and target, without padding; a source that goes on was counted before."""
    masks = [batch.mask, *(part for part in batch.source if part.dtype is torch.bool and batch.fresh)]
    return sum(int(mask.sum()) for mask in masks)
