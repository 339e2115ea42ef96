"""Lesson 2: the mean of all vectors so far."""

from torch import nn

from seqloom.layers import Cell


class RunningMean(Cell):
    """m_t = m_{t−1} + (W x_t + b − m_{t−1}) / t; the state is the mean and how many vectors it is of."""

    entries = ("mean", "count")

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.sizes = (size, 1)
        self.W = nn.Linear(inputs, size)

    def forward(self, x, entries):
        mean, count = entries
        count = count + 1
        return mean + (x - mean) / count, count
