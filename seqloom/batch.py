"""A batch: what a model reads and is trained to predict, row by row."""

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor


class Batch(NamedTuple):
    """Rows side by side: what is read, the target, and the source that it is about."""

    inputs: Tensor  # (B, T, ...)
    mask: Tensor  # (B, T), true where the inputs are read and the target counts
    target: Tensor  # (B, T, ...) or, for a label per sequence, (B,)
    source: tuple[Tensor, ...] = ()  # the elements of the source and their mask
    starts_sequence: bool = True  # whether the rows begin here; else they go on from the batch before
    teacher_forced: Tensor | None = None  # (B, T), false where a generator reads its own last element; none: nowhere
    loss_mask: Tensor | None = None  # (B, T), where the target counts, if that is not everywhere that is read
    follows: Tensor | None = None  # (B,), 1 where the second segment of a row follows the first, 0 where it does not

    @classmethod
    def from_sequence(cls, y: Tensor, mask: Tensor, source: tuple[Tensor, ...] = ()) -> Self:
        """Every element of y is the target of those before it."""
        return cls(y[:, :-1], mask[:, :-1] & mask[:, 1:], y[:, 1:], source)

    def windows(self, length: int) -> "list[Batch]":
        """The batch in pieces, for truncated backpropagation."""
        spans = [slice(start, start + length) for start in range(0, max(1, self.mask.shape[1]), length)]
        return [
            self._replace(
                inputs=self.inputs[:, span],
                mask=self.mask[:, span],
                target=self.target[:, span],
                starts_sequence=self.starts_sequence and number == 0,
                teacher_forced=None if self.teacher_forced is None else self.teacher_forced[:, span],
                loss_mask=None if self.loss_mask is None else self.loss_mask[:, span],
            )
            for number, span in enumerate(spans)
        ]

    def to(self, device: torch.device) -> "Batch":
        """The batch on this device."""
        return self._map(lambda tensor: tensor.to(device))

    def rows(self, part: slice | Tensor) -> "Batch":
        """The batch with these rows only."""
        return self._map(lambda tensor: tensor[part])

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch with a function applied to every tensor."""
        return self._replace(
            inputs=change(self.inputs),
            mask=change(self.mask),
            target=change(self.target),
            source=tuple(map(change, self.source)),
            teacher_forced=None if self.teacher_forced is None else change(self.teacher_forced),
            loss_mask=None if self.loss_mask is None else change(self.loss_mask),
            follows=None if self.follows is None else change(self.follows),
        )
