"""Lesson 4: an Elman network with ReLU that begins as a sum."""

import torch
from torch import nn

from seqloom.layers import Cell


class IRNN(Cell):
    """h_t = max(0, W x_t + U h_{t−1} + b), with U = I before training (Le et al., 2015)."""

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, size), nn.Linear(size, size, bias=False)
        nn.init.eye_(self.U.weight)

    def forward(self, x, entries):
        (h,) = entries
        return (torch.relu(x + self.U(h)),)

    def equations(self, x, entries):
        (h,) = entries
        return ((x @ self.W.weight.T + h @ self.U.weight.T + self.W.bias).clamp(min=0),)
