"""Lesson 5: one gate between the old and the new, and it sees the cell state."""

import torch
from torch import nn

from seqloom.layers import Cell


class CoupledPeephole(Cell):
    """f = σ(W_f x + U_f h + p ⊙ c + b_f), c = f ⊙ c + (1 − f) ⊙ tanh(…), h = σ(…) ⊙ tanh(c)."""

    entries, gates = ("h", "c"), ("f", "o")

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, 3 * size), nn.Linear(size, 3 * size, bias=False)
        self.p = nn.Parameter(torch.zeros(size))

    def forward(self, x, entries):
        h, c = entries
        f, g, o = (x + self.U(h)).chunk(3, -1)
        f = self.gate("f", f + self.p * c)
        c = f * c + (1 - f) * g.tanh()
        return self.gate("o", o) * c.tanh(), c

    def equations(self, x, entries):
        h, c = entries
        f, g, o = (x @ self.W.weight.T + h @ self.U.weight.T + self.W.bias).chunk(3, -1)
        f = torch.sigmoid(f + self.p * c)
        c = f * c + (1 - f) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
