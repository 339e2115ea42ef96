"""Transformer blocks and positions once more, for one sequence without padding, one element at a time."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..layers import TransformerConfig
from .reference_attention import (
    Sees,
    attend_self,
    cross_attention,
    keep_still,
    pick_best,
    rotary,
    see_everything,
    see_past,
    weigh_softly,
)
from .reference_maths import Parameters, gelu, layer_norm, relu, rms_norm, silu

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
            inner = silu(gate) * value
        else:
            inner = {"relu": relu, "gelu": gelu, "silu": silu}[activation](inner)
        outputs.append(p.affine("module.3", inner))
    return torch.stack(outputs)


def normalize_each(p: Parameters, x: Tensor, normalize: str) -> Tensor:
    """Normalize each element."""
    if normalize == "rms":
        return torch.stack([rms_norm(element, p["weight"]) for element in x])
    return torch.stack([layer_norm(element, p["weight"], p.get("bias", 0.0)) for element in x])


def residual(p: Parameters, x: Tensor, change: Change, norm: str, normalize: str) -> Tensor:
    """A residual connection with post-norm, pre-norm or ReZero."""
    if norm == "post":
        return normalize_each(p.select_part("norm"), x + change(x), normalize)
    if norm == "pre":
        return x + change(normalize_each(p.select_part("norm"), x, normalize))
    return x + p["share"] * change(x)  # rezero


def sees(config: TransformerConfig, causal: bool) -> Sees:
    """A causal window counts the element itself; one to both sides counts those beside it."""
    window = config.window
    if causal:
        return (lambda i, j: i - window < j <= i) if window else see_past
    return (lambda i, j: abs(i - j) <= window) if window else see_everything


def transformer(
    p: Parameters, config: TransformerConfig, causal: bool, x: Tensor, memory: Tensor | None = None
) -> Tensor:
    """A sequence (T, D) through the whole stack; the memory (S, M) without its padding."""
    if config.positions == "sinusoidal":
        x = torch.stack([element + wave(i, len(element)) for i, element in enumerate(x)])
    for part in stack_of(p):
        x = apply(part, config, causal, x, memory)
    return x


def stack_of(p: Parameters) -> list[Parameters]:
    """The parts that have weights, from the bottom up."""
    numbers = sorted({int(name.split(".")[1]) for name in p if name.startswith("layers.")})
    return [p.select_part(f"layers.{number}") for number in numbers]


def apply(p: Parameters, config: TransformerConfig, causal: bool, x: Tensor, memory: Tensor | None) -> Tensor:
    """One part: positions, attention to the sequence or to the memory, the position-wise net, or the last norm."""
    if "table" in p:  # learned positions
        return torch.stack([element + p["table"][i] for i, element in enumerate(x)])
    inner, width = p.select_part("layer"), config.key_size or x.shape[1] // config.heads
    turn = rotary if config.positions == "rotary" else keep_still
    look = pick_best if config.hard_attention else weigh_softly

    def change(z: Tensor) -> Tensor:
        if "project.weight" in inner:
            return attend_self(inner, z, config.heads, width, sees(config, causal), turn, look)
        if "query.weight" in inner:
            assert memory is not None
            return cross_attention(inner, z, memory, config.heads, look)
        return feed_forward(inner, z, config.activation)

    if not inner:
        return normalize_each(p.select_part("module.0"), x, config.norm_type)
    return residual(p, x, change, config.norm, config.norm_type)
