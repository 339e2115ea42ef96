"""A state that grows: without gradient in place, into room that was made beforehand."""

from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor

from .padding import everywhere, take
from .state import Change, Leaf, Rows

LEAST = 16  # steps that there is room for, at least


class Store:
    """What was read, (B, room, D), and which of it is valid, (B, room): the first `filled` steps are written.

    Room that is not is marked valid. The states that grew in it point to it.
    """

    def __init__(self, tensors: tuple[Tensor, Tensor], filled: int) -> None:
        self.tensors, self.filled, self.lock = tensors, filled, Lock()

    def claim(self, start: int, end: int) -> bool:
        """Whether the steps from start to end are free; if so, they are the caller's to write."""
        with self.lock:  # two threads may go on from one state
            free = self.filled == start and end <= self.tensors[0].shape[1]
            self.filled = end if free else self.filled
        return free


@dataclass(frozen=True, eq=False)
class Cache(Leaf):
    """Steps read so far, (B, length, D), and which of them are valid, (B, length)."""

    store: Store
    length: int
    padded: bool = False  # whether any step is invalid

    @classmethod
    def of(cls, steps: Tensor, valid: Tensor, padded: bool = False) -> "Cache":
        return cls(Store((steps, valid), steps.shape[1]), steps.shape[1], padded)

    def read(self) -> tuple[Tensor, Tensor]:
        steps, valid = self.store.tensors
        return steps[:, : self.length], valid[:, : self.length]

    def append(self, steps: Tensor, mask: Tensor | None) -> "Cache":
        """The cache with these steps too. This one stays as it is."""
        if torch.is_grad_enabled():  # what autograd has seen must not be written to
            before, known = self.read()
            valid = everywhere(steps) if mask is None else mask
            whole = torch.cat([before, steps], 1), torch.cat([known, valid], 1)
            return Cache.of(*whole, self.padded or mask is not None)
        cache = self.grown(steps.shape[1], mask)
        cache.store.tensors[0][:, self.length : cache.length] = steps
        return cache

    def grown(self, count: int, mask: Tensor | None = None) -> "Cache":
        """The cache with so many steps more, which the caller has yet to write. Without gradient only."""
        end, store = self.length + count, self.store
        if not store.claim(self.length, end):  # someone went on from here before, or there is no room
            store = self.moved(max(2 * end, LEAST), end)
        if mask is not None:
            store.tensors[1][:, self.length : end] = mask
        return Cache(store, end, self.padded or mask is not None)

    def trimmed(self, keep: int) -> "Cache":
        """The cache without what lies further back than `keep` valid steps. It is cut only now and then."""
        if self.length <= 2 * keep:
            return self
        steps, valid = self.read()
        order = valid.byte().argsort(dim=1, stable=True)[:, -keep:]  # what is valid to the end
        return Cache.of(take(steps, order), take(valid, order), self.padded)

    def moved(self, room: int, filled: int) -> Store:
        steps, valid = self.read()
        places = steps.new_empty(steps.shape[0], room, *steps.shape[2:]), valid.new_ones(steps.shape[0], room)
        places[0][:, : self.length] = steps
        if self.padded:
            places[1][:, : self.length] = valid
        return Store(places, filled)

    def map(self, change: Change) -> "Cache":
        steps, valid = map(change, self.read())
        return Cache.of(steps, valid, self.padded)

    def select(self, rows: Rows) -> "Cache":
        return self.kept(rows.tensor)

    def repeat(self, times: int) -> "Cache":
        rows = torch.arange(len(self.store.tensors[0]) * times, device=self.store.tensors[0].device)
        return self.kept(rows // times)

    def kept(self, rows: Tensor) -> "Cache":
        """These rows of what is filled, copied; the room beyond is kept too."""
        if torch.is_grad_enabled():
            return self.map(lambda tensor: tensor.index_select(0, rows))
        steps, valid = self.read()
        room = self.store.tensors[0].shape[1]
        places = steps.new_empty(rows.shape[0], room, *steps.shape[2:]), valid.new_ones(rows.shape[0], room)
        torch.index_select(steps, 0, rows, out=places[0][:, : self.length])
        if self.padded:
            places[1][:, : self.length] = valid.index_select(0, rows)
        return Cache(Store(places, self.length), self.length, self.padded)
