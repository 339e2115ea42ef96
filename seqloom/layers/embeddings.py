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
