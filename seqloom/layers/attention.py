"""Looking at a sequence: by additive or dot scores, or in many heads."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import Memory
from .state import Shared
from .tap import Tap


def weigh(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over what the mask shows; where it shows nothing, no weight at all."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask


class Attention(nn.Module):
    """Queries over a memory, in one head."""

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory, query, bias=False)
        self.weights = Tap()

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """query (B, T, Q), keys (B, S, Q) -> (B, T, S)."""

    def prepare(self, memory: Memory | None) -> Shared:
        """What does not depend on the query, computed once."""
        if memory is None:
            raise ValueError("attention needs a memory to look at, but the layer was started without one")
        return Shared((self.key(memory.values), memory.values, memory.mask))

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """What the queries see of the values (B, S, D): (B, T, D)."""
        weights: Tensor = self.weights(weigh(self.scores(query, keys), mask[:, None]))
        return weights @ values


class DotAttention(Attention):
    """Luong's score: how well the query and the key agree."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.mT


class AdditiveAttention(Attention):
    """Bahdanau's score: a small net looks at the query and the key together."""

    def __init__(self, query: int, memory: int) -> None:
        super().__init__(query, memory)
        self.shift, self.judge = nn.Linear(query, query), nn.Linear(query, 1, bias=False)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.judge(torch.tanh(keys[:, None] + self.shift(query)[:, :, None]))
        return scores.squeeze(-1)


SCORES: dict[str, type[Attention]] = {"dot": DotAttention, "additive": AdditiveAttention}


class MultiHead(nn.Module):
    """Every query over every key, in `heads` subspaces at once."""

    def __init__(self, size: int, memory: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width = heads, size // heads
        self.query, self.key_value, self.out = nn.Linear(size, size), nn.Linear(memory, 2 * size), nn.Linear(size, size)
        self.weights = Tap()

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, self.width).transpose(1, 2)  # (B, heads, T, width)

    def forward(self, x: Tensor, keys_values: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """x (B, T, D) over `self.key_value(memory)` (B, S, 2 D); mask (B, S) or (B, T, S)."""
        query, (keys, values) = self.split(self.query(x)), map(self.split, keys_values.chunk(2, -1))
        if mask is not None:
            mask = mask[:, None, None] if mask.dim() == 2 else mask[:, None]
        if self.weights.watched:  # spelled out, so that the weights can be seen
            scores = query @ keys.mT / self.width**0.5
            shown = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
            seen = self.weights(weigh(scores, shown.tril() if causal else shown)) @ values
        else:
            seen = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=causal)
        out: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return out
