"""One step of the optimizer: the gradient of several batches together, looked at, clipped and used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.autograd.graph import increment_version

from ..config.recipe import Train
from ..layers.state import State, detach
from ..models import Batch, device_of
from .devices import autocast
from .optimizer import clip_gradients
from .processes import ProcessGroup, synchronize_gradients
from .tensors import gather_whole

ALONE = ProcessGroup()


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
    trained: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    settings: Train,
    state: State = None,
    ranks: ProcessGroup = ALONE,
    loss_scale: float = 1.0,
    held_back: Sequence[nn.Parameter] = (),
) -> Update:
    """One step on these batches together; none if the loss or the gradient is not finite.

    What half precision would lose on the way back is kept by a loss that is `magnified`; the gradient is not.

    The sums are backpropagated and the gradient is divided once by the count over all batches and processes: a mean of
    means would give a token in a short batch more weight. Clipping does not help against NaN, hence the look at the
    norm. What DDP and FSDP leave is the mean over the processes. What is `held_back` does not learn.
    """
    optimizer.zero_grad()
    loss, number, state = backpropagate(trained, batches, state, ranks, settings.precision, loss_scale)
    for parameter in held_back:  # without a gradient an optimizer leaves it as it is, to the bit
        parameter.grad = None
    loss, number = ranks.all_reduce(loss, number)
    count = loss_scale * max(number, 1.0) / ranks.count
    parameters = list(trained.parameters())
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = gather_whole(nn.utils.get_total_norm(gradients)).item() / count
    result = Update(loss, number, norm, state)
    if result.finite:
        clip_gradients(gradients, norm, count, settings)
        optimizer.step()
        # A fused optimizer changes weights without a trace; whoever keeps what he made of them is to notice.
        increment_version(parameters)
    return result


def backpropagate(
    trained: nn.Module,
    batches: Sequence[Batch],
    state: State = None,
    ranks: ProcessGroup = ALONE,
    precision: str = "float32",
    loss_scale: float = 1.0,
) -> tuple[float, float, State]:
    """Leave the gradient of the summed (and magnified) loss of all batches in the parameters; the sum itself, its count
    and the state after. The products on the way are in this precision.

    A batch that is not fresh goes on from the state of the one before, the first from the state that is given.
    """
    total = count = 0.0
    for number, batch in enumerate(batches, 1):
        part, weight = ranks.part(batch)
        with synchronize_gradients(trained, last=number == len(batches)):
            with autocast(device_of(trained), precision):
                loss, elements, state = trained(part, None if batch.starts_sequence else state)
            (loss if weight * loss_scale == 1 else loss * (weight * loss_scale)).backward()
        state = detach(state)
        total += loss.item() * weight
        count += elements.item() * weight
    return total, count, state


def count_tokens(batch: Batch) -> int:
    """The tokens of a batch, source and target, without padding; a source that goes on was counted before."""
    masks = [batch.mask, *(part for part in batch.source if part.dtype is torch.bool and batch.starts_sequence)]
    return sum(int(mask.sum()) for mask in masks)
