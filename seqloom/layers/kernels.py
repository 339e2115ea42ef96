"""The fast ways to run what `cells.py` spells out: backpropagation through time by hand, without the padding.

A batch is laid out step by step, the longest rows first (`Packing`), so that at each step the rows still going stand
together and padding is never read. A kernel is an autograd function over rows in that layout: it is given the input's
share W x + b of all steps, (N, gates), and walks only over what depends on the state. Laws prove each equal to its
cell's equations, in value and gradient.
"""

from collections.abc import Callable
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


def scan(
    kernel: Kernel, read: Callable[[Tensor], Tensor], x: Tensor, entries: Entries, mask: Tensor | None
) -> tuple[Tensor, Entries]:
    """What `cells.walk` computes, through the kernel: all outputs over x (B, T, D), and the last entries."""
    batch, time, _ = x.shape
    packing = Packing.of(batch, time, mask, x.device)
    if not packing.counts:
        return entries[0][:, None].expand(-1, time, -1), entries
    shares = read(x.flatten(0, 1).index_select(0, packing.index))
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


def starts(counts: list[int]) -> list[int]:
    """Where each step begins in the layout."""
    places, place = [], 0
    for count in counts:
        places.append(place)
        place += count
    return places


def before(first: Tensor, steps: Tensor, counts: list[int]) -> Tensor:
    """An entry (N, size) as each element finds it: the first one, then what the step before left."""
    pieces, place = [first[: counts[0]]], 0
    for count, after in zip(counts, counts[1:], strict=False):
        pieces.append(steps[place : place + after])
        place += count
    return torch.cat(pieces)


class RNN(torch.autograd.Function):
    """h = tanh(x + U h)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor) -> Tensor:
        steps, ahead, now = x.clone(), U.t().contiguous(), h
        for place, count in zip(starts(counts), counts, strict=True):
            here = steps[place : place + count]
            now = here.addmm_(now[:count], ahead).tanh_()
        ctx.save_for_backward(steps, U, h)
        ctx.counts = counts
        return steps

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_steps: Tensor) -> tuple[Tensor | None, ...]:
        steps, U, h = ctx.saved_tensors
        slope, d_x = 1 - steps * steps, d_steps.clone()
        later = d_x[:0]
        for place, count in reversed(list(zip(starts(ctx.counts), ctx.counts, strict=True))):
            here = d_x[place : place + count]
            here[: len(later)].addmm_(later, U)
            later = here.mul_(slope[place : place + count])
        d_h = torch.zeros_like(h)
        d_h[: len(later)] = later @ U
        return d_x, None, d_x.t() @ before(h, steps, ctx.counts), d_h


class LSTM(torch.autograd.Function):
    """i, f, g, o = x + U h;  c = σ(f) c + σ(i) tanh(g);  h = σ(o) tanh(c)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        size = h.shape[1]
        gates, ahead = x.clone(), U.t().contiguous()
        outputs, cells, squashed = (x.new_empty(len(x), size) for _ in range(3))
        now, cell = h, c
        for place, count in zip(starts(counts), counts, strict=True):
            end = place + count
            here = gates[place:end].addmm_(now[:count], ahead)
            here[:, : 2 * size].sigmoid_()
            g = here[:, 2 * size : 3 * size].tanh_()
            o = here[:, 3 * size :].sigmoid_()
            cell = torch.mul(here[:, size : 2 * size], cell[:count], out=cells[place:end]).addcmul_(here[:, :size], g)
            now = torch.mul(o, torch.tanh(cell, out=squashed[place:end]), out=outputs[place:end])
        ctx.save_for_backward(gates, U, h, c, outputs, cells, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, h, c, outputs, cells, squashed = ctx.saved_tensors
        size = h.shape[1]
        i, f, g, o = gates.chunk(4, 1)
        # What a change of h and of c does to the gates before they are squashed, for all steps at once.
        d_gates = torch.empty_like(gates)
        torch.mul(g * i, 1 - i, out=d_gates[:, :size])
        torch.mul(before(c, cells, ctx.counts) * f, 1 - f, out=d_gates[:, size : 2 * size])
        torch.mul(i, 1 - g * g, out=d_gates[:, 2 * size : 3 * size])
        torch.mul(squashed * o, 1 - o, out=d_gates[:, 3 * size :])
        through = o * (1 - squashed * squashed)
        d_h_all = torch.zeros_like(outputs) if d_outputs is None else d_outputs.clone()
        d_c_all = torch.zeros_like(cells) if d_cells is None else d_cells.clone()
        later, carried = d_gates[:0], d_c_all[:0]
        for place, count in reversed(list(zip(starts(ctx.counts), ctx.counts, strict=True))):
            end = place + count
            d_h, d_c, here = d_h_all[place:end], d_c_all[place:end], d_gates[place:end]
            d_h[: len(later)].addmm_(later, U)
            d_c[: len(carried)].add_(carried)
            d_c.addcmul_(d_h, through[place:end])
            here[:, : 3 * size].view(count, 3, size).mul_(d_c[:, None])
            here[:, 3 * size :].mul_(d_h)
            later, carried = here, d_c * f[place:end]
        d_h, d_c = torch.zeros_like(h), torch.zeros_like(c)
        d_h[: len(later)], d_c[: len(carried)] = later @ U, carried
        return d_gates, None, d_gates.t() @ before(h, outputs, ctx.counts), d_h, d_c


class GRU(torch.autograd.Function):
    """r, u = σ(x + U h + b);  n = tanh(x + r (U h + b));  h = u h + (1 − u) n."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, b: Tensor, h: Tensor) -> Tensor:
        size = h.shape[1]
        gates, ahead = x.clone(), U.t().contiguous()
        shares = x.new_empty(len(x), size)  # U h + b of the candidate, which the reset gate weighs
        outputs, now = torch.empty_like(shares), h
        for place, count in zip(starts(counts), counts, strict=True):
            end = place + count
            here = gates[place:end]
            product = torch.addmm(b, now[:count], ahead)
            here[:, : 2 * size].add_(product[:, : 2 * size]).sigmoid_()
            share = shares[place:end].copy_(product[:, 2 * size :])
            n = here[:, 2 * size :].addcmul_(here[:, :size], share).tanh_()
            now = torch.lerp(n, now[:count], here[:, size : 2 * size], out=outputs[place:end])
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
        d_h_all = d_outputs.clone()
        later, carried = d_product[:0], d_h_all[:0]
        for place, count in reversed(list(zip(starts(ctx.counts), ctx.counts, strict=True))):
            end = place + count
            d_h = d_h_all[place:end]
            d_h[: len(later)].addmm_(later, U).add_(carried)
            later = d_product[place:end]
            later.view(count, 3, size).mul_(d_h[:, None])
            carried = d_h * u[place:end]
        d_x.view(-1, 3, size).mul_(d_h_all[:, None])
        d_h = torch.zeros_like(h)
        d_h[: len(later)] = torch.addmm(carried, later, U)
        return d_x, None, d_product.t() @ earlier, d_product.sum(0), d_h
