"""Weights of eight bits: those of an output are whole numbers from −127 to 127, times a scale of their own.

A model whose weights are rounded reads as any other. When it writes, each row that is multiplied with such weights is
rounded alike, so that native kernels can multiply whole numbers (`fast/native/int8.h`), a byte for each, not four.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

LARGEST = 127
NOTHING = 1e-30
eight_bits: ContextVar[bool] = ContextVar("eight_bits", default=False)


@contextmanager
def in_eight_bits(wanted: bool) -> Iterator[None]:
    """Steps that are prepared inside of this are to read bytes, if so."""
    before = eight_bits.set(wanted)
    try:
        yield
    finally:
        eight_bits.reset(before)


def quantize_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Bytes (outputs, inputs), and the scale of each output."""
    scale = weight.abs().amax(1) / LARGEST
    return (weight / scale.clamp(min=torch.finfo(weight.dtype).tiny)[:, None]).round().to(torch.int8), scale


def round_rows(x: Tensor) -> Tensor:
    """Each row (…, D) as what eight bits can say of it: its largest number becomes 127; what is next to nothing, 0."""
    most = x.abs().amax(-1, keepdim=True)
    return (x * (LARGEST / most.clamp(min=NOTHING))).round() * (most / LARGEST)


@torch.no_grad()
def quantize_weights(module: nn.Module) -> None:
    """Let the weights of all plain products inside become what eight bits can say."""
    for part in module.modules():
        if type(part) is nn.Linear:
            whole, scale = quantize_weight(part.weight)
            part.weight.copy_(whole * scale[:, None])
