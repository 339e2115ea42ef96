"""Lesson 3: a Jordan network, whose output is what comes back."""

import torch
from torch import nn

from seqloom.layers import Cell


class Jordan(Cell):
    """h_t = tanh(W x_t + U y_{t−1} + b), y_t = V h_t."""

    entries = ("y",)

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, size), nn.Linear(size, size, bias=False)
        self.V = nn.Linear(size, size, bias=False)

    def forward(self, x, entries):
        (y,) = entries
        return (self.V(torch.tanh(x + self.U(y))),)

    def equations(self, x, entries):
        (y,) = entries
        h = torch.tanh(x @ self.W.weight.T + y @ self.U.weight.T + self.W.bias)
        return (h @ self.V.weight.T,)
