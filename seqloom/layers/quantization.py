"""Weights of eight bits: those of an output are whole numbers from −127 to 127, times a scale of their own.

When a model with such weights reads a source without gradient, and when it writes, each row that is multiplied with
them is rounded alike, so that native kernels can multiply whole numbers (`fast/native/int8.h`), a byte for each, not
four.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

LARGEST = 127
NOTHING = 1e-30
eight_bits: ContextVar[bool] = ContextVar("eight_bits", default=False)


@contextmanager
def use_eight_bits(enabled: bool) -> Iterator[None]:
    """Steps that are prepared inside of this are to read bytes, if so."""
    before = eight_bits.set(enabled)
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


class RoundedProducts(TorchFunctionMode):
    """Inside of this, and in this thread alone, the rows that plain products of a module read are rounded: what native
    kernels do, in PyTorch's operations."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.weights = {id(part.weight) for part in module.modules() if type(part) is nn.Linear}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and id(args[1]) in self.weights:
            args = (round_rows(args[0]), *args[1:])
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def quantize_weights(module: nn.Module) -> None:
    """Let the weights of all plain products inside become what eight bits can say."""
    for part in module.modules():
        if type(part) is nn.Linear:
            whole, scale = quantize_weight(part.weight)
            part.weight.copy_(whole * scale[:, None])
