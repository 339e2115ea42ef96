"""A state that grows: without gradient in place, into room that was made beforehand."""

from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor

from .padding import full_mask, take_steps
from .state import Change, Leaf, Rows

LEAST = 16  # steps that there is room for, at least


class Store:
    """What was read, (B, room, D), of which the first `filled` steps are written. The states that grew in it point
    to it. Which of them are valid, (B, room), is only kept if any is not; room that is not written counts as valid."""

    def __init__(self, steps: Tensor, valid: Tensor | None, filled: int) -> None:
        self.steps, self.valid, self.filled, self.lock = steps, valid, filled, Lock()

    def claim(self, start: int, end: int) -> bool:
        """Whether the steps from start to end are free; if so, they are the caller's to write."""
        with self.lock:  # two threads may go on from one state
            free = self.filled == start and end <= self.steps.shape[1]
            self.filled = end if free else self.filled
        return free

    def mark(self, start: int, end: int, mask: Tensor) -> None:
        with self.lock:
            if self.valid is None:
                self.valid = full_mask(self.steps)
        self.valid[:, start:end] = mask


@dataclass(frozen=True, eq=False)
class Cache(Leaf):
    """Steps read so far, (B, length, D), and which of them are valid, (B, length)."""

    store: Store
    length: int
    padded: bool = False  # whether any step is invalid

    @classmethod
    def of(cls, steps: Tensor, valid: Tensor, padded: bool = False) -> "Cache":
        return cls(Store(steps, valid if padded else None, steps.shape[1]), steps.shape[1], padded)

    def read(self) -> tuple[Tensor, Tensor]:
        steps = self.store.steps[:, : self.length]
        valid = self.valid
        return steps, full_mask(steps) if valid is None else valid[:, : self.length]

    @property
    def valid(self) -> Tensor | None:
        """Which steps are valid, (B, room), if not all are."""
        return self.store.valid if self.padded else None

    def append(self, steps: Tensor, mask: Tensor | None) -> "Cache":
        """The cache with these steps too. This one stays as it is."""
        if torch.is_grad_enabled():  # what autograd has seen must not be written to
            before, known = self.read()
            valid = full_mask(steps) if mask is None else mask
            whole = torch.cat([before, steps], 1), torch.cat([known, valid], 1)
            return Cache.of(*whole, self.padded or mask is not None)
        cache = self.grow(steps.shape[1], mask)
        cache.store.steps[:, self.length : cache.length] = steps
        return cache

    def grow(self, count: int, mask: Tensor | None = None) -> "Cache":
        """The cache with so many steps more, which the caller has yet to write. Without gradient only."""
        end, store = self.length + count, self.store
        if not store.claim(self.length, end):  # someone went on from here before, or there is no room
            store = self.copy(None, max(2 * end, LEAST), end)
        if mask is not None:
            store.mark(self.length, end, mask)
        return Cache(store, end, self.padded or mask is not None)

    def trim(self, keep: int) -> "Cache":
        """The cache without what lies further back than `keep` valid steps. It is cut only now and then."""
        if self.length <= 2 * keep:
            return self
        steps, valid = self.read()
        order = valid.byte().argsort(dim=1, stable=True)[:, -keep:]  # what is valid to the end
        return Cache.of(take_steps(steps, order), take_steps(valid, order), self.padded)

    def map(self, change: Change) -> "Cache":
        steps, valid = map(change, self.read())
        return Cache.of(steps, valid, self.padded)

    def select(self, rows: Rows) -> "Cache":
        return self.only(rows.tensor)

    def repeat(self, times: int) -> "Cache":
        batch, device = self.store.steps.shape[0], self.store.steps.device
        return self.only(torch.arange(batch, device=device).repeat_interleave(times))

    def only(self, rows: Tensor) -> "Cache":
        if torch.is_grad_enabled():
            return self.map(lambda tensor: tensor.index_select(0, rows))
        return Cache(self.copy(rows, self.store.steps.shape[1], self.length), self.length, self.padded)

    def copy(self, rows: Tensor | None, room: int, filled: int) -> Store:
        """What is filled of these rows, or of all, with room for more; the room itself is not copied."""
        before = self.store.steps[:, : self.length]
        steps = before.new_empty(before.shape[0] if rows is None else rows.shape[0], room, before.shape[2])
        place = steps[:, : self.length]
        if rows is None:
            place.copy_(before)
        else:
            torch.index_select(before, 0, rows, out=place)
        store = Store(steps, None, filled)
        if self.valid is not None:
            known = self.valid[:, : self.length]
            store.mark(0, self.length, known if rows is None else known.index_select(0, rows))
        return store


def find_visible(cache: Cache, time: int, window: int) -> Tensor | None:
    """What each of the last `time` steps may see of all: (B, length) for one step, (B, time, length) for more."""
    _, valid = cache.read()
    if window:  # what is invalid takes no place in the window
        place = valid.cumsum(1)
        distance = place[:, -time:, None] - place[:, None]
        return valid[:, None] & (distance >= 0) & (distance < window)
    if time == 1:
        return valid if cache.padded else None
    past = torch.ones(time, cache.length, dtype=torch.bool, device=valid.device).tril(cache.length - time)
    return past & valid[:, None] if cache.padded else past[None]
