"""Lesson 1: an autoregression of order two, as a cell."""

from torch import nn

from seqloom.layers import Cell


class AR2(Cell):
    """y_t = A x_t + B x_{t−1} + b; the state remembers the last input."""

    entries = ("y", "last")

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.sizes = (size, inputs)
        self.A, self.B = nn.Linear(inputs, size), nn.Linear(inputs, size, bias=False)

    def forward(self, x, entries):
        _, last = entries
        return self.A(x) + self.B(last), x

    def equations(self, x, entries):
        _, last = entries
        return x @ self.A.weight.T + last @ self.B.weight.T + self.A.bias, x
