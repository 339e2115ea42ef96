"""One way to read with anything that reads: the two model shapes, an encoder, a bare layer.

Measures ask here for features and losses, and for the parts of a model by name. Nothing is recorded or drawn here, and
a model comes out as it went in: its mode, its gradients, and the chance that everything else draws from.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from ...layers.base import Encoder, Layer
from ...layers.description import DescribedModule
from ...layers.padding import full_mask, gather_steps, last_step
from ...models import INPUTS as INPUTS
from ...models import SOURCE as SOURCE
from ...models import Batch, Bodies, Generator, Labeler

Model = Labeler | Generator | Encoder | Layer
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Names:
    """What a person calls the elements of one example."""

    inputs: list[str]  # what is read, step by step
    target: list[str]  # what is to be told at each step, or the one label
    source: list[str]  # what is written about, if there is such a thing

    def of(self, side: str) -> list[str]:
        return self.source if side == SOURCE else self.inputs


def number_positions(batch: Batch) -> Names:
    """Positions as names, for those who have none."""
    shown = batch.source[1].shape[1] if batch.source else 0
    counts = [list(map(str, range(1, length + 1))) for length in (batch.mask.shape[1], shown)]
    return Names(counts[0], counts[0] if batch.target.dim() > 1 else [""], counts[1])


def make_batch(x: Tensor, mask: Tensor | None = None) -> Batch:
    """Vectors (B, T, D) for a bare layer, which has no target."""
    return Batch(x, full_mask(x) if mask is None else mask, x)


def take_row(batch: Batch, row: int = 0) -> Batch:
    """One row without its padding: a law says that padding changes nothing. At least one element wide."""
    inputs, mask = _remove_padding(batch.inputs[row : row + 1], batch.mask[row : row + 1])
    target = batch.target[row : row + 1]
    if batch.target.shape[:2] == batch.mask.shape:
        target, _ = _remove_padding(target, batch.mask[row : row + 1])
    source = tuple(part[row : row + 1] for part in batch.source)
    return Batch(inputs, mask, target, _remove_padding(*source) if source else ())


def _remove_padding(elements: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    if is_image(elements):
        return elements, mask
    places = mask[0].nonzero()[:, 0]
    places = places if len(places) else torch.zeros(1, dtype=torch.long, device=places.device)
    return elements[:, places], mask[:, places]


def is_image(elements: Tensor) -> bool:
    """Whether these are images (B, channels, height, width): the first layer cuts them into patches."""
    return elements.dim() == 4


def get_mask(batch: Batch, side: str) -> Tensor:
    return batch.source[1] if side == SOURCE else batch.mask


@contextmanager
def disable_dropout(model: nn.Module) -> Iterator[None]:
    """Without dropout, and with gradients, whatever was set before; afterwards as before.

    To a model that is not being trained nothing is done, so that many may look at once.
    """
    trained = [part for part in model.modules() if part.training]
    for part in trained:
        part.training = False
    try:
        with torch.enable_grad():
            yield
    finally:
        for part in trained:
            part.training = True


def copy_sharing_weights(model: M) -> M:
    """The model once more, with the very same weights: what is hung on its modules is seen by nobody else."""
    weights = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return deepcopy(model, weights)


class BareLayer:
    """A layer or an encoder by itself, asked like a model: it reads vectors, and it has no target."""

    per_element, generates, source, head = True, False, None, None

    def __init__(self, part: Encoder | Layer) -> None:
        self.part = part

    def objective(self) -> Callable[[Batch], tuple[Tensor, Tensor, None]]:
        """The sum of the last output stands for a loss."""

        def total(batch: Batch) -> tuple[Tensor, Tensor, None]:
            return gather_steps(self.read(batch), last_step(batch.mask)).sum(), torch.ones(()), None

        return total

    def embedding_of(self, side: str) -> nn.Module:
        return nn.Identity()

    def read(self, batch: Batch, vectors: Tensor | None = None, side: str = INPUTS) -> Tensor:
        return self.part.read(batch.inputs if vectors is None else vectors, batch.mask)

    def bodies(self) -> Bodies:
        return {INPUTS: ("", "", self.part)}


def wrap_model(model: Model) -> Labeler | Generator | BareLayer:
    """What answers for a model, whether it is whole or a part."""
    return BareLayer(model) if isinstance(model, DescribedModule) else model


def compute_features(model: Model, batch: Batch) -> Tensor:
    """What the model makes of the batch before its head: (B, T, D), or (B, D) for one label a sequence."""
    return wrap_model(model).read(batch)


def compute_loss(model: Model, batch: Batch) -> Tensor:
    """The mean loss of the target's elements; of a bare layer, which has none, the sum of its last output."""
    total, count, _ = wrap_model(model).objective()(batch)
    return total / count.clamp(min=1)


def list_bodies(model: Model) -> dict[str, tuple[str, DescribedModule]]:
    """The parts that read sequences: by the side they read, where they stand in the model, and the part."""
    return {side: (prefix.rstrip("."), body) for side, (_, prefix, body) in wrap_model(model).bodies().items()}


def name_body(model: Model, side: str) -> str:
    """What a person calls the part that reads this side."""
    return wrap_model(model).bodies()[side][0]
