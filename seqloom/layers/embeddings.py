"""From what a batch holds to vectors: the first layer."""

import torch
from torch import Tensor, nn


class Tokens(nn.Module):
    """A learnt vector for each of `symbols`. They start small and are scaled up, so that they can serve a head too."""

    def __init__(self, symbols: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(symbols, size) * size**-0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> (B, T, size)."""
        vectors: Tensor = self.dropout(nn.functional.embedding(tokens, self.weight) * self.weight.shape[1] ** 0.5)
        return vectors


class Patches(nn.Module):
    """An image as a sequence of squares, row by row, each through a learnt product (Dosovitskiy et al., 2021)."""

    def __init__(self, channels: int, side: int, size: int) -> None:
        super().__init__()
        self.side, self.product = side, nn.Linear(channels * side * side, size)

    def forward(self, image: Tensor) -> Tensor:
        """Image (B, channels, height, width) -> (B, patches, size). A square at the edge is filled up with zeros."""
        height, width = (-extent % self.side for extent in image.shape[2:])
        squares = nn.functional.unfold(nn.functional.pad(image, (0, width, 0, height)), self.side, stride=self.side)
        vectors: Tensor = self.product(squares.mT)
        return vectors


class Values(nn.Module):
    """Numbers through a learnt product: a series, a row of a table."""

    def __init__(self, numbers: int, size: int) -> None:
        super().__init__()
        self.product = nn.Linear(numbers, size)

    def forward(self, values: Tensor) -> Tensor:
        """Values (B, T, numbers) -> (B, T, size)."""
        vectors: Tensor = self.product(values)
        return vectors
