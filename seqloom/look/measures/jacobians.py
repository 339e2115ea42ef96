"""How much of the state at step t is left in the state at the end: ∂s_T/∂s_t by lag, beside the bounds on it.

The state is all that a cell carries (an LSTM's h and c together). Each step's Jacobian is taken at the state that was
really there, and their product is the exact Jacobian over the steps. What reaches a step by other ways, such as
attention to a source, is held fixed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...arrays import Floats
from ...layers.base import Entries
from ...layers.cells import Cell
from ...layers.tap import recording
from ...models import Batch
from ..places import Level, list_recurrences
from .reading import Model, compute_features, copy_sharing_weights, disable_dropout, get_mask, take_row
from .spectra import compute_spectrum, list_recurrent_blocks


@dataclass(frozen=True)
class Decay:
    """By lag from 0, (T,): the norm of ∂s_T/∂s_(T−lag), and two bounds on it."""

    name: str
    norms: Floats
    steps: Floats  # the product of the single steps' norms: no Jacobian of theirs can be larger
    bound: Floats | None  # (γ_max · λ₁)^lag, which a plain recurrence cannot exceed


def compute_decays(model: Model, batch: Batch) -> list[Decay]:
    """Of every recurrence of the model, on the first row of the batch."""
    batch, read = take_row(batch), copy_sharing_weights(model)
    calls = [
        (level, _record_calls(same.cell))
        for level, same in zip(list_recurrences(model), list_recurrences(read), strict=True)
    ]
    with disable_dropout(read), torch.no_grad(), recording(read, "*taps.*"):
        compute_features(read, batch)
    with disable_dropout(model):
        return [_compute_decay(level, call) for level, call in calls if get_mask(batch, level.side).any()]


def _record_calls(cell: Cell | None) -> list[tuple[Tensor, Entries]]:
    """What the cell will be given at each step of its walk."""
    assert cell is not None
    calls: list[tuple[Tensor, Entries]] = []

    def listen(cell: nn.Module, arguments: tuple[Any, ...]) -> None:
        calls.append((arguments[0].detach(), tuple(entry.detach() for entry in arguments[1])))

    cell.register_forward_pre_hook(listen)
    return calls


def compute_step_jacobian(cell: Cell, x: Tensor, entries: Entries) -> Tensor:
    """∂s'/∂s of one step, s being all entries side by side; x and the entries have one row."""
    state = torch.cat(entries, 1)
    size = state.shape[1]
    rows = state.expand(size, -1).clone().requires_grad_()  # a row for each output, since rows do not mix
    after = torch.cat(cell(x.expand(size, -1), rows.split(list(cell.sizes), 1)), 1)
    if not after.requires_grad:
        return torch.zeros_like(rows)
    [jacobian] = torch.autograd.grad(after, rows, torch.eye(size).to(after), allow_unused=True)
    return torch.zeros_like(rows) if jacobian is None else jacobian


def _compute_decay(level: Level, calls: list[tuple[Tensor, Entries]]) -> Decay:
    cell = level.cell
    assert cell is not None
    size = sum(cell.sizes)
    product = torch.eye(size, dtype=torch.float64)
    norms, steps = [1.0], [1.0]
    for x, entries in reversed(calls[1:]):  # the first step goes from the start, which is no step of the sequence
        jacobian = compute_step_jacobian(cell, x, entries).double().cpu()
        product = product @ jacobian
        norms.append(float(torch.linalg.matrix_norm(product, 2)))
        steps.append(steps[-1] * float(torch.linalg.matrix_norm(jacobian, 2)))
    slope, bound = cell.unwrap().slope, None
    if slope is not None:
        [(name, block)] = list_recurrent_blocks(level)
        bound = (slope * compute_spectrum(name, block).norm) ** np.arange(len(norms), dtype=float)
    return Decay(level.name, np.array(norms), np.array(steps), bound)
