"""A state that grows: without gradient in place, into room that was made beforehand."""

from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor

from .padding import everywhere, take
from .state import Change, Leaf


class Store:
    """Tensors (B, room, ...) of which the first `filled` steps are written. The states that grew in it point to it."""

    def __init__(self, tensors: tuple[Tensor, ...], filled: int) -> None:
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
        valid = everywhere(steps) if mask is None else mask
        padded = self.padded or mask is not None
        if torch.is_grad_enabled():  # what autograd has seen must not be written to
            before, known = self.read()
            return Cache.of(torch.cat([before, steps], 1), torch.cat([known, valid], 1), padded)
        end, store = self.length + steps.shape[1], self.store
        if not store.claim(self.length, end):  # someone went on from here before, or there is no room
            store = self.moved(2 * end, end)
        for place, new in zip(store.tensors, (steps, valid), strict=True):
            place[:, self.length : end] = new
        return Cache(store, end, padded)

    def trimmed(self, keep: int) -> "Cache":
        """The cache without what lies further back than `keep` valid steps. It is cut only now and then."""
        if self.length <= 2 * keep:
            return self
        steps, valid = self.read()
        order = valid.byte().argsort(dim=1, stable=True)[:, -keep:]  # what is valid to the end
        return Cache.of(take(steps, order), take(valid, order), self.padded)

    def moved(self, room: int, filled: int) -> Store:
        places = tuple(old.new_empty(old.shape[0], room, *old.shape[2:]) for old in self.store.tensors)
        for place, old in zip(places, self.read(), strict=True):
            place[:, : self.length] = old
        return Store(places, filled)

    def map(self, change: Change) -> "Cache":
        steps, valid = map(change, self.read())
        return Cache.of(steps, valid, self.padded)

    def select(self, rows: Tensor) -> "Cache":
        return self.kept(lambda tensor: tensor.index_select(0, rows))

    def repeat(self, times: int) -> "Cache":
        return self.kept(lambda tensor: tensor.repeat_interleave(times, 0))

    def kept(self, copy: Change) -> "Cache":
        """Like `map` for changes that copy: the room is kept as well."""
        return Cache(Store(tuple(map(copy, self.store.tensors)), self.length), self.length, self.padded)
