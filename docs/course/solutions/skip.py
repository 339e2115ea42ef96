"""Lesson 6: a deep recurrence with a way around every level."""

from seqloom.layers import CELLS, Layer, Recurrent
from seqloom.layers.base import Modules
from seqloom.layers.recurrent import ZeroState


class Skip(Layer):
    """x ← x + GRU(x), three times; the state is that of every level."""

    def __init__(self, size):
        super().__init__()
        self.levels = Modules([Recurrent(CELLS["gru"](size, size), ZeroState()) for _ in range(3)])

    def initial_state(self, batch, memory=None):
        return tuple(level.initial_state(batch) for level in self.levels)

    def forward(self, x, state, mask=None):
        x = x if mask is None else x.masked_fill(~mask[..., None], 0)
        after = []
        for level, before in zip(self.levels, state, strict=True):
            y, passed = level(x, before, mask)
            x = x + y
            after.append(passed)
        return x, tuple(after)
