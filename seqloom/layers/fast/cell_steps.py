"""Single steps of cells, and of decoders that look at a memory with one: see `steps.py`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..state import Entries, SharedLeaf, State
from . import native_steps
from .native_kernels import can_use
from .steps import Change, Step, change_of, product

if TYPE_CHECKING:
    from ..attention_decoders import Bahdanau, Luong
    from ..cells import Cell

Advance = Callable[[Tensor, Entries], Entries]  # W x + b (B, …) and the entries before -> the entries after
Look = Callable[
    [Tensor, SharedLeaf], Tensor
]  # queries (B, Q) and a memory, which some rows share -> what they see of it


def step_recurrence(advance: Advance, W: Change) -> Step:
    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        state = advance(W(x), state)
        return state[0], state

    return step


def advance_lstm(cell: "Cell") -> Advance:
    U, size = cell.U.weight, cell.size
    if can_use(U):
        of_h, finish = native_steps.product(U, None), native_steps.lstm(size, U.dtype)
        return lambda share, entries: finish(share, of_h(entries[0]), entries[1])
    of_h = product(U, None)

    def advance(share: Tensor, entries: Entries) -> Entries:
        h, c = entries
        gates = of_h(h).add_(share)
        g = gates[:, 2 * size : 3 * size].tanh()
        i, f, _, o = gates.sigmoid_().split(size, 1)  # all gates in one go: a quarter for nothing is cheaper
        c = torch.addcmul(f * c, i, g)
        return o * c.tanh(), c

    return advance


def advance_gru(cell: "Cell") -> Advance:
    U, b, size = cell.U.weight, cell.U.bias, cell.size
    of_h = product(U, b)
    if can_use(U):
        finish = native_steps.gru(size, U.dtype)
        return lambda share, entries: (finish(share, of_h(entries[0]), entries[0]),)

    def advance(share: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        old = of_h(h)
        r_u = torch.add(share[:, : 2 * size], old[:, : 2 * size]).sigmoid_()
        n = torch.addcmul(share[:, 2 * size :], r_u[:, :size], old[:, 2 * size :]).tanh_()
        return (torch.lerp(n, h, r_u[:, size:]),)

    return advance


def step_bahdanau(layer: "Bahdanau", advance: Advance, look: Look) -> Step:
    W = change_of(layer.cell.W)

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        entries, source = state
        entries = advance(W(torch.cat([x, look(entries[0], source)], 1)), entries)
        return entries[0], (entries, source)

    return step


def step_luong(layer: "Luong", look: Look) -> Step:
    join = change_of(layer.join)

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        return join(torch.cat([x, look(x, state)], 1)).tanh_(), state

    return step
