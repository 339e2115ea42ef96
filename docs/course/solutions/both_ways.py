"""Lesson 6: two recurrences that read in opposite directions, and the mean of what they say."""

from seqloom.layers import CELLS, Layer, Recurrent
from seqloom.layers.recurrent import ZeroState


class BothWays(Layer):
    causal = False

    def __init__(self, size):
        super().__init__()
        self.there = Recurrent(CELLS["gru"](size, size), ZeroState())
        self.back = Recurrent(CELLS["gru"](size, size), ZeroState())

    def forward(self, x, state, mask=None):
        there, _ = self.there(x, self.there.initial_state(len(x)), mask)
        back, _ = self.back(x.flip(1), self.back.initial_state(len(x)), None if mask is None else mask.flip(1))
        return (there + back.flip(1)) / 2, state
