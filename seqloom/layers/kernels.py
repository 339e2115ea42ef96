"""The fast ways to run what `cells.py` spells out: backpropagation through time by hand, without the padding.

A batch is laid out step by step, the longest rows first (`Packing`), so that at each step the rows still going stand
together and padding is never read. A kernel is an autograd function over rows in that layout: it is given the input's
share W x + b of all steps, (N, blocks · size), walks only over what depends on the state, and does the rest for all
steps at once. It may write into that share, which nobody else needs. Laws prove each kernel equal to its cell's
equations, in value and gradient.

What costs on a CPU is the number of small operations a step, so each is written to need few of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .base import Entries
from .padding import to_front


@dataclass(frozen=True)
class Packing:
    """Where the N valid elements of a padded batch (B, T) stand when they are laid out step by step."""

    index: Tensor  # (N,) into the flattened batch
    counts: list[int]  # how many rows are still going, step by step
    rows: Tensor  # (B,) the rows of the batch, the longest first
    ends: Tensor  # (number of rows that have an element,) where the last element of each stands in the layout

    @classmethod
    def of(cls, batch: int, time: int, mask: Tensor | None, device: torch.device) -> "Packing":
        if mask is None:
            rows = torch.arange(batch, device=device)
            index = (rows * time + torch.arange(time, device=device)[:, None]).flatten()
            return cls(index, [batch] * time, rows, (time - 1) * batch + rows)
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


def scan(
    kernel: Kernel, read: Callable[[Tensor], Tensor], x: Tensor, entries: Entries, mask: Tensor | None
) -> tuple[Tensor, Entries]:
    """What `cells.walk` computes, through the kernel: all outputs over x (B, T, D), and the last entries."""
    batch, time, _ = x.shape
    packing = Packing.of(batch, time, mask, x.device)
    if not packing.counts:
        return entries[0][:, None].expand(-1, time, -1), entries
    shares = kernel.prepare(read(x.flatten(0, 1).index_select(0, packing.index)))
    first = tuple(entry.index_select(0, packing.rows) for entry in entries)
    steps = kernel.function.apply(shares, packing.counts, *kernel.weights, *first)  # each entry at each step, (N, size)
    steps = (steps,) if isinstance(steps, Tensor) else steps
    home = packing.rows.argsort()
    last = tuple(
        torch.cat([step.index_select(0, packing.ends), entry[len(packing.ends) :]]).index_select(0, home)
        for step, entry in zip(steps, first, strict=True)
    )
    outputs = x.new_zeros(batch * time, steps[0].shape[1]).index_copy(0, packing.index, steps[0])
    return outputs.view(batch, time, -1), last


def steps_of(counts: list[int]) -> Iterator[slice]:
    """Where each step stands in the layout."""
    place = 0
    for count in counts:
        yield slice(place, place + count)
        place += count


def backwards(counts: list[int]) -> list[slice]:
    return list(steps_of(counts))[::-1]


def before(first: Tensor, steps: Tensor, counts: list[int]) -> Tensor:
    """An entry (N, size) as each element finds it: the first one, then what the step before left."""
    pieces, place = [first[: counts[0]]], 0
    for count, after in zip(counts, counts[1:], strict=False):
        pieces.append(steps[place : place + after])
        place += count
    return torch.cat(pieces)


def widened(gradient: Tensor, like: Tensor) -> Tensor:
    """The gradient of the first entries: rows that have no element get none."""
    whole = torch.zeros_like(like)
    whole[: len(gradient)] = gradient
    return whole


class RNN(torch.autograd.Function):
    """h = tanh(x + U h)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor) -> Tensor:
        steps, ahead, now = x.detach().clone(), U.t(), h
        for at in steps_of(counts):
            here = steps[at]
            now = here.addmm_(now[: len(here)], ahead).tanh_()
        ctx.save_for_backward(steps, U, h)
        ctx.counts = counts
        return steps

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_steps: Tensor) -> tuple[Tensor | None, ...]:
        steps, U, h = ctx.saved_tensors
        slope, d_x = 1 - steps * steps, d_steps.clone()
        later = d_x[:0]
        for at in backwards(ctx.counts):
            here = d_x[at]
            here[: len(later)].addmm_(later, U)
            later = here.mul_(slope[at])
        return d_x, None, d_x.t() @ before(h, steps, ctx.counts), widened(later @ U, h)


class GRU(torch.autograd.Function):
    """r, u = σ(x + U h + b);  n = tanh(x + r (U h + b));  h = u h + (1 − u) n."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, b: Tensor, h: Tensor) -> Tensor:
        size, gates = h.shape[1], x.detach()
        gates[:, : 2 * size] += b[: 2 * size]
        gating, proposing = U[: 2 * size].t(), U[2 * size :].t()
        shares = x.new_empty(len(x), size)  # U h + b of the candidate, which the reset gate weighs
        outputs, now = torch.empty_like(shares), h
        for at in steps_of(counts):
            here = gates[at]
            old = now[: len(here)]
            r_u, n = here.split([2 * size, size], 1)
            r, u = r_u.addmm_(old, gating).sigmoid_().chunk(2, 1)
            n.addcmul_(r, torch.addmm(b[2 * size :], old, proposing, out=shares[at])).tanh_()
            now = torch.lerp(n, old, u, out=outputs[at])
        ctx.save_for_backward(gates, shares, U, h, outputs)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, shares, U, h, outputs = ctx.saved_tensors
        size, earlier = h.shape[1], before(h, outputs, ctx.counts)
        r, u, n = gates.chunk(3, 1)
        # What a change of h does to the gates before they are squashed, for all steps at once.
        d_x, d_product = torch.empty_like(gates), torch.empty_like(gates)
        d_n = torch.mul(1 - u, 1 - n * n, out=d_x[:, 2 * size :])
        torch.mul(d_n * shares, r * (1 - r), out=d_x[:, :size])
        torch.mul(earlier - n, u * (1 - u), out=d_x[:, size : 2 * size])
        d_product[:, : 2 * size] = d_x[:, : 2 * size]
        torch.mul(d_n, r, out=d_product[:, 2 * size :])
        d_hs = d_outputs.clone()
        later, carried, kept = d_product[:0], d_hs[:0], u[:0]
        for at in backwards(ctx.counts):
            d_h = d_hs[at]
            d_h[: len(later)].addmm_(later, U).addcmul_(carried, kept)
            later = d_product[at]
            later.unflatten(1, (3, size)).mul_(d_h[:, None])
            carried, kept = d_h, u[at]
        d_x.unflatten(1, (3, size)).mul_(d_hs[:, None])
        d_first = torch.addcmul(later @ U, carried, kept)
        return d_x, None, d_product.t() @ earlier, d_product.sum(0), widened(d_first, h)


class ResetBefore(torch.autograd.Function):
    """r, u = σ(x + U h);  n = tanh(x + V (r h));  h = u h + (1 − u) n."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, h: Tensor) -> Tensor:
        size, gates = h.shape[1], x.detach()
        gating, proposing = U.t(), V.t()
        reset = x.new_empty(len(x), size)  # r h
        outputs, now = torch.empty_like(reset), h
        for at in steps_of(counts):
            here = gates[at]
            old = now[: len(here)]
            r_u, n = here.split([2 * size, size], 1)
            r, u = r_u.addmm_(old, gating).sigmoid_().chunk(2, 1)
            n.addmm_(torch.mul(r, old, out=reset[at]), proposing).tanh_()
            now = torch.lerp(n, old, u, out=outputs[at])
        ctx.save_for_backward(gates, reset, U, V, h, outputs)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, reset, U, V, h, outputs = ctx.saved_tensors
        size, earlier = h.shape[1], before(h, outputs, ctx.counts)
        r, u, n = gates.chunk(3, 1)
        d_gates = torch.empty_like(gates)
        torch.mul(earlier * r, 1 - r, out=d_gates[:, :size])  # by what the reset state changes
        torch.mul((earlier - n) * u, 1 - u, out=d_gates[:, size : 2 * size])
        torch.mul(1 - u, 1 - n * n, out=d_gates[:, 2 * size :])
        d_hs, d_reset = d_outputs.clone(), torch.empty_like(reset)
        later, passed = d_gates[:0, : 2 * size], d_hs[:0]
        for at in backwards(ctx.counts):
            d_h, here, back = d_hs[at], d_gates[at], d_reset[at]
            d_h[: len(later)].addmm_(later, U).add_(passed)
            here[:, size:].unflatten(1, (2, size)).mul_(d_h[:, None])
            torch.mm(here[:, 2 * size :], V, out=back)
            here[:, :size].mul_(back)
            later = here[:, : 2 * size]
            passed = torch.addcmul(d_h * u[at], back, r[at])
        d_first = (later @ U).add_(passed)
        return (
            d_gates,
            None,
            d_gates[:, : 2 * size].t() @ earlier,
            d_gates[:, 2 * size :].t() @ reset,
            widened(d_first, h),
        )


class Leaky(torch.autograd.Function):
    """h = u h + (1 − u) n, where u and n come from the input alone: x is both, side by side, u not yet squashed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], h: Tensor) -> Tensor:
        u, n = x.chunk(2, 1)
        u = u.sigmoid()
        outputs, now = x.new_empty(n.shape), h
        for at in steps_of(counts):
            now = torch.lerp(n[at], now[: at.stop - at.start], u[at], out=outputs[at])
        ctx.save_for_backward(u, n, h, outputs)
        ctx.counts = counts
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        u, n, h, outputs = ctx.saved_tensors
        d_hs = d_outputs.clone()
        carried, kept = d_hs[:0], u[:0]
        for at in backwards(ctx.counts):
            d_h = d_hs[at]
            d_h[: len(carried)].addcmul_(carried, kept)
            carried, kept = d_h, u[at]
        d_n = d_hs * (1 - u)
        d_u = d_n * u * (before(h, outputs, ctx.counts) - n)
        return torch.cat([d_u, d_n], 1), None, widened(carried * kept, h)
