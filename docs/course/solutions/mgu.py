"""Lesson 5: the minimal gated unit."""

import torch
from torch import nn

from seqloom.layers import Cell


class MGU(Cell):
    """f = σ(W_f x + U_f h + b_f), n = tanh(W_n x + U_n (f ⊙ h) + b_n), h = (1 − f) ⊙ h + f ⊙ n (Zhou et al., 2016)."""

    gates = ("f",)

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, 2 * size), nn.Linear(size, size, bias=False)
        self.U_n = nn.Linear(size, size, bias=False)

    def forward(self, x, entries):
        (h,) = entries
        x_f, x_n = x.chunk(2, -1)
        f = self.gate("f", x_f + self.U(h))
        return ((1 - f) * h + f * torch.tanh(x_n + self.U_n(f * h)),)

    def equations(self, x, entries):
        (h,) = entries
        W_f, W_n = self.W.weight.chunk(2)
        b_f, b_n = self.W.bias.chunk(2)
        f = torch.sigmoid(x @ W_f.T + h @ self.U.weight.T + b_f)
        n = torch.tanh(x @ W_n.T + (f * h) @ self.U_n.weight.T + b_n)
        return ((1 - f) * h + f * n,)
