"""Lesson 11: ELMo's mix of the levels of a deep recurrence."""

import torch
from torch import nn

from seqloom.layers import CELLS, Layer, Recurrent
from seqloom.layers.base import Modules
from seqloom.layers.recurrent import ZeroState


class Mix(Layer):
    """y = γ Σ_j s_j h_j: h_0 is the input, h_1 and h_2 are two LSTMs, s = softmax(w) (Peters et al., 2018)."""

    def __init__(self, size):
        super().__init__()
        self.levels = Modules([Recurrent(CELLS["lstm"](size, size), ZeroState()) for _ in range(2)])
        self.weights, self.gamma = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.ones(()))

    def initial_state(self, batch, memory=None):
        return tuple(level.initial_state(batch) for level in self.levels)

    def forward(self, x, state, mask=None):
        told = [x if mask is None else x.masked_fill(~mask[..., None], 0)]
        after = []
        for level, before in zip(self.levels, state, strict=True):
            y, passed = level(told[-1], before, mask)
            told.append(y)
            after.append(passed)
        mixed = sum(share * one for share, one in zip(self.weights.softmax(0), told, strict=True))
        return self.gamma * mixed, tuple(after)
