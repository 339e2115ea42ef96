"""The fast ways to run the LSTM and its relatives; see `kernels.py` for how.

Each walks forwards over what depends on the state, and backwards over what depends on the gradient; what a change of a
gate does is worked out for all steps at once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .kernels import backwards, before, steps_of, widened


def slopes(gates: Tensor, old: Tensor, squashed: Tensor) -> tuple[Tensor, Tensor]:
    """Of i, f, g, o, the old c and tanh(c): how c moves with what i, f and g are squashed from and how h does with that
    of o, side by side; and how h moves with c."""
    size = old.shape[1]
    i, f, g, o = gates.chunk(4, 1)
    moves = torch.empty_like(gates)
    torch.mul(g * i, 1 - i, out=moves[:, :size])
    torch.mul(old * f, 1 - f, out=moves[:, size : 2 * size])
    torch.mul(i, 1 - g * g, out=moves[:, 2 * size : 3 * size])
    torch.mul(squashed * o, 1 - o, out=moves[:, 3 * size :])
    return moves, o * (1 - squashed * squashed)


def owned(gradient: Tensor | None, like: Tensor) -> Tensor:
    """The gradient as something to write into; zeros where there is none."""
    return torch.zeros_like(like) if gradient is None else gradient.clone()


def retrace(
    counts: list[int], U: Tensor, moves: Tensor, through: Tensor, stays: Tensor, d_hs: Tensor, d_cs: Tensor
) -> tuple[Tensor, Tensor]:
    """Backwards over all steps: `moves` becomes the gradient of the gates before they were squashed.

    All blocks of it but the last go with c, the last with h; `through` says how h moves with c, `stays` how c does with
    the c before. What arrives at the first h and c is given back.
    """
    size = d_hs.shape[1]
    by_c = moves.shape[1] - size
    later, carried, kept = moves[:0], d_cs[:0], stays[:0]
    for at in backwards(counts):
        d_h, d_c, here = d_hs[at], d_cs[at], moves[at]
        d_h[: len(later)].addmm_(later, U)
        d_c[: len(later)].addcmul_(carried, kept)
        d_c.addcmul_(d_h, through[at])
        here[:, :by_c].unflatten(1, (-1, size)).mul_(d_c[:, None])
        here[:, by_c:].mul_(d_h)
        later, carried, kept = here, d_c, stays[at]
    return later @ U, carried * kept


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
        f = gates[:, size : 2 * size]
        d_gates, through = slopes(gates, before(c, cells, ctx.counts), squashed)
        d_hs, d_cs = owned(d_outputs, outputs), owned(d_cells, cells)
        d_h, d_c = retrace(ctx.counts, U, d_gates, through, f, d_hs, d_cs)
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        return d_gates, None, d_U, widened(d_h, h), widened(d_c, c)


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
        d_hs, d_cs = owned(d_outputs, outputs), owned(d_cells, cells)
        d_h, d_c = retrace(ctx.counts, U, d_gates, through, f, d_hs, d_cs)
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        return d_gates, None, d_U, widened(d_h, h), widened(d_c, c)


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
        f = gates[:, size : 2 * size]
        d_gates, through = slopes(gates, old, squashed)
        through += d_gates[:, 3 * size :] * V[2]  # h sees c, and so does the output gate
        # what c of a step says of c before: it stays by f, and the gates i and f have seen it
        stays = f + d_gates[:, :size] * V[0] + d_gates[:, size : 2 * size] * V[1]
        d_hs, d_cs = owned(d_outputs, outputs), owned(d_cells, cells)
        d_h, d_c = retrace(ctx.counts, U, d_gates, through, stays, d_hs, d_cs)
        d_i, d_f, _, d_o = d_gates.chunk(4, 1)
        d_V = torch.stack([(d_i * old).sum(0), (d_f * old).sum(0), (d_o * cells).sum(0)])
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        return d_gates, None, d_U, d_V, widened(d_h, h), widened(d_c, c)


class FullPeephole(torch.autograd.Function):
    """As `Peephole`, but V are whole matrices: of i and f together, (2 size, size), and of o, (size, size)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, V_o: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        size, gates, ahead = h.shape[1], x.detach(), U.t()
        outputs, cells, squashed = (x.new_empty(len(x), size) for _ in range(3))
        now, cell = h, c
        for at in steps_of(counts):
            here = gates[at]
            count = len(here)
            here.addmm_(now[:count], ahead)
            i_f, g, o = here.split([2 * size, size, size], 1)
            i, f = i_f.addmm_(cell[:count], V.t()).sigmoid_().chunk(2, 1)
            cell = torch.mul(f, cell[:count], out=cells[at]).addcmul_(i, g.tanh_())
            o.addmm_(cell, V_o.t()).sigmoid_()
            now = torch.mul(o, torch.tanh(cell, out=squashed[at]), out=outputs[at])
        ctx.save_for_backward(gates, U, V, V_o, h, c, outputs, cells, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, V, V_o, h, c, outputs, cells, squashed = ctx.saved_tensors
        size, old = h.shape[1], before(c, cells, ctx.counts)
        f = gates[:, size : 2 * size]
        d_gates, through = slopes(gates, old, squashed)
        d_hs, d_cs = owned(d_outputs, outputs), owned(d_cells, cells)
        later, carried, kept = d_gates[:0], d_cs[:0], f[:0]
        for at in backwards(ctx.counts):
            d_h, d_c, here = d_hs[at], d_cs[at], d_gates[at]
            d_h[: len(later)].addmm_(later, U)
            d_c[: len(later)].addcmul_(carried, kept).addmm_(later[:, : 2 * size], V)
            d_o = here[:, 3 * size :].mul_(d_h)
            d_c.addcmul_(d_h, through[at]).addmm_(d_o, V_o)
            here[:, : 3 * size].unflatten(1, (3, size)).mul_(d_c[:, None])
            later, carried, kept = here, d_c, f[at]
        d_U = d_gates.t() @ before(h, outputs, ctx.counts)
        d_V, d_V_o = d_gates[:, : 2 * size].t() @ old, d_gates[:, 3 * size :].t() @ cells
        d_first = torch.addcmul(later[:, : 2 * size] @ V, carried, kept)
        return d_gates, None, d_U, d_V, d_V_o, widened(later @ U, h), widened(d_first, c)


class NormedLSTM(torch.autograd.Function):
    """i, f, g, o = x + norm(U h);  c = σ(f) c + σ(i) tanh(g);  h = σ(o) tanh(norm(c)).

    The norm of U h has a scale, that of c a scale and a shift.
    """

    EPSILON = 1e-5  # that of nn.LayerNorm

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        counts: list[int],
        U: Tensor,
        scale: Tensor,
        scale_c: Tensor,
        shift_c: Tensor,
        h: Tensor,
        c: Tensor,
    ) -> tuple[Tensor, Tensor]:
        size, gates, ahead, epsilon = h.shape[1], x.detach(), U.t(), NormedLSTM.EPSILON
        products = torch.empty_like(gates)  # U h, before it is normalised
        outputs, cells, squashed = (x.new_empty(len(x), size) for _ in range(3))
        spread, spread_c = x.new_empty(2, len(x), 1), x.new_empty(2, len(x), 1)  # mean and 1 / deviation of each
        now, cell = h, c
        for at in steps_of(counts):
            here = gates[at]
            count = len(here)
            product = torch.mm(now[:count], ahead, out=products[at])
            normal, spread[0, at], spread[1, at] = torch.native_layer_norm(product, [4 * size], scale, None, epsilon)
            i_f, g, o = here.add_(normal).split([2 * size, size, size], 1)
            i_f.sigmoid_(), g.tanh_(), o.sigmoid_()
            i, f = i_f.chunk(2, 1)
            cell = torch.mul(f, cell[:count], out=cells[at]).addcmul_(i, g)
            known, spread_c[0, at], spread_c[1, at] = torch.native_layer_norm(cell, [size], scale_c, shift_c, epsilon)
            now = torch.mul(o, torch.tanh(known, out=squashed[at]), out=outputs[at])
        ctx.save_for_backward(gates, products, U, scale, scale_c, h, c, outputs, cells, squashed, spread, spread_c)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, products, U, scale, scale_c, h, c, outputs, cells, squashed, spread, spread_c = ctx.saved_tensors
        size = h.shape[1]
        f = gates[:, size : 2 * size]
        d_gates, through = slopes(gates, before(c, cells, ctx.counts), squashed)
        d_products = torch.empty_like(gates)
        d_hs, d_cs = owned(d_outputs, outputs), owned(d_cells, cells)
        later, carried, kept = d_products[:0], d_cs[:0], f[:0]
        for at in backwards(ctx.counts):
            d_h, d_c, here = d_hs[at], d_cs[at], d_gates[at]
            d_h[: len(later)].addmm_(later, U)
            d_c[: len(later)].addcmul_(carried, kept)
            seen = through[at].mul_(d_h)  # the gradient of the normalised c, kept for that of its scale
            d_c.add_(unnormed(seen, cells[at], spread_c[:, at], scale_c))
            here[:, : 3 * size].unflatten(1, (3, size)).mul_(d_c[:, None])
            here[:, 3 * size :].mul_(d_h)
            later = d_products[at].copy_(unnormed(here, products[at], spread[:, at], scale))
            carried, kept = d_c, f[at]
        d_scale = (d_gates * (products - spread[0]) * spread[1]).sum(0)
        d_scale_c = (through * (cells - spread_c[0]) * spread_c[1]).sum(0)
        d_U = d_products.t() @ before(h, outputs, ctx.counts)
        first = widened(later @ U, h), widened(carried * kept, c)
        return d_gates, None, d_U, d_scale, d_scale_c, through.sum(0), *first


def unnormed(gradient: Tensor, x: Tensor, spread: Tensor, scale: Tensor) -> Tensor:
    """The gradient of what was normalised, from that of what came out."""
    wanted = [True, False, False]
    found: Tensor = torch.ops.aten.native_layer_norm_backward(
        gradient, x, [x.shape[1]], spread[0], spread[1], scale, None, wanted
    )[0]
    return found
