"""Kernels whose steps are native code: as those of `kernels.py`, which they stand in for wherever they can.

Between two matrix products, which stay PyTorch's, a step is one pass over its numbers (`native/recurrence.h`) instead
of some ten operations. The same laws hold as for the kernels that are replaced.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import kernels, lstm_kernels
from .kernels import allocate_steps, pad_rows, shift_steps
from .native import library

NAMES = {torch.float32: "float", torch.float64: "double"}
NUMBERS = {  # how many numbers each C function takes after its arrays
    "rnn_forward": 3,
    "rnn_backward": 4,
    "gru_forward": 4,
    "gru_backward": 4,
    "lstm_forward": 4,
    "lstm_backward": 5,
}


def can_use(tensor: Tensor) -> bool:
    """Whether native code is to work on numbers like these."""
    return tensor.dtype in NAMES and tensor.device.type == "cpu" and library.is_enabled()


def symbol(name: str, dtype: torch.dtype) -> Any:
    """The C function of that name, for this kind of number and this processor."""
    status = library.status()
    return getattr(status.library, f"{status.level}_{name}_{NAMES[dtype]}")


def choose_kernel(kernel: kernels.Kernel, x: Tensor) -> kernels.Kernel:
    """The kernel with native steps, where there are some."""
    function = NATIVE.get(kernel.function)
    return kernel if function is None or not can_use(x) else replace(kernel, function=function)


def bind(name: str, size: int, *tensors: Tensor) -> Callable[..., None]:
    """The C function, its arrays given: it is called with the numbers that change from step to step.

    The caller keeps the tensors alive for as long.
    """
    for tensor in tensors:
        if not tensor.is_contiguous() or tensor.dtype != tensors[0].dtype or tensor.device.type != "cpu":
            raise ValueError(f"{name} walks through memory, so its tensors must be contiguous, alike and on the CPU")
    function = symbol(name, tensors[0].dtype)
    arrays = [ctypes.c_void_p] * len(tensors)
    function.argtypes = [ctypes.c_long, *arrays, *[ctypes.c_long] * NUMBERS[name]]
    function.restype = None
    return partial(function, size, *(tensor.data_ptr() for tensor in tensors))


def places(counts: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Of each step: where it stands, where it finds the old entry in a trail and leaves the new one, and its rows."""
    place, old = 0, 0
    for count in counts:
        yield place, old, counts[0] + place, count
        place, old = place + count, counts[0] + place


class RNN(torch.autograd.Function):
    """As `kernels.RNN`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor) -> Tensor:
        shares, ahead = x.detach(), U.t()
        whole, outputs = allocate_steps(h, counts)
        squash = bind("rnn_forward", h.shape[1], shares, whole)
        for place, old, new, rows in places(counts):
            shares[place : place + rows].addmm_(whole[old : old + rows], ahead)
            squash(place, new, rows)
        ctx.save_for_backward(U, h, whole)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        U, h, whole = ctx.saved_tensors
        d_hs = d_outputs.contiguous()
        d_x, back = torch.empty_like(d_hs), torch.empty_like(h)
        bend, later = bind("rnn_backward", h.shape[1], whole, d_hs, back, d_x), 0
        for place, _, new, rows in reversed([*places(ctx.counts)]):
            bend(place, new, rows, later)
            torch.mm(d_x[place : place + rows], U, out=back[:rows])
            later = rows
        return d_x, None, d_x.t() @ shift_steps(whole, ctx.counts), pad_rows(back[:later], h)


class GRU(torch.autograd.Function):
    """As `kernels.GRU`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, b: Tensor, h: Tensor) -> Tensor:
        gates, ahead = x.detach(), U.t()
        product, shares = gates.new_empty(counts[0], gates.shape[1]), gates.new_empty(len(x), h.shape[1])
        whole, outputs = allocate_steps(h, counts)
        gate = bind("gru_forward", h.shape[1], gates, product, b.detach(), shares, whole)
        for place, old, new, rows in places(counts):
            torch.mm(whole[old : old + rows], ahead, out=product[:rows])
            gate(place, old, new, rows)
        ctx.save_for_backward(gates, shares, U, h, whole)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, shares, U, h, whole = ctx.saved_tensors
        size = h.shape[1]
        moves, back, carry = gates.new_empty(len(gates), 4 * size), torch.empty_like(h), torch.empty_like(h)
        d_product, turned = moves[:, : 3 * size], torch.cat([U[2 * size :], U[: 2 * size]])
        d_each, later = d_outputs.contiguous(), 0
        bend = bind("gru_backward", size, gates, shares, whole, d_each, back, carry, moves)
        for place, old, _, rows in reversed([*places(ctx.counts)]):
            bend(place, old, rows, later)
            torch.mm(d_product[place : place + rows], turned, out=back[:rows])
            later = rows
        d_first = pad_rows(back[:later] + carry[:later], h)
        d_U, d_b = d_product.t() @ shift_steps(whole, ctx.counts), d_product.sum(0)
        return moves[:, size:], None, d_U.roll(2 * size, 0), d_b.roll(2 * size), d_first


def lstm_forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, h: Tensor, c: Tensor) -> Any:
    gates, ahead = x.detach(), U.t()
    (whole_h, outputs), (whole_c, cells) = allocate_steps(h, counts), allocate_steps(c, counts)
    gate = bind("lstm_forward", h.shape[1], gates, V, whole_h, whole_c)
    for place, old, new, rows in places(counts):
        gates[place : place + rows].addmm_(whole_h[old : old + rows], ahead)
        gate(place, old, new, rows)
    ctx.save_for_backward(gates, U, V, h, c, whole_h, whole_c)
    ctx.counts = counts
    return outputs, cells


def lstm_backward(ctx: Any, d_outputs: Tensor, d_cells: Tensor) -> tuple[Tensor, ...]:
    gates, U, V, h, c, whole_h, whole_c = ctx.saved_tensors
    d_gates, back, carry = torch.empty_like(gates), torch.empty_like(h), torch.empty_like(c)
    d_each = d_outputs.contiguous(), d_cells.contiguous()
    bend, later = bind("lstm_backward", h.shape[1], gates, V, whole_c, *d_each, back, carry, d_gates), 0
    for place, old, new, rows in reversed([*places(ctx.counts)]):
        bend(place, old, new, rows, later)
        torch.mm(d_gates[place : place + rows], U, out=back[:rows])
        later = rows
    d_U = d_gates.t() @ shift_steps(whole_h, ctx.counts)
    return d_gates, d_U, pad_rows(back[:later], h), pad_rows(carry[:later], c)


class LSTM(torch.autograd.Function):
    """As `lstm_kernels.LSTM`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor, c: Tensor) -> Any:
        return lstm_forward(ctx, x, counts, U, U.new_zeros(3, h.shape[1]), h, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor, d_cells: Tensor) -> tuple[Tensor | None, ...]:
        d_x, d_U, d_h, d_c = lstm_backward(ctx, d_outputs, d_cells)
        return d_x, None, d_U, d_h, d_c


class Peephole(torch.autograd.Function):
    """As `lstm_kernels.Peephole`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, h: Tensor, c: Tensor) -> Any:
        return lstm_forward(ctx, x, counts, U, V.detach(), h, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor, d_cells: Tensor) -> tuple[Tensor | None, ...]:
        d_x, d_U, d_h, d_c = lstm_backward(ctx, d_outputs, d_cells)
        whole_c = ctx.saved_tensors[-1]
        d_i, d_f, _, d_o = d_x.chunk(4, 1)
        old, new = shift_steps(whole_c, ctx.counts), whole_c[ctx.counts[0] :]
        d_V = torch.stack([(d_i * old).sum(0), (d_f * old).sum(0), (d_o * new).sum(0)])
        return d_x, None, d_U, d_V, d_h, d_c


NATIVE: dict[type[torch.autograd.Function], type[torch.autograd.Function]] = {
    kernels.RNN: RNN,
    kernels.GRU: GRU,
    lstm_kernels.LSTM: LSTM,
    lstm_kernels.Peephole: Peephole,
}
