"""Whether order matters: the loss with the elements shuffled, and of two inputs that differ in order alone."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..models import Batch, Generator, Labeller
from .reading import loss, quiet

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class OrderMatters:
    """The mean surprise at the target as it is, and with what is read in so many random orders."""

    ordered: float
    shuffled: Floats  # (orders,)

    @property
    def cost(self) -> float:
        """How much more surprised the model is without the order."""
        return float(self.shuffled.mean() - self.ordered) if len(self.shuffled) else 0.0


def order_matters(model: Labeller | Generator, batch: Batch, orders: int = 5, seed: int = 0) -> OrderMatters:
    """Of a model that writes about a source, the source is shuffled.

    One that writes about nothing is asked what comes last in each row, after all it read but the latest was shuffled.
    """
    chance = torch.Generator().manual_seed(seed)
    with quiet(model), torch.no_grad():
        plain = _value(model, batch)
        found = [_value(model, _shuffled(model, batch, chance)) for _ in range(orders)]
    return OrderMatters(plain, np.array(found))


def _value(model: Labeller | Generator, batch: Batch) -> float:
    if isinstance(model, Generator) and not batch.source:
        features, _ = model.features(batch.inputs, model.start(len(batch.inputs)), batch.mask)
        ends = batch.mask & (batch.mask.flip(1).cumsum(1).flip(1) == 1)
        total, count = model.head.loss(features, batch.target, ends)
        return float(total / count.clamp(min=1))
    return float(loss(model, batch))


def _shuffled(model: Labeller | Generator, batch: Batch, chance: torch.Generator) -> Batch:
    if batch.source:
        elements, mask = batch.source
        return batch._replace(source=(shuffle(elements, mask, chance), mask))
    if isinstance(model, Labeller):
        target = batch.target
        if model.each:  # each label goes with its element
            order = shuffled_places(batch.mask, chance)
            return batch._replace(inputs=_take(batch.inputs, order), target=_take(target, order))
        return batch._replace(inputs=shuffle(batch.inputs, batch.mask, chance))
    before = batch.mask & (batch.mask.flip(1).cumsum(1).flip(1) > 1)
    return batch._replace(inputs=shuffle(batch.inputs, before, chance))


def shuffled_places(mask: Tensor, chance: torch.Generator) -> Tensor:
    """For each row, where to take each element from: those that the mask shows change places among themselves."""
    draws = torch.rand(mask.shape, generator=chance).to(mask.device)
    order = torch.arange(mask.shape[1], device=mask.device).expand_as(mask).clone()
    for row, shown in enumerate(mask):
        places = shown.nonzero()[:, 0]
        order[row, places] = places[draws[row, places].argsort()]
    return order


def shuffle(elements: Tensor, mask: Tensor, chance: torch.Generator) -> Tensor:
    return _take(elements, shuffled_places(mask, chance))


def _take(elements: Tensor, order: Tensor) -> Tensor:
    rows = torch.arange(len(order), device=order.device)[:, None]
    return elements[rows, order]


def minimal_pair(model: Labeller | Generator, one: Batch, other: Batch) -> tuple[float, float]:
    """The mean surprise at the target of each: a model that knows order finds the right one less surprising."""
    with quiet(model), torch.no_grad():
        return float(loss(model, one)), float(loss(model, other))
