"""Dropout in one pass: `nn.Dropout`, several times as fast where there are native kernels.

The bits come from a hash of a seed and the place (`native/dropout.h`). The seed is drawn from torch's generator, so
that the same state of it leaves out the same, and the way back draws them again instead of keeping a mask. Without
native kernels it is torch's own, which draws other bits.
"""

from ctypes import c_double, c_long, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .native_kernels import can_use, symbol


class Dropout(nn.Dropout):
    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not 0 < self.p < 1 or self.inplace or not can_use(x):
            return F.dropout(x, self.p, self.training, self.inplace)
        return Drop.apply(x, self.p, int(torch.randint(1 << 62, ())))


class Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float, seed: int) -> Tensor:
        ctx.share, ctx.seed = share, seed
        x = x.contiguous()
        y = torch.empty_like(x)
        act(x.dtype)(x.numel(), seed, min(round(share * 2**32), 2**32 - 1), 1 / (1 - share), x.data_ptr(), y.data_ptr())
        return y

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, ...]:
        return Drop.apply(d_y, ctx.share, ctx.seed), None, None


@cache
def act(dtype: torch.dtype) -> Any:
    kernel = symbol("dropout", dtype)
    kernel.argtypes, kernel.restype = [c_long, c_long, c_long, c_double, c_void_p, c_void_p], None
    return kernel
