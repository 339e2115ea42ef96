"""The fast ways to run what `cells.py` spells out: backpropagation through time by hand, without the padding.

A batch is laid out step by step, the longest rows first (`Packing`), so that at each step the rows still going stand
together and padding is never read. A kernel is an autograd function over rows in that layout: it is given the input's
share W x + b of all steps, (N, blocks · size), walks only over what depends on the state, and does the rest for all
steps at once. It may write into that share, which nobody else needs. Laws prove each kernel equal to its cell's
equations, in value and gradient.

What costs on a CPU is the number of small operations a step, so each is written to need few of them: everything is cut
into steps before the walk, and tanh(z) is 2 σ(2 z) − 1, because PyTorch's σ takes a third of the time of its tanh.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..padding import to_front
from ..state import Entries

MINUS_ONE = torch.tensor(-1.0)  # a number in Python would be made into a tensor each time
bend_sigmoid = torch.ops.aten.sigmoid_backward.grad_input  # g, s -> g s (1 − s): what σ does to a gradient
bend_tanh = torch.ops.aten.tanh_backward.grad_input  # g, t -> g (1 − t²)


@dataclass(frozen=True)
class Packing:
    """Where the N valid elements of a padded batch (B, T) stand when they are laid out step by step."""

    index: Tensor  # (N,) into the flattened batch
    counts: list[int]  # how many rows are still going, step by step
    rows: Tensor  # (B,) the rows of the batch, the longest first
    ends: Tensor  # (number of rows that have an element,) where the last element of each stands in the layout

    @classmethod
    def of(cls, mask: Tensor) -> "Packing":
        time, device = mask.shape[1], mask.device
        lengths, rows = mask.sum(1).sort(descending=True, stable=True)
        places = (rows[:, None] * time + to_front(mask)[0][rows]).T  # (T, B)
        going = torch.arange(time, device=device)[:, None] < lengths
        counts = going.sum(1)
        some = int(counts[0])
        ends = (counts.cumsum(0) - counts)[lengths[:some] - 1] + torch.arange(some, device=device)
        return cls(places[going], counts[counts > 0].tolist(), rows, ends)


@dataclass(frozen=True)
class Kernel:
    function: type[torch.autograd.Function]
    weights: tuple[Tensor, ...]
    prepare: Callable[[Tensor], Tensor] = torch.Tensor.contiguous  # from W x + b to what the function reads
    whole: Callable[[Tensor, Entries], tuple[Tensor, Entries]] | None = None  # PyTorch's own, for what has no padding


def scan(
    kernel: Kernel, read: Callable[[Tensor], Tensor], x: Tensor, entries: Entries, mask: Tensor | None
) -> tuple[Tensor, Entries]:
    """What `Cell.scan` promises, through the kernel: all outputs over x (B, T, D), and the last entries."""
    batch, time, _ = x.shape
    if mask is None and kernel.whole is not None and x.dtype == torch.float32 and x.device.type == "cpu":
        return kernel.whole(x, entries)
    if mask is None:
        steps = run(kernel, read(x.transpose(0, 1).flatten(0, 1)), [batch] * time, entries)
        return steps[0].unflatten(0, (time, batch)).transpose(0, 1), tuple(step[-batch:] for step in steps)
    packing = Packing.of(mask)
    if not packing.counts:
        return x.new_zeros(batch, time, entries[0].shape[1]), entries
    first = tuple(entry.index_select(0, packing.rows) for entry in entries)
    steps = run(kernel, read(x.flatten(0, 1).index_select(0, packing.index)), packing.counts, first)
    home = packing.rows.argsort()
    last = tuple(
        torch.cat([step.index_select(0, packing.ends), entry[len(packing.ends) :]]).index_select(0, home)
        for step, entry in zip(steps, first, strict=True)
    )
    outputs = x.new_zeros(batch * time, steps[0].shape[1]).index_copy(0, packing.index, steps[0])
    return outputs.view(batch, time, -1), last


def run(kernel: Kernel, shares: Tensor, counts: list[int], first: Entries) -> Entries:
    """Each entry at each step, (N, size)."""
    steps: Tensor | Entries = kernel.function.apply(kernel.prepare(shares), counts, *kernel.weights, *first)
    return (steps,) if isinstance(steps, Tensor) else steps


# --- what the kernels are made of -------------------------------------------------------------------------------


def split_steps(counts: list[int], *tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """Each step's part of each tensor (N, …)."""
    return list(zip(*(tensor.split(counts) for tensor in tensors), strict=True))


def select_going(tensor: Tensor, step: Tensor) -> Tensor:
    """The rows that a later step still has."""
    return tensor if len(tensor) == len(step) else tensor[: len(step)]


def sigmoid_to_tanh(s: Tensor) -> Tensor:
    """2 s − 1, in place: σ(2 z) becomes tanh(z)."""
    return torch.add(MINUS_ONE, s, alpha=2, out=s)


def allocate_steps(first: Tensor, counts: list[int]) -> tuple[Tensor, Tensor]:
    """Room for an entry at all steps, behind the first one: the whole of it, and the room alone, (N, size)."""
    whole = first.new_empty(counts[0] + sum(counts), first.shape[1])
    whole[: counts[0]] = first[: counts[0]]
    return whole, whole[counts[0] :]


def shift_steps(whole: Tensor, counts: list[int]) -> Tensor:
    """An entry (N, size) as each element finds it: the first one, then what the step before left."""
    if counts[0] == counts[-1]:
        return whole[: -counts[0]]
    pieces, place = [], 0
    for count, after in zip([counts[0], *counts], counts, strict=False):
        pieces.append(whole[place : place + after])
        place += count
    return torch.cat(pieces)


def pad_rows(gradient: Tensor, like: Tensor) -> Tensor:
    """The gradient of the first entries: rows that have no element get none."""
    if len(gradient) == len(like):
        return gradient
    whole = torch.zeros_like(like)
    whole[: len(gradient)] = gradient
    return whole


# --- kernels ----------------------------------------------------------------------------------------------------


class RNN(torch.autograd.Function):
    """h = tanh(x + U h)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor) -> Tensor:
        whole, outputs = allocate_steps(h, counts)
        now, ahead = h, 2 * U.t()
        for here, output in split_steps(counts, x.detach().mul_(2), outputs):
            now = sigmoid_to_tanh(torch.sigmoid(here.addmm_(select_going(now, here), ahead), out=output))
        ctx.save_for_backward(U, h, whole)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        U, h, whole = ctx.saved_tensors
        outputs, d_x = whole[ctx.counts[0] :], torch.empty_like(d_outputs)
        later = d_x[:0]
        for d_h, output, here in reversed(split_steps(ctx.counts, d_outputs, outputs, d_x)):
            if len(later) == len(here):
                torch.addmm(d_h, later, U, out=here)
            else:
                here.copy_(d_h)[: len(later)].addmm_(later, U)
            later = bend_tanh(here, output, grad_input=here)
        return d_x, None, d_x.t() @ shift_steps(whole, ctx.counts), pad_rows(later @ U, h)


class GRU(torch.autograd.Function):
    """r, u = σ(x + U h + b);  n = tanh(x + r (U h + b));  h = u h + (1 − u) n."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, b: Tensor, h: Tensor) -> Tensor:
        size, gates = h.shape[1], x.detach()
        gates[:, : 2 * size] += b[: 2 * size]
        gates[:, 2 * size :] *= 2
        gating, proposing, offset = U[: 2 * size].t(), 2 * U[2 * size :].t(), 2 * b[2 * size :]
        shares = torch.empty_like(gates[:, :size])  # 2 (U h + b) of the candidate, which the reset gate weighs
        whole, outputs = allocate_steps(h, counts)
        blocks, now = gates.chunk(3, 1), h
        for r_u, r, u, n, share, output in split_steps(counts, gates[:, : 2 * size], *blocks, shares, outputs):
            old = select_going(now, r)
            r_u.addmm_(old, gating).sigmoid_()
            sigmoid_to_tanh(n.addcmul_(r, torch.addmm(offset, old, proposing, out=share)).sigmoid_())
            now = torch.lerp(n, old, u, out=output)
        ctx.save_for_backward(gates, shares, U, h, whole)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, shares, U, h, whole = ctx.saved_tensors
        size, earlier = h.shape[1], shift_steps(whole, ctx.counts)
        r, u, n = gates.chunk(3, 1)
        # How n behind its reset, r, u and n before it (blocks 0 to 3) move with h, for all steps at once: the first
        # three are the gradient of the product U h + b, the last three, once h's is multiplied in, that of x.
        moves = gates.new_empty(len(gates), 4 * size)
        d_share, d_r, d_u, d_n = moves.chunk(4, 1)
        bend_tanh(1 - u, n, grad_input=d_n)
        bend_sigmoid(torch.mul(d_n, shares, out=d_r).mul_(0.5), r, grad_input=d_r)
        bend_sigmoid(torch.sub(earlier, n, out=d_u), u, grad_input=d_u)
        torch.mul(d_n, r, out=d_share)
        d_product, turned = moves[:, : 3 * size], torch.cat([U[2 * size :], U[: 2 * size]])
        d_hs = d_outputs.clone()
        later, carried, kept = d_product[:0], d_hs[:0], u[:0]
        for d_h, blocks, product, share in reversed(
            split_steps(ctx.counts, d_hs, moves.unflatten(1, (4, size)), d_product, u)
        ):
            select_going(d_h, later).addmm_(later, turned).addcmul_(carried, kept)
            blocks.mul_(d_h[:, None])
            later, carried, kept = product, d_h, share
        d_first = torch.addcmul(later @ turned, carried, kept)
        d_U, d_b = d_product.t() @ earlier, d_product.sum(0)
        return moves[:, size:], None, d_U.roll(2 * size, 0), d_b.roll(2 * size), pad_rows(d_first, h)


class ResetBefore(torch.autograd.Function):
    """r, u = σ(x + U h);  n = tanh(x + V (r h));  h = u h + (1 − u) n."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, h: Tensor) -> Tensor:
        size, gates = h.shape[1], x.detach()
        gates[:, 2 * size :] *= 2
        gating, proposing = U.t(), 2 * V.t()
        resets = torch.empty_like(gates[:, :size])  # r h
        whole, outputs = allocate_steps(h, counts)
        blocks, now = gates.chunk(3, 1), h
        for r_u, r, u, n, reset, output in split_steps(counts, gates[:, : 2 * size], *blocks, resets, outputs):
            old = select_going(now, r)
            r_u.addmm_(old, gating).sigmoid_()
            sigmoid_to_tanh(n.addmm_(torch.mul(r, old, out=reset), proposing).sigmoid_())
            now = torch.lerp(n, old, u, out=output)
        ctx.save_for_backward(gates, resets, U, V, h, whole)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, resets, U, V, h, whole = ctx.saved_tensors
        size, earlier = h.shape[1], shift_steps(whole, ctx.counts)
        r, u, n = gates.chunk(3, 1)
        d_gates = torch.empty_like(gates)
        d_r, d_u, d_n = d_gates.chunk(3, 1)
        bend_sigmoid(earlier, r, grad_input=d_r)  # by what the reset state changes
        bend_sigmoid(torch.sub(earlier, n, out=d_u), u, grad_input=d_u)
        bend_tanh(1 - u, n, grad_input=d_n)
        d_hs, d_r_u, d_u_n = d_outputs.clone(), d_gates[:, : 2 * size], d_gates[:, size:].unflatten(1, (2, size))
        later, passed = d_r_u[:0], d_hs[:0]
        for d_h, of_r, of_u, r_u, u_n, of_n, d_reset in reversed(
            split_steps(ctx.counts, d_hs, r, u, d_r_u, d_u_n, d_n, d_r)
        ):
            select_going(d_h, later).addmm_(later, U).add_(passed)
            u_n.mul_(d_h[:, None])
            back = of_n @ V
            d_reset.mul_(back)
            later, passed = r_u, torch.mul(d_h, of_u).addcmul_(back, of_r)
        d_first = (later @ U).add_(passed)
        return d_gates, None, d_r_u.t() @ earlier, d_n.t() @ resets, pad_rows(d_first, h)
