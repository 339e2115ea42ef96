"""A layer and the way around it; the three differ in where the sum is kept in bounds."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .base import Entries, Layer, Memory
from .padding import zero_padding
from .state import State

NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class Residual(Layer):
    def __init__(self, layer: Layer, dropout: float = 0.0) -> None:
        super().__init__()
        self.layer, self.dropout = layer, nn.Dropout(dropout)
        self.causal, self.final_state_sizes = layer.causal, layer.final_state_sizes

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.layer.initial_state(batch, memory)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return self.layer.final_states(state)

    def before(self, x: Tensor) -> Tensor:
        """What the layer reads."""
        return x

    @abstractmethod
    def join(self, x: Tensor, change: Tensor) -> Tensor: ...

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        x = zero_padding(x, mask)
        change, state = self.layer(self.before(x), state, mask)
        return zero_padding(self.join(x, self.dropout(change)), mask), state


class PostNorm(Residual):
    """Change, add, normalize (Vaswani et al., 2017)."""

    def __init__(self, size: int, layer: Layer, dropout: float = 0.0, normalize: str = "layer") -> None:
        super().__init__(layer, dropout)
        self.norm = NORMS[normalize](size)

    def join(self, x: Tensor, change: Tensor) -> Tensor:
        joined: Tensor = self.norm(x + change)
        return joined


class PreNorm(Residual):
    """Normalize, change, add (Xiong et al., 2020). The sum itself is never normalized: the stack does it at its end."""

    def __init__(self, size: int, layer: Layer, dropout: float = 0.0, normalize: str = "layer") -> None:
        super().__init__(layer, dropout)
        self.norm = NORMS[normalize](size)

    def before(self, x: Tensor) -> Tensor:
        normal: Tensor = self.norm(x)
        return normal

    def join(self, x: Tensor, change: Tensor) -> Tensor:
        return x + change


class ReZero(Residual):
    """Change, add a share of it that is learned and starts at zero (Bachlechner et al., 2020)."""

    def __init__(self, size: int, layer: Layer, dropout: float = 0.0, normalize: str = "layer") -> None:
        super().__init__(layer, dropout)
        self.share = nn.Parameter(torch.zeros(()))

    def join(self, x: Tensor, change: Tensor) -> Tensor:
        return x + self.share * change


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm] | type[ReZero]] = {
    "post": PostNorm,
    "pre": PreNorm,
    "rezero": ReZero,
}
