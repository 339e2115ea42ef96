"""A linear recurrence h = a h + b over time by a parallel scan: few operations over many steps instead of one a step.

Two steps of it are one step of the same form, (a, b) then (a', b') being (a' a, a' b + b'). So pairs of neighbors are
joined, then pairs of pairs, up to the last element, and on the way back the elements between are filled in (Brent and
Kung, 1982): 2 log₂ T rounds, three products an element. Nothing is divided and no logarithm is taken, so decays of any
size from 0 to 1 are safe: a product that is too small to be written is zero, as it would be in the loop.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .kernels import allocate_steps, bend_sigmoid, pad_rows, shift_steps

CACHE = 2**20  # numbers of a and b that stay in a processor's cache over all rounds
WIDEST = 2**12  # numbers of one step from which arithmetic costs more than the calls that a scan saves


def choose_block(decays: Tensor) -> int:
    """How many steps are scanned at once, of decays (T, B, size): on a CPU as many as its cache holds. Blocks of one
    step are the loop."""
    width = decays[0].numel()
    if decays.device.type != "cpu" or not width:
        return len(decays)
    return CACHE // width if width <= WIDEST else 1


def scan_(decays: Tensor, changes: Tensor, first: Tensor, block: int) -> Tensor:
    """h = decay · h + change at all steps, (T, B, size), in place of the changes. The decays are lost."""
    for decay, change in zip(decays.split(block), changes.split(block), strict=True):
        change[0].addcmul_(decay[0], first)
        sweep_(decay, change)
        first = change[-1]
    return changes


def sweep_(decays: Tensor, changes: Tensor) -> None:
    """`scan_` from zero: up from pairs to the whole, and down again to what lies between."""
    time, stride = len(decays), 1
    while stride < time:
        left, right = slice(stride - 1, None, 2 * stride), slice(2 * stride - 1, None, 2 * stride)
        decay, change = decays[right], changes[right]
        change.addcmul_(decay, changes[left][: len(change)])
        decay.mul_(decays[left][: len(decay)])
        stride *= 2
    while stride > 1:
        stride //= 2
        between = slice(3 * stride - 1, None, 2 * stride)
        change = changes[between]
        change.addcmul_(decays[between], changes[2 * stride - 1 :: 2 * stride][: len(change)])


class Leaky(torch.autograd.Function):
    """h = u h + (1 − u) n, where u and n come from the input alone: x is both, side by side, u not yet squashed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], h: Tensor) -> Tensor:
        gates = x.detach()
        u, n = gates.chunk(2, 1)
        u.sigmoid_()
        whole, outputs = allocate_steps(h, counts)
        decays = to_steps(u, counts)
        steps = scan_(decays, to_steps(n - u * n, counts), whole[: counts[0]], choose_block(decays))
        outputs.copy_(to_rows(steps, counts))
        ctx.save_for_backward(gates, h, whole)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, h, whole = ctx.saved_tensors
        counts, d_gates = ctx.counts, torch.empty_like(gates)
        (u, n), (d_u, d_n) = gates.chunk(2, 1), d_gates.chunk(2, 1)
        # The gradient of h runs the other way: what is asked of a step, and the share u of it that the next one kept.
        shares = to_steps(u, counts)
        d_first, last = shares[0], shares.new_zeros(1, *shares.shape[1:])
        decays = torch.cat([last, shares[1:].flip(0)])
        d_hs = scan_(decays, to_steps(d_outputs, counts).flip(0), last[0], choose_block(decays)).flip(0)
        d_first = pad_rows(d_first * d_hs[0], h)
        d_h = to_rows(d_hs, counts)
        torch.sub(shift_steps(whole, counts), n, out=d_u).mul_(d_h)
        bend_sigmoid(d_u, u, grad_input=d_u)
        torch.addcmul(d_h, d_h, u, value=-1, out=d_n)
        return d_gates, None, d_first


def to_steps(rows: Tensor, counts: list[int]) -> Tensor:
    """A copy of rows (N, size), step by step (T, B, size): zeros behind the end of each sequence."""
    shape = len(counts), counts[0], rows.shape[1]
    if counts[0] == counts[-1]:
        return rows.clone(memory_format=torch.contiguous_format).view(shape)
    return rows.new_zeros(shape).flatten(0, 1).index_copy_(0, places(counts, rows.device), rows).view(shape)


def to_rows(steps: Tensor, counts: list[int]) -> Tensor:
    """The way back."""
    rows = steps.flatten(0, 1)
    return rows if counts[0] == counts[-1] else rows.index_select(0, places(counts, steps.device))


def places(counts: list[int], device: torch.device) -> Tensor:
    """Where each row stands among the steps, ended sequences counted."""
    going = torch.arange(counts[0], device=device) < torch.tensor(counts, device=device)[:, None]
    return going.flatten().nonzero().flatten()
