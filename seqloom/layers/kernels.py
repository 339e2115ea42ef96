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


class LSTM(torch.autograd.Function):
    """i, f, g, o = x + U h;  c = σ(f) c + σ(i) tanh(g);  h = σ(o) tanh(c)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        size, gates, ahead = h.shape[1], x.detach(), U.t()
        outputs, cells, squashed = (x.new_empty(len(x), size) for _ in range(3))
        now, cell = h, c
        for at in steps_of(counts):
            here = gates[at]
            count = len(here)
            here.addmm_(now[:count], ahead)
            i_f, g, o = here.split([2 * size, size, size], 1)
            i_f.sigmoid_(), g.tanh_(), o.sigmoid_()
            i, f = i_f.chunk(2, 1)
            cell = torch.mul(f, cell[:count], out=cells[at]).addcmul_(i, g)
            now = torch.mul(o, torch.tanh(cell, out=squashed[at]), out=outputs[at])
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
        d_hs = torch.zeros_like(outputs) if d_outputs is None else d_outputs.clone()
        d_cs = torch.zeros_like(cells) if d_cells is None else d_cells.clone()
        later, carried, kept = d_gates[:0], d_cs[:0], f[:0]
        for at in backwards(ctx.counts):
            d_h, d_c, here = d_hs[at], d_cs[at], d_gates[at]
            d_h[: len(later)].addmm_(later, U)
            d_c[: len(later)].addcmul_(carried, kept)
            d_c.addcmul_(d_h, through[at])
            here[:, : 3 * size].unflatten(1, (3, size)).mul_(d_c[:, None])
            here[:, 3 * size :].mul_(d_h)
            later, carried, kept = here, d_c, f[at]
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        return d_gates, None, d_U, widened(later @ U, h), widened(carried * kept, c)


class Coupled(torch.autograd.Function):
    """f, g, o = x + U h;  c = σ(f) c + (1 − σ(f)) tanh(g);  h = σ(o) tanh(c)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        size, gates, ahead = h.shape[1], x.detach(), U.t()
        outputs, cells, squashed = (x.new_empty(len(x), size) for _ in range(3))
        now, cell = h, c
        for at in steps_of(counts):
            here = gates[at]
            count = len(here)
            f, g, o = here.addmm_(now[:count], ahead).chunk(3, 1)
            f.sigmoid_(), g.tanh_(), o.sigmoid_()
            cell = torch.lerp(g, cell[:count], f, out=cells[at])
            now = torch.mul(o, torch.tanh(cell, out=squashed[at]), out=outputs[at])
        ctx.save_for_backward(gates, U, h, c, outputs, cells, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, h, c, outputs, cells, squashed = ctx.saved_tensors
        size = h.shape[1]
        f, g, o = gates.chunk(3, 1)
        d_gates = torch.empty_like(gates)
        torch.mul((before(c, cells, ctx.counts) - g) * f, 1 - f, out=d_gates[:, :size])
        torch.mul(1 - f, 1 - g * g, out=d_gates[:, size : 2 * size])
        torch.mul(squashed * o, 1 - o, out=d_gates[:, 2 * size :])
        through = o * (1 - squashed * squashed)
        d_hs = torch.zeros_like(outputs) if d_outputs is None else d_outputs.clone()
        d_cs = torch.zeros_like(cells) if d_cells is None else d_cells.clone()
        later, carried, kept = d_gates[:0], d_cs[:0], f[:0]
        for at in backwards(ctx.counts):
            d_h, d_c, here = d_hs[at], d_cs[at], d_gates[at]
            d_h[: len(later)].addmm_(later, U)
            d_c[: len(later)].addcmul_(carried, kept)
            d_c.addcmul_(d_h, through[at])
            here[:, : 2 * size].unflatten(1, (2, size)).mul_(d_c[:, None])
            here[:, 2 * size :].mul_(d_h)
            later, carried, kept = here, d_c, f[at]
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        return d_gates, None, d_U, widened(later @ U, h), widened(carried * kept, c)


class Peephole(torch.autograd.Function):
    """i, f, g, o = x + U h, and i, f see V c, o sees V of the new c; the rest is an LSTM's.

    V is diagonal, (3, size): of i, f and o.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        size, gates, ahead = h.shape[1], x.detach(), U.t()
        outputs, cells, squashed = (x.new_empty(len(x), size) for _ in range(3))
        now, cell = h, c
        for at in steps_of(counts):
            here = gates[at]
            count = len(here)
            here.addmm_(now[:count], ahead)
            i_f, g, o = here.split([2 * size, size, size], 1)
            i_f.unflatten(1, (2, size)).addcmul_(V[:2], cell[:count, None])
            i_f.sigmoid_(), g.tanh_()
            i, f = i_f.chunk(2, 1)
            cell = torch.mul(f, cell[:count], out=cells[at]).addcmul_(i, g)
            o.addcmul_(V[2], cell).sigmoid_()
            now = torch.mul(o, torch.tanh(cell, out=squashed[at]), out=outputs[at])
        ctx.save_for_backward(gates, U, V, h, c, outputs, cells, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, V, h, c, outputs, cells, squashed = ctx.saved_tensors
        size, old = h.shape[1], before(c, cells, ctx.counts)
        i, f, g, o = gates.chunk(4, 1)
        d_gates = torch.empty_like(gates)
        torch.mul(g * i, 1 - i, out=d_gates[:, :size])
        torch.mul(old * f, 1 - f, out=d_gates[:, size : 2 * size])
        torch.mul(i, 1 - g * g, out=d_gates[:, 2 * size : 3 * size])
        by_o = torch.mul(squashed * o, 1 - o, out=d_gates[:, 3 * size :])
        through = o * (1 - squashed * squashed) + by_o * V[2]  # h sees c, and the output gate does
        # what c of a step says of c before: it stays by f, and the gates i and f have seen it
        stays = f + d_gates[:, :size] * V[0] + d_gates[:, size : 2 * size] * V[1]
        d_hs = torch.zeros_like(outputs) if d_outputs is None else d_outputs.clone()
        d_cs = torch.zeros_like(cells) if d_cells is None else d_cells.clone()
        later, carried, kept = d_gates[:0], d_cs[:0], stays[:0]
        for at in backwards(ctx.counts):
            d_h, d_c, here = d_hs[at], d_cs[at], d_gates[at]
            d_h[: len(later)].addmm_(later, U)
            d_c[: len(later)].addcmul_(carried, kept)
            d_c.addcmul_(d_h, through[at])
            here[:, : 3 * size].unflatten(1, (3, size)).mul_(d_c[:, None])
            here[:, 3 * size :].mul_(d_h)
            later, carried, kept = here, d_c, stays[at]
        d_i, d_f, _, d_o = d_gates.chunk(4, 1)
        d_V = torch.stack([(d_i * old).sum(0), (d_f * old).sum(0), (d_o * cells).sum(0)])
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        return d_gates, None, d_U, d_V, widened(later @ U, h), widened(carried * kept, c)


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
