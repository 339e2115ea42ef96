"""Masks (B, T): true where there is something to read, false where there is padding, wherever it stands."""

import torch
from torch import Tensor


def zero_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """x (B, T, ...) with zeros for padding: what is hidden must not reach a product, NaN times zero is NaN."""
    return x if mask is None else x.masked_fill(~mask.view(*mask.shape, *[1] * (x.dim() - 2)), 0)


def full_mask(x: Tensor) -> Tensor:
    """The mask of x (B, T, ...) without padding."""
    return x.new_ones(x.shape[:2], dtype=torch.bool)


def lengths_to_mask(lengths: Tensor, time: int) -> Tensor:
    """True up to each row's length."""
    return torch.arange(time, device=lengths.device) < lengths[:, None]


def is_right_padded(mask: Tensor) -> bool:
    """Whether all padding is on the right."""
    return not (mask[:, 1:] & ~mask[:, :-1]).any()


def to_front(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Two orders (B, T) for `take`: one brings what is valid to the front, one brings it back."""
    order = (~mask).byte().argsort(dim=1, stable=True)
    return order, order.argsort(1)


def take_steps(x: Tensor, order: Tensor) -> Tensor:
    """The elements of x (B, T, ...) in this order."""
    return x.gather(1, order.view(*order.shape, *[1] * (x.dim() - 2)).expand(-1, -1, *x.shape[2:]))


def first_step(mask: Tensor) -> Tensor:
    """Where each row begins: (B,)."""
    return mask.byte().argmax(1)


def last_step(mask: Tensor) -> Tensor:
    """Where each row ends: (B,)."""
    return mask.shape[1] - 1 - first_step(mask.flip(1))


def gather_steps(x: Tensor, where: Tensor) -> Tensor:
    """One element of each row: x (B, T, ...) -> (B, ...)."""
    return x[torch.arange(len(x), device=x.device), where]
