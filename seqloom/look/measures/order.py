"""Whether order matters: the loss with the elements shuffled, and of two inputs that differ in order alone."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...arrays import Floats
from ...models import Batch, Generator, Labeler
from .reading import compute_loss, disable_dropout, take_row


@dataclass(frozen=True)
class OrderSensitivity:
    """The mean surprise at the target as it is, and with what is read in so many random orders."""

    ordered: float
    shuffled: Floats  # (orders,)

    @property
    def cost(self) -> float:
        """How much more surprised the model is without the order."""
        return float(self.shuffled.mean() - self.ordered) if len(self.shuffled) else 0.0


@dataclass(frozen=True)
class Swaps:
    """How much more surprised the model is at the target when two neighbors of what it read change places."""

    elements: list[str]
    costs: Floats  # (elements − 1,), of the pair that begins at each


def measure_order_sensitivity(
    model: Labeler | Generator, batch: Batch, orders: int = 5, seed: int = 0
) -> OrderSensitivity:
    """Of a model that writes about a source, the source is shuffled.

    One that writes about nothing is asked what comes last in each row, after all it read but the latest was shuffled.
    """
    chance = torch.Generator().manual_seed(seed)
    with disable_dropout(model), torch.no_grad():
        plain = _compute_loss(model, batch)
        losses = [_compute_loss(model, _shuffle_inputs(model, batch, chance)) for _ in range(orders)]
    return OrderSensitivity(plain, np.array(losses))


def measure_swaps(model: Labeler | Generator, batch: Batch, elements: list[str], at_most: int = 60) -> Swaps:
    """On the first row of the batch: a minimal pair for every two neighbors. Of a model that writes freely, what
    comes last stays; of a long sequence, its end is looked at."""
    batch = take_row(batch)
    read = batch.source[0] if batch.source else batch.inputs
    last = read.shape[1] - (model.generates and not batch.source)
    first = max(0, last - at_most)
    with disable_dropout(model), torch.no_grad():
        plain = _compute_loss(model, batch)
        increases = [
            _compute_loss(model, _swap_neighbors(model, batch, place)) - plain for place in range(first, last - 1)
        ]
    return Swaps(elements[first : first + len(increases) + 1], np.array(increases))


def _swap_neighbors(model: Labeler | Generator, batch: Batch, place: int) -> Batch:
    length = (batch.source[0] if batch.source else batch.inputs).shape[1]
    order = torch.arange(length)
    order[place], order[place + 1] = place + 1, place
    if batch.source:
        return batch._replace(source=(batch.source[0][:, order], batch.source[1]))
    target = batch.target[:, order] if _has_labels(model) else batch.target
    return batch._replace(inputs=batch.inputs[:, order], target=target)


def _has_labels(model: Labeler | Generator) -> bool:
    """Whether every element has a label, which goes where it goes."""
    return model.per_element and not model.generates and model.head.outcome != "alignment"


def _compute_loss(model: Labeler | Generator, batch: Batch) -> float:
    if model.generates and not batch.source:
        features = model.read(batch)
        ends = batch.mask & (batch.mask.flip(1).cumsum(1).flip(1) == 1)
        total, count = model.head.loss(features, batch.target, ends)
        return float(total / count.clamp(min=1))
    return float(compute_loss(model, batch))


def _shuffle_inputs(model: Labeler | Generator, batch: Batch, chance: torch.Generator) -> Batch:
    if batch.source:
        elements, mask = batch.source
        return batch._replace(source=(shuffle(elements, mask, chance), mask))
    if not model.generates:
        if _has_labels(model):
            order = shuffle_places(batch.mask, chance)
            return batch._replace(inputs=_take(batch.inputs, order), target=_take(batch.target, order))
        return batch._replace(inputs=shuffle(batch.inputs, batch.mask, chance))
    before = batch.mask & (batch.mask.flip(1).cumsum(1).flip(1) > 1)
    return batch._replace(inputs=shuffle(batch.inputs, before, chance))


def shuffle_places(mask: Tensor, chance: torch.Generator) -> Tensor:
    """For each row, where to take each element from: those that the mask shows change places among themselves."""
    draws = torch.rand(mask.shape, generator=chance).to(mask.device)
    order = torch.arange(mask.shape[1], device=mask.device).expand_as(mask).clone()
    for row, shown in enumerate(mask):
        places = shown.nonzero()[:, 0]
        order[row, places] = places[draws[row, places].argsort()]
    return order


def shuffle(elements: Tensor, mask: Tensor, chance: torch.Generator) -> Tensor:
    return _take(elements, shuffle_places(mask, chance))


def _take(elements: Tensor, order: Tensor) -> Tensor:
    rows = torch.arange(len(order), device=order.device)[:, None]
    return elements[rows, order]
