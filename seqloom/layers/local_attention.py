"""Local attention over a source (Luong et al., 2015): a decoder looks only at what lies near one place of it."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from .attention import Attention, harden, weigh
from .base import Memory
from .padding import full_mask
from .state import State


class LocalAttention(Attention):
    """Another attention's scores, of the elements at most `window` away from a center; softmax is over those alone."""

    def __init__(self, score: Attention, window: int) -> None:
        nn.Module.__init__(self)  # keys are the other's
        self.weights, self.hard, self.window = score.weights, score.hard, window
        self.score = score

    def prepare(self, memory: Memory | None) -> State:
        return self.score.prepare(memory)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.score.scores(query, keys)

    @abstractmethod
    def center(self, query: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The queries (B, T, Q), and where in sources of these lengths (B, 1) they look: (B, T)."""

    def weigh_distance(self, weights: Tensor, distance: Tensor) -> Tensor:
        """Weights (B, T, S) by how far from the center an element is."""
        return weights

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        query, center = self.center(query, mask.sum(1, keepdim=True))
        distance = (mask.cumsum(1) - 1)[:, None] - center[..., None]  # padding has no place
        weights = weigh(self.scores(query, keys), mask[:, None] & (distance.abs() <= self.window))
        weights = self.weigh_distance(weights, distance)
        return self.weights(harden(weights) if self.hard else weights) @ values

    def fast_look(self) -> None:
        return None


class MonotonicAttention(LocalAttention):
    """local-m: the t-th step looks around the t-th element."""

    def prepare(self, memory: Memory | None) -> State:
        source = super().prepare(memory)
        return source, source.tensors[0].new_zeros(len(source.tensors[0]), 1)

    def look(self, query: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        source, count = state
        steps = (full_mask(query) if mask is None else mask).to(count).cumsum(1)
        places = (count + steps - 1).clamp(min=0)  # padding looks somewhere, and nobody asks where
        return source.ask(self, torch.cat([query, places[..., None]], -1)), (source, count + steps[:, -1:])

    def center(self, query: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return query[..., :-1], query[..., -1]


class PredictiveAttention(LocalAttention):
    """local-p: each step predicts where it looks, p = S σ(vᵀ tanh(W q)), and weighs what it sees there by a Gaussian
    around it, half as wide as the window."""

    def __init__(self, score: Attention, window: int, query: int) -> None:
        super().__init__(score, window)
        self.W, self.v = nn.Linear(query, query, bias=False), nn.Linear(query, 1, bias=False)

    def center(self, query: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return query, lengths * self.v(self.W(query).tanh()).squeeze(-1).sigmoid()

    def weigh_distance(self, weights: Tensor, distance: Tensor) -> Tensor:
        return weights * torch.exp(-2 * (distance / self.window) ** 2)
