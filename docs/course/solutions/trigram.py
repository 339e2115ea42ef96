"""Lesson 7: the first neural language model, which reads three words at a time."""

import torch
from torch import nn

from seqloom.layers import Cell


class Trigram(Cell):
    """h_t = tanh(A x_t + B x_{t−1} + C x_{t−2} + b): a net over a window (Bengio et al., 2003)."""

    entries = ("h", "last", "before")

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.sizes = (size, inputs, inputs)
        self.product = nn.Linear(3 * inputs, size)

    def forward(self, x, entries):
        _, last, before = entries
        return torch.tanh(self.product(torch.cat([x, last, before], -1))), x, last
