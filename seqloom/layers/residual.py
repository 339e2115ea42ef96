"""A layer and the way around it; the three differ in where the sum is kept in bounds."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from .base import Layer, WrappedLayer
from .description import CONTAINER, EACH, FEED_FORWARD, POINTWISE, Description, count_parameters, walk_parts
from .fast import native_stack, steps
from .fast.dropout import Dropout
from .padding import zero_padding
from .state import State

NORMS: dict[str, Callable[[int, bool], nn.Module]] = {  # by the features, and whether there is a bias
    "layer": lambda size, bias: nn.LayerNorm(size, bias=bias),
    "rms": lambda size, bias: nn.RMSNorm(size),  # which has none
}


class Residual(WrappedLayer):
    def __init__(self, layer: Layer, dropout: float = 0.0) -> None:
        super().__init__(layer)
        self.dropout = Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the layer reads."""
        return x

    @abstractmethod
    def join(self, x: Tensor, change: Tensor) -> Tensor: ...

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        x = zero_padding(x, mask)
        change, state = self.layer(self.before(x), state, mask)
        return zero_padding(self.join(x, self.dropout(change)), mask), state

    def describe(self) -> Description:
        """As what it goes around: of several, the first that joins steps."""
        inner = self.layer.describe()
        if inner.role == CONTAINER:
            parts = [place.about for place in walk_parts(self.layer)]
            inner = next((about for about in parts if about.shape != EACH), parts[0] if parts else inner)
        if inner.role == POINTWISE:
            inner = replace(inner, name="feed-forward", role=FEED_FORWARD)
        return replace(inner, parameters=count_parameters(self))


class PostNorm(Residual):
    """Change, add, normalize (Vaswani et al., 2017)."""

    def __init__(
        self, size: int, layer: Layer, dropout: float = 0.0, normalize: str = "layer", bias: bool = True
    ) -> None:
        super().__init__(layer, dropout)
        self.norm = NORMS[normalize](size, bias)

    def join(self, x: Tensor, change: Tensor) -> Tensor:
        return self.norm(x + change)

    def fast_step(self) -> steps.Step:
        return steps.step_around(self.layer.fast_step(), steps.add_norm(self.norm))

    def block(self) -> native_stack.Block | None:
        return native_stack.join_norm(self.layer.block(), native_stack.POST, self.norm)


class PreNorm(Residual):
    """Normalize, change, add (Xiong et al., 2020). The sum itself is never normalized: the stack does it at its end."""

    def __init__(
        self, size: int, layer: Layer, dropout: float = 0.0, normalize: str = "layer", bias: bool = True
    ) -> None:
        super().__init__(layer, dropout)
        self.norm = NORMS[normalize](size, bias)

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x)

    def join(self, x: Tensor, change: Tensor) -> Tensor:
        return x + change

    def fast_step(self) -> steps.Step:
        return steps.step_around(self.layer.fast_step(), torch.add, steps.change_of(self.norm))

    def block(self) -> native_stack.Block | None:
        return native_stack.join_norm(self.layer.block(), native_stack.PRE, self.norm)


class ReZero(Residual):
    """Change, add a share of it that is learned and starts at zero (Bachlechner et al., 2020)."""

    def __init__(
        self, size: int, layer: Layer, dropout: float = 0.0, normalize: str = "layer", bias: bool = True
    ) -> None:
        super().__init__(layer, dropout)
        self.share = nn.Parameter(torch.zeros(()))

    def join(self, x: Tensor, change: Tensor) -> Tensor:
        return x + self.share * change

    def fast_step(self) -> steps.Step:
        share = self.share
        return steps.step_around(self.layer.fast_step(), lambda x, change: torch.addcmul(x, share, change))

    def block(self) -> native_stack.Block | None:
        inner = self.layer.block()
        return None if inner is None else replace(inner, join=native_stack.REZERO, share=self.share)


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm] | type[ReZero]] = {
    "post": PostNorm,
    "pre": PreNorm,
    "rezero": ReZero,
}
