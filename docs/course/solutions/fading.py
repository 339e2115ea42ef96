"""Lesson 12: a GRU whose state fades by a learned share at every step."""

import torch
from torch import nn

from seqloom.layers import CELLS, Cell


class Fading(Cell):
    """ĥ = exp(−max(0, W_δ x + b_δ)) ⊙ h, then a step of a GRU from ĥ: one of the two decays of GRU-D."""

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.fade, self.gru = nn.Linear(inputs, size), CELLS["gru"](inputs, size)

    def forward(self, x, entries):
        (h,) = entries
        faded = torch.exp(-torch.relu(self.fade(x))) * h
        return self.gru(self.gru.W(x), (faded,))

    def equations(self, x, entries):
        (h,) = entries
        h = torch.exp(-(x @ self.fade.weight.T + self.fade.bias).clamp(min=0)) * h
        W, U = self.gru.W, self.gru.U
        (x_r, x_u, x_n), (h_r, h_u, h_n) = W(x).chunk(3, -1), U(h).chunk(3, -1)
        n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
        u = torch.sigmoid(x_u + h_u)
        return (u * h + (1 - u) * n,)
