"""The fast ways to run the LSTM and its relatives; see `kernels.py` for how.

Each walks forwards over what depends on the state, and backwards over what depends on the gradient; what a change of a
gate does is worked out for all steps at once.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..state import Entries
from .kernels import (
    allocate_steps,
    bend_sigmoid,
    bend_tanh,
    pad_rows,
    select_going,
    shift_steps,
    sigmoid_to_tanh,
    split_steps,
)


def run_pytorch_lstm(W: nn.Linear, U: nn.Linear, x: Tensor, entries: Entries) -> tuple[Tensor, Entries]:
    """The plain LSTM over a batch without padding, as `nn.LSTM` runs it: in single precision by oneDNN."""
    bias = U.weight.new_zeros(len(U.weight))
    weights = [W.weight, U.weight, bias if W.bias is None else W.bias, bias]
    outputs, h, c = torch.lstm(x, [entry[None] for entry in entries], weights, True, 1, 0.0, True, False, True)
    return outputs, (h[0], c[0])


def compute_slopes(gates: Tensor, old: Tensor, squashed: Tensor) -> tuple[Tensor, Tensor]:
    """Of i, f, g, o, the old c and tanh(c): how c moves with what i, f and g are squashed from and how h does with that
    of o, side by side; and how h moves with c."""
    (i, f, g, o), moves = gates.chunk(4, 1), torch.empty_like(gates)
    by_i, by_f, by_g, by_o = moves.chunk(4, 1)
    bend_sigmoid(g, i, grad_input=by_i)
    bend_sigmoid(old, f, grad_input=by_f)
    bend_tanh(i, g, grad_input=by_g)
    bend_sigmoid(squashed, o, grad_input=by_o)
    return moves, torch.ops.aten.tanh_backward(o, squashed)


def copy_gradient(gradient: Tensor | None, like: Tensor) -> Tensor:
    """The gradient as something to write into; zeros where there is none."""
    return torch.zeros_like(like) if gradient is None else gradient.clone()


def double_candidate(x: Tensor, U: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """What the gates are squashed from, with the candidate's block twice as large: x itself and a copy of Uᵀ."""
    size, gates, ahead = U.shape[1], x.detach(), U.t().clone()
    for part in (gates, ahead):
        part[:, block * size : (block + 1) * size] *= 2
    return gates, ahead


def backpropagate_steps(
    counts: list[int], U: Tensor, moves: Tensor, through: Tensor, stays: Tensor, d_hs: Tensor, d_cs: Tensor
) -> tuple[Tensor, Tensor]:
    """Backwards over all steps: `moves` becomes the gradient of the gates before they were squashed.

    All blocks of it but the last go with c, the last with h; `through` says how h moves with c, `stays` how c does with
    the c before. What arrives at the first h and c is given back.
    """
    size = d_hs.shape[1]
    by_c, by_h = moves[:, :-size].unflatten(1, (-1, size)), moves[:, -size:]
    later, carried, kept = moves[:0], d_cs[:0], stays[:0]
    for d_h, d_c, here, with_c, with_h, passes, stay in reversed(
        split_steps(counts, d_hs, d_cs, moves, by_c, by_h, through, stays)
    ):
        select_going(d_h, later).addmm_(later, U)
        select_going(d_c, later).addcmul_(carried, kept)
        d_c.addcmul_(d_h, passes)
        with_c.mul_(d_c[:, None])
        with_h.mul_(d_h)
        later, carried, kept = here, d_c, stay
    return later @ U, carried * kept


class LSTM(torch.autograd.Function):
    """i, f, g, o = x + U h;  c = σ(f) c + σ(i) tanh(g);  h = σ(o) tanh(c)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates, ahead = double_candidate(x, U, 2)
        (whole_h, outputs), (whole_c, cells) = allocate_steps(h, counts), allocate_steps(c, counts)
        squashed = torch.empty_like(cells)
        now, cell = h, c
        for here, i, f, g, o, new, squash, output in split_steps(
            counts, gates, *gates.chunk(4, 1), cells, squashed, outputs
        ):
            here.addmm_(select_going(now, here), ahead).sigmoid_()
            sigmoid_to_tanh(g)
            cell = torch.mul(f, select_going(cell, here), out=new).addcmul_(i, g)
            sigmoid_to_tanh(torch.add(cell, cell, out=squash).sigmoid_())
            now = torch.mul(o, squash, out=output)
        ctx.save_for_backward(gates, U, h, c, whole_h, whole_c, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, h, c, whole_h, whole_c, squashed = ctx.saved_tensors
        f = gates.chunk(4, 1)[1]
        d_gates, through = compute_slopes(gates, shift_steps(whole_c, ctx.counts), squashed)
        d_hs, d_cs = copy_gradient(d_outputs, squashed), copy_gradient(d_cells, squashed)
        d_h, d_c = backpropagate_steps(ctx.counts, U, d_gates, through, f, d_hs, d_cs)
        d_U = d_gates.t() @ shift_steps(whole_h, ctx.counts)
        return d_gates, None, d_U, pad_rows(d_h, h), pad_rows(d_c, c)


class Coupled(torch.autograd.Function):
    """f, g, o = x + U h;  c = σ(f) c + (1 − σ(f)) tanh(g);  h = σ(o) tanh(c)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], U: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates, ahead = double_candidate(x, U, 1)
        (whole_h, outputs), (whole_c, cells) = allocate_steps(h, counts), allocate_steps(c, counts)
        squashed = torch.empty_like(cells)
        now, cell = h, c
        for here, f, g, o, new, squash, output in split_steps(
            counts, gates, *gates.chunk(3, 1), cells, squashed, outputs
        ):
            here.addmm_(select_going(now, here), ahead).sigmoid_()
            cell = torch.lerp(sigmoid_to_tanh(g), select_going(cell, here), f, out=new)
            sigmoid_to_tanh(torch.add(cell, cell, out=squash).sigmoid_())
            now = torch.mul(o, squash, out=output)
        ctx.save_for_backward(gates, U, h, c, whole_h, whole_c, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, h, c, whole_h, whole_c, squashed = ctx.saved_tensors
        f, g, o = gates.chunk(3, 1)
        d_gates = torch.empty_like(gates)
        d_f, d_g, d_o = d_gates.chunk(3, 1)
        bend_sigmoid(torch.sub(shift_steps(whole_c, ctx.counts), g, out=d_f), f, grad_input=d_f)
        bend_tanh(1 - f, g, grad_input=d_g)
        bend_sigmoid(squashed, o, grad_input=d_o)
        through = torch.ops.aten.tanh_backward(o, squashed)
        d_hs, d_cs = copy_gradient(d_outputs, squashed), copy_gradient(d_cells, squashed)
        d_h, d_c = backpropagate_steps(ctx.counts, U, d_gates, through, f, d_hs, d_cs)
        d_U = d_gates.t() @ shift_steps(whole_h, ctx.counts)
        return d_gates, None, d_U, pad_rows(d_h, h), pad_rows(d_c, c)


class Peephole(torch.autograd.Function):
    """i, f, g, o = x + U h, and i, f see V c, o sees V of the new c; the rest is an LSTM's.

    V is diagonal, (3, size): of i, f and o.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        size = h.shape[1]
        gates, ahead = double_candidate(x, U, 2)
        (whole_h, outputs), (whole_c, cells) = allocate_steps(h, counts), allocate_steps(c, counts)
        squashed = torch.empty_like(cells)
        now, cell, (V_i, V_f, V_o) = h, c, V
        for here, i_f_g, i, f, g, o, new, squash, output in split_steps(
            counts, gates, gates[:, : 3 * size], *gates.chunk(4, 1), cells, squashed, outputs
        ):
            old = select_going(cell, here)
            here.addmm_(select_going(now, here), ahead)
            i.addcmul_(V_i, old), f.addcmul_(V_f, old)
            i_f_g.sigmoid_(), sigmoid_to_tanh(g)
            cell = torch.mul(f, old, out=new).addcmul_(i, g)
            sigmoid_to_tanh(torch.add(cell, cell, out=squash).sigmoid_())
            now = torch.mul(o.addcmul_(V_o, cell).sigmoid_(), squash, out=output)
        ctx.save_for_backward(gates, U, V, h, c, whole_h, whole_c, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, V, h, c, whole_h, whole_c, squashed = ctx.saved_tensors
        old, cells = shift_steps(whole_c, ctx.counts), whole_c[ctx.counts[0] :]
        d_gates, through = compute_slopes(gates, old, squashed)
        d_i, d_f, _, d_o = d_gates.chunk(4, 1)
        through.addcmul_(d_o, V[2])  # h sees c, and so does the output gate
        # what c of a step says of c before: it stays by f, and the gates i and f have seen it
        stays = torch.addcmul(gates.chunk(4, 1)[1], d_i, V[0]).addcmul_(d_f, V[1])
        d_hs, d_cs = copy_gradient(d_outputs, squashed), copy_gradient(d_cells, squashed)
        d_h, d_c = backpropagate_steps(ctx.counts, U, d_gates, through, stays, d_hs, d_cs)
        d_V = torch.stack([(d_i * old).sum(0), (d_f * old).sum(0), (d_o * cells).sum(0)])
        d_U = d_gates.t() @ shift_steps(whole_h, ctx.counts)
        return d_gates, None, d_U, d_V, pad_rows(d_h, h), pad_rows(d_c, c)


class FullPeephole(torch.autograd.Function):
    """As `Peephole`, but V are whole matrices: of i and f together, (2 size, size), and of o, (size, size)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, counts: list[int], U: Tensor, V: Tensor, V_o: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        size, looking, looking_late = h.shape[1], V.t(), V_o.t()
        gates, ahead = double_candidate(x, U, 2)
        (whole_h, outputs), (whole_c, cells) = allocate_steps(h, counts), allocate_steps(c, counts)
        squashed = torch.empty_like(cells)
        now, cell = h, c
        for here, i_f_g, i_f, i, f, g, o, new, squash, output in split_steps(
            counts, gates, gates[:, : 3 * size], gates[:, : 2 * size], *gates.chunk(4, 1), cells, squashed, outputs
        ):
            old = select_going(cell, here)
            here.addmm_(select_going(now, here), ahead)
            i_f.addmm_(old, looking)
            i_f_g.sigmoid_(), sigmoid_to_tanh(g)
            cell = torch.mul(f, old, out=new).addcmul_(i, g)
            sigmoid_to_tanh(torch.add(cell, cell, out=squash).sigmoid_())
            now = torch.mul(o.addmm_(cell, looking_late).sigmoid_(), squash, out=output)
        ctx.save_for_backward(gates, U, V, V_o, h, c, whole_h, whole_c, squashed)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, U, V, V_o, h, c, whole_h, whole_c, squashed = ctx.saved_tensors
        size, old, cells = h.shape[1], shift_steps(whole_c, ctx.counts), whole_c[ctx.counts[0] :]
        f = gates.chunk(4, 1)[1]
        d_gates, through = compute_slopes(gates, old, squashed)
        d_i_f, d_o, by_c = d_gates[:, : 2 * size], d_gates[:, 3 * size :], d_gates[:, : 3 * size].unflatten(1, (3, -1))
        d_hs, d_cs = copy_gradient(d_outputs, squashed), copy_gradient(d_cells, squashed)
        later, later_i_f, carried, kept = d_gates[:0], d_i_f[:0], d_cs[:0], f[:0]
        for d_h, d_c, here, i_f, with_c, with_h, passes, stay in reversed(
            split_steps(ctx.counts, d_hs, d_cs, d_gates, d_i_f, by_c, d_o, through, f)
        ):
            select_going(d_h, later).addmm_(later, U)
            select_going(d_c, later).addcmul_(carried, kept).addmm_(later_i_f, V)
            d_c.addcmul_(d_h, passes).addmm_(with_h.mul_(d_h), V_o)
            with_c.mul_(d_c[:, None])
            later, later_i_f, carried, kept = here, i_f, d_c, stay
        d_U, d_V, d_V_o = d_gates.t() @ shift_steps(whole_h, ctx.counts), d_i_f.t() @ old, d_o.t() @ cells
        d_first = torch.addcmul(later_i_f @ V, carried, kept)
        return d_gates, None, d_U, d_V, d_V_o, pad_rows(later @ U, h), pad_rows(d_first, c)


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
        products = torch.empty_like(gates)  # U h, before it is normalized
        (whole_h, outputs), (whole_c, cells) = allocate_steps(h, counts), allocate_steps(c, counts)
        squashed, spreads = torch.empty_like(cells), []  # of each norm, mean and 1 / deviation
        gates[:, 2 * size : 3 * size] *= 2
        twice, twice_c, twice_shift = scale.clone(), 2 * scale_c, 2 * shift_c
        twice[2 * size : 3 * size] *= 2
        now, cell = h, c
        for here, i, f, g, o, product, new, squash, output in split_steps(
            counts, gates, *gates.chunk(4, 1), products, cells, squashed, outputs
        ):
            torch.mm(select_going(now, here), ahead, out=product)
            normal, *spread = torch.native_layer_norm(product, [4 * size], twice, None, epsilon)
            here.add_(normal).sigmoid_()
            cell = torch.mul(f, select_going(cell, here), out=new).addcmul_(i, sigmoid_to_tanh(g))
            known, *spread_c = torch.native_layer_norm(cell, [size], twice_c, twice_shift, epsilon)
            now = torch.mul(o, sigmoid_to_tanh(torch.sigmoid(known, out=squash)), out=output)
            spreads.append((*spread, *spread_c))
        saved = map(torch.cat, zip(*spreads, strict=True))
        ctx.save_for_backward(gates, products, U, scale, scale_c, h, c, whole_h, whole_c, squashed, *saved)
        ctx.counts = counts
        ctx.set_materialize_grads(False)
        return outputs, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, products, U, scale, scale_c, h, c, whole_h, whole_c, squashed, *spreads = ctx.saved_tensors
        size, counts = h.shape[1], ctx.counts
        cells, f = whole_c[counts[0] :], gates.chunk(4, 1)[1]
        d_gates, through = compute_slopes(gates, shift_steps(whole_c, counts), squashed)
        by_c, by_h = d_gates[:, : 3 * size].unflatten(1, (3, size)), d_gates[:, 3 * size :]
        d_products = torch.empty_like(gates)
        d_hs, d_cs = copy_gradient(d_outputs, squashed), copy_gradient(d_cells, squashed)
        later, carried, kept = d_products[:0], d_cs[:0], f[:0]
        whole = (d_hs, d_cs, d_gates, by_c, by_h, through, f, products, cells, d_products, *spreads)
        for d_h, d_c, here, with_c, with_h, seen, stay, product, cell, d_product, *spread in reversed(
            split_steps(counts, *whole)
        ):
            select_going(d_h, later).addmm_(later, U)
            select_going(d_c, later).addcmul_(carried, kept)
            # `seen` becomes the gradient of the normalized c, kept for that of its scale
            d_c.add_(backpropagate_norm(seen.mul_(d_h), cell, scale_c, spread[2:]))
            with_c.mul_(d_c[:, None])
            with_h.mul_(d_h)
            later = d_product.copy_(backpropagate_norm(here, product, scale, spread[:2]))
            carried, kept = d_c, stay
        d_scale, _ = compute_norm_gradients(d_gates, products, scale, spreads[:2])
        d_scale_c, d_shift_c = compute_norm_gradients(through, cells, scale_c, spreads[2:])
        d_U = d_products.t() @ shift_steps(whole_h, counts)
        first = pad_rows(later @ U, h), pad_rows(carried * kept, c)
        return d_gates, None, d_U, d_scale, d_scale_c, d_shift_c, *first


backwards = torch.ops.aten.native_layer_norm_backward


def backpropagate_norm(gradient: Tensor, x: Tensor, scale: Tensor, spread: Sequence[Tensor]) -> Tensor:
    """The gradient of what was normalized, from that of what came out."""
    return backwards(gradient, x, [x.shape[1]], *spread, scale, None, [True, False, False])[0]


def compute_norm_gradients(
    gradient: Tensor, x: Tensor, scale: Tensor, spread: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The gradients of the scale and of the shift."""
    _, d_scale, d_shift = backwards(gradient, x, [x.shape[1]], *spread, scale, scale, [False, True, True])
    return d_scale, d_shift
