"""Transformer blocks and positions once more, for one sequence without padding, one element at a time."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .reference_attention import Sees, Turn, cross_attention, everything, rotary, self_attention, still, the_past
from .reference_maths import Parameters, gelu, layer_norm, relu, rms_norm, sigmoid

Change = Callable[[Tensor], Tensor]  # of a whole sequence (T, D)


def wave(position: int, size: int) -> Tensor:
    """P[i, 2j] = sin(i / 10000^(2j/d)), P[i, 2j+1] = cos(i / 10000^(2j/d))."""
    row = []
    for feature in range(size):
        angle = position / 10000 ** (2 * (feature // 2) / size)
        row.append(math.sin(angle) if feature % 2 == 0 else math.cos(angle))
    return torch.tensor(row, dtype=torch.float64)


def feed_forward(p: Parameters, x: Tensor, activation: str) -> Tensor:
    """W₂ φ(W₁ x + b₁) + b₂ on every element; in a SwiGLU, one half of W₁ x + b₁ gates the other."""
    outputs = []
    for element in x:
        inner = p.affine("module.0", element)
        if activation == "swiglu":
            gate, value = inner.chunk(2)
            inner = gate * sigmoid(gate) * value
        else:
            inner = {"relu": relu, "gelu": gelu}[activation](inner)
        outputs.append(p.affine("module.3", inner))
    return torch.stack(outputs)


def normed(p: Parameters, x: Tensor, normalize: str) -> Tensor:
    """Each element by itself."""
    if normalize == "rms":
        return torch.stack([rms_norm(element, p["weight"]) for element in x])
    return torch.stack([layer_norm(element, p["weight"], p["bias"]) for element in x])


def residual(p: Parameters, x: Tensor, change: Change, norm: str, normalize: str) -> Tensor:
    """Where the norm stands."""
    if norm == "post":
        return normed(p.under("norm"), x + change(x), normalize)
    if norm == "pre":
        return x + change(normed(p.under("norm"), x, normalize))
    return x + p["share"] * change(x)  # rezero


@dataclass(frozen=True)
class Shape:
    """What a Transformer's weights do not say."""

    heads: int
    causal: bool
    norm: str = "pre"
    normalize: str = "layer"
    activation: str = "gelu"
    positions: str = "sinusoidal"
    window: int = 0

    @property
    def sees(self) -> Sees:
        """A causal window counts the element itself; one to both sides counts those beside it."""
        if self.causal:
            return (lambda i, j: i - self.window < j <= i) if self.window else the_past
        return (lambda i, j: abs(i - j) <= self.window) if self.window else everything

    @property
    def turn(self) -> Turn:
        return rotary if self.positions == "rotary" else still


def transformer(p: Parameters, shape: Shape, x: Tensor, memory: Tensor | None = None) -> Tensor:
    """A sequence (T, D) through the whole stack; the memory (S, M) without its padding."""
    parts = stack_of(p)
    if shape.positions == "sinusoidal":
        x = torch.stack([element + wave(i, len(element)) for i, element in enumerate(x)])
    for part in parts:
        x = apply(part, shape, x, memory)
    return x


def stack_of(p: Parameters) -> list[Parameters]:
    """The parts that have weights, from the bottom up."""
    numbers = sorted({int(name.split(".")[1]) for name in p if name.startswith("layers.")})
    return [p.under(f"layers.{number}") for number in numbers]


def apply(p: Parameters, shape: Shape, x: Tensor, memory: Tensor | None) -> Tensor:
    """One part: positions, attention to the sequence or to the memory, the position-wise net, or the last norm."""
    if "table" in p:  # learned positions
        return torch.stack([element + p["table"][i] for i, element in enumerate(x)])
    inner, width = p.under("layer"), x.shape[1] // shape.heads

    def change(z: Tensor) -> Tensor:
        if "project.weight" in inner:
            return self_attention(inner, z, shape.heads, width, shape.sees, shape.turn)
        if "query.weight" in inner:
            assert memory is not None
            return cross_attention(inner, z, memory, shape.heads)
        return feed_forward(inner, z, shape.activation)

    if not inner:
        return normed(p.under("module.0"), x, shape.normalize)
    return residual(p, x, change, shape.norm, shape.normalize)
