"""What counting knows of each word, beside what a net makes of it: read with its vector, and handed on to the head."""

import torch
from torch import Tensor, nn

from .base import Layer, WrappedLayer
from .embeddings import Inputs, describe_inputs
from .fast.dropout import Dropout
from .padding import zero_padding
from .state import State


class LexiconEmbedding(nn.Module):
    """The vector of a word and, behind it, the row of it in a `table` that is counted and not learned.

    In training a word is taken for what it is read as where it is `unknown`, as often as its `doubt` says: what is rare
    is mostly new when it is met again, and its neighbors and letters have to be enough then (Kiperwasser and Goldberg,
    2016).
    """

    table: Tensor  # (words, features)
    doubt: Tensor  # (words,)
    unknown: Tensor  # (words,)

    def __init__(self, tokens: nn.Module, features: int, unknown: Tensor) -> None:
        super().__init__()
        self.tokens = tokens
        self.register_buffer("table", torch.zeros(len(unknown), features))
        self.register_buffer("doubt", torch.zeros(len(unknown)))
        self.register_buffer("unknown", unknown, persistent=False)

    def inputs(self) -> Inputs:
        return describe_inputs(self.tokens)

    def forward(self, x: Tensor) -> Tensor:
        """Words (B, T), or words and their letters (B, T, 1 + K) -> (B, T, size + features)."""
        spelled = x.dim() == 3
        words = x[..., 0] if spelled else x
        if self.training:
            doubted = torch.rand(words.shape, device=x.device) < self.doubt[words]
            words = torch.where(doubted, self.unknown[words], words)
            x = torch.cat([words[..., None], x[..., 1:]], -1) if spelled else words
        return torch.cat([self.tokens(x), self.table[words]], -1)


class SkipConcatenation(WrappedLayer):
    """A layer, and beside what it says the last `features` of what it reads. In training a share of what it says is
    left out, and nothing of the rest."""

    inside = "layer."

    def __init__(self, layer: Layer, features: int, dropout: float = 0.0) -> None:
        super().__init__(layer)
        self.features, self.dropout = features, Dropout(dropout)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        y, state = self.layer(x, state, mask)
        return torch.cat([self.dropout(y), zero_padding(x[..., -self.features :], mask)], -1), state
