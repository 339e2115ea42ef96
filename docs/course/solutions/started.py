"""Lesson 8: a decoder that starts from the summary of a source."""

import torch
from torch import nn

from seqloom.layers import CELLS, Layer, Recurrent
from seqloom.layers.recurrent import ZeroState


class Started(Layer):
    """A GRU whose first state is tanh(B s), where s sums up what the encoder has read."""

    def __init__(self, size, summary):
        super().__init__()
        self.bridge = nn.Linear(summary, size)
        self.recurrence = Recurrent(CELLS["gru"](size, size), ZeroState())

    def initial_state(self, batch, memory=None):
        return (torch.tanh(self.bridge(memory.summary)),)

    def forward(self, x, state, mask=None):
        return self.recurrence(x, state, mask)
