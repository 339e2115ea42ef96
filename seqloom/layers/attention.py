"""Looking at a sequence: by additive or dot scores, softly or hard, in one head or many, near or everywhere."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import Memory
from .description import ONE, POOLING, SUMMARY, DescribedModule, Description, count_parameters
from .fast import native_steps
from .fast.cell_steps import Look
from .fast.native_kernels import can_use
from .state import SharedLeaf, State
from .tap import Tap


def weigh(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over what the mask shows; where it shows nothing, no weight at all."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask


def harden(weights: Tensor) -> Tensor:
    """All weight on the largest. The gradient passes as if it were still soft (straight through)."""
    hard = F.one_hot(weights.argmax(-1), weights.shape[-1]).to(weights) * (weights > 0)
    return hard + (weights - weights.detach())


class Attention(nn.Module):
    """Queries over a memory, in one head. A hard one looks at a single place."""

    def __init__(self, query: int, memory: int, hard: bool = False) -> None:
        super().__init__()
        self.key, self.hard = nn.Linear(memory, query, bias=False), hard
        self.weights = Tap()

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """query (B, T, Q), keys (B, S, Q) -> (B, T, S)."""

    def prepare(self, memory: Memory | None) -> Any:
        """What does not depend on the query, computed once: what `look` is given before the first step."""
        if memory is None:
            raise ValueError("attention needs a memory to look at, but the layer was started without one")
        return SharedLeaf((self.key(memory.values), memory.values, memory.mask))

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """What the queries see of the values (B, S, D): (B, T, D)."""
        weights = weigh(self.scores(query, keys), mask[:, None])
        return self.weights(harden(weights) if self.hard else weights) @ values

    def look(self, query: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """What the next queries (B, T, Q) see, zeros of padding among them not promised, and the state after them."""
        return state.ask(self, query), state

    def fast_look(self) -> Look | None:
        """`look` for one query a row, prepared for many steps without gradient, where the state stays as it is."""
        return lambda query, memory: memory.ask(self, query[:, None])[:, 0]


class DotAttention(Attention):
    """Luong's score: how well the query and the key agree."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.mT


class ScaledDotAttention(Attention):
    """The same, divided by √d, so that it does not grow with the size (Vaswani et al., 2017)."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.mT / query.shape[-1] ** 0.5


class ProjectedAttention(ScaledDotAttention):
    """One head with projections of query, key and value: (W_q q)ᵀ (W_k k) / √d over W_v v (Vaswani et al., 2017)."""

    def __init__(self, query: int, memory: int, hard: bool = False) -> None:
        super().__init__(query, memory, hard)
        self.query, self.value = nn.Linear(query, query, bias=False), nn.Linear(memory, memory, bias=False)

    def prepare(self, memory: Memory | None) -> Any:
        keys, values, mask = super().prepare(memory).tensors
        return SharedLeaf((keys, self.value(values), mask))

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().scores(self.query(query), keys)


class AdditiveAttention(Attention):
    """Bahdanau's score: a small net looks at the query and the key together, w₂ᵀ tanh(W₁ [q; k])."""

    def __init__(self, query: int, memory: int, hard: bool = False) -> None:
        super().__init__(query, memory, hard)
        self.shift, self.judge = nn.Linear(query, query), nn.Linear(query, 1, bias=False)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.judge(torch.tanh(keys[:, None] + self.shift(query)[:, :, None]))
        return scores.squeeze(-1)

    def fast_look(self) -> Look | None:
        known = type(self) is AdditiveAttention and not self.hard and can_use(self.judge.weight)
        return native_steps.attend_additive(self) if known else super().fast_look()


class MultiHeadAttention(nn.Module):
    """Scaled dot products in `heads` subspaces at once, and the product that joins what they see.

    A query's heads are `width` wide, the values' `values`; both are free of the model's size. A head that is `hard`
    looks at a single place.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        width: int = 0,
        values: int = 0,
        bias: bool = True,
        dropout: float = 0.0,
        hard: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.width, self.dropout, self.hard = heads, width or size // heads, dropout, hard
        self.value_width = values or self.width
        self.out = nn.Linear(heads * self.value_width, size, bias)
        self.weights = Tap()

    @property
    def query_size(self) -> int:
        return self.heads * self.width

    @property
    def key_value_size(self) -> int:
        return self.heads * (self.width + self.value_width)

    def split(self, x: Tensor) -> Tensor:
        """(B, T, heads · w) -> (B, heads, T, w)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def split_keys_values(self, keys_values: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = keys_values.split([self.query_size, self.heads * self.value_width], -1)
        return self.split(keys), self.split(values)

    def join(self, context: Tensor) -> Tensor:
        """(B, heads, T, w) -> (B, T, size)."""
        return self.out(context.transpose(1, 2).flatten(2))

    def forward(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Query (B, heads, T, width), keys and values (B, heads, S, …); mask (B, S) or (B, T, S) -> (B, T, size)."""
        if mask is not None:
            mask = mask[:, None, None] if mask.dim() == 2 else mask[:, None]
        dropout = self.dropout if self.training else 0.0
        if self.weights.watched or self.hard:  # spelled out, so that the weights can be seen
            scores = query @ keys.mT / self.width**0.5
            shown = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
            weights = weigh(scores, shown.tril() if causal else shown)
            weights = self.weights(harden(weights) if self.hard else weights)
            return self.join(F.dropout(weights, dropout) @ values)
        context = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, dropout_p=dropout, is_causal=causal
        )
        return self.join(context)


class Pooling(DescribedModule):
    """A whole sequence by learned queries: each stands for something worth asking, and answers with what it finds."""

    looks_at = {SUMMARY: "weights"}

    def __init__(self, size: int, queries: int = 1) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(queries, size) * size**-0.5)
        self.key, self.join = nn.Linear(size, size), nn.Linear(queries * size, size)
        self.weights = Tap()

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Values (B, S, D) -> (B, D)."""
        scores = self.queries @ self.key(values).mT / values.shape[-1] ** 0.5
        context = self.weights(weigh(scores, mask[:, None])) @ values  # (B, queries, D)
        return self.join(context.flatten(1))

    def describe(self) -> Description:
        return Description("attention pooling", ONE, count_parameters(self), POOLING)


class NonLocal(nn.Module):
    """Every place of an image or video looks at every other (Wang et al., 2018). Starts as the identity."""

    def __init__(self, channels: int, inner: int = 0) -> None:
        super().__init__()
        self.inner = inner or max(1, channels // 2)
        self.project, self.out = nn.Linear(channels, 3 * self.inner), nn.Linear(self.inner, channels)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.weights = Tap()

    def forward(self, x: Tensor) -> Tensor:
        """x (B, channels, places …): an image has two axes of places, a video three."""
        return x + self.see(x.flatten(2).mT).mT.unflatten(2, x.shape[2:])

    def see(self, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """What each of the places (B, N, channels) sees of those that the mask (B, N) shows."""
        query, keys, values = self.project(places).chunk(3, -1)
        shown = None if mask is None else mask[:, None]
        if self.weights.watched:
            scores = query @ keys.mT / self.inner**0.5
            context = self.weights(scores.softmax(-1) if shown is None else weigh(scores, shown)) @ values
        else:
            context = F.scaled_dot_product_attention(query, keys, values, attn_mask=shown)
        output: Tensor = self.out(context)
        return output
