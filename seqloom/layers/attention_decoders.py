"""Recurrent decoders that look at a memory: before each step, or after the scan. Any score serves either."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import Attention
from .base import Entries, Layer, Memory, Stack
from .cell import walk
from .cells import Cell, MakeCell
from .description import EACH, READOUT_ATTENTION, SOURCE, Description, count_parameters
from .fast import cell_steps
from .fast.steps import Step
from .materialize import materialize
from .padding import full_mask, zero_padding
from .recurrent import (
    FinalStateSizes,
    Recurrent,
    build_decoder_initial_state,
    recurrent_decoder,
    stack_levels,
    zero_entries,
)
from .state import State, map_state, raise_to_single


class Bahdanau(Layer):
    """Looks at the memory before each step and feeds what it sees into the cell (Bahdanau et al., 2015)."""

    looks_at = {SOURCE: "attention.weights"}

    def __init__(self, cell: Cell, begin: nn.Module, attention: Attention) -> None:
        super().__init__()
        self.cell, self.begin, self.attention, self.final_state_sizes = cell, begin, attention, (cell.sizes,)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.begin(zero_entries(self.cell, batch), memory), self.attention.prepare(memory)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return (state[0],)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if torch.is_autocast_enabled(x.device.type):  # a walk is in single precision always: errors would add up
            with torch.autocast(x.device.type, enabled=False):
                return self.forward(raise_to_single(x), map_state(raise_to_single, state), mask)
        entries, source = state
        cell = materialize(self.cell)  # weights that are computed, or left out by chance, are the same at all steps
        shares, join = self.shares(zero_padding(x, mask), cell)

        marks = iter((full_mask(x) if mask is None else mask).split(1, 1))

        def step(share: Tensor, entries: Entries) -> Entries:
            nonlocal source
            context, source = self.attention.look(entries[0][:, None], source, next(marks))
            return cell.step(join(share, context[:, 0]), entries)

        y, entries = walk(step, shares, entries, mask)
        return zero_padding(y, mask), (entries, source)

    @staticmethod
    def shares(x: Tensor, cell: Cell) -> tuple[Tensor, Callable[[Tensor, Tensor], Tensor]]:
        """What of W [x; context] is known before the walk, for all steps at once, and how a step joins its context."""
        W = cell.W
        if not isinstance(W, nn.Linear):
            return x, lambda x_t, context: W(torch.cat([x_t, context], -1))
        of_x, of_context = W.weight.split([x.shape[-1], W.in_features - x.shape[-1]], 1)
        return F.linear(x, of_x, W.bias), lambda share, context: torch.addmm(share, context, of_context.t())

    def describe(self) -> Description:
        about = self.cell.describe()
        return replace(about, name=f"{about.name} with attention", parameters=count_parameters(self), looks=True)

    def fast_step(self) -> Step:
        advance, look = self.cell.fast_step(), self.attention.fast_look()
        if advance is None or look is None or not isinstance(self.cell.W, nn.Linear):
            return super().fast_step()
        return cell_steps.step_bahdanau(self, advance, look)


class Luong(Layer):
    """Looks at the memory after the scan and joins what it sees to the output (Luong et al., 2015)."""

    looks_at = {SOURCE: "attention.weights"}

    def __init__(self, size: int, memory: int, attention: Attention) -> None:
        super().__init__()
        self.attention, self.join = attention, nn.Linear(size + memory, size)

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.attention.prepare(memory)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        x = zero_padding(x, mask)
        context, state = self.attention.look(x, state, mask)
        return zero_padding(self.join(torch.cat([x, context], -1)).tanh(), mask), state

    def describe(self) -> Description:
        return Description("attention", EACH, count_parameters(self), READOUT_ATTENTION, looks=True)

    def fast_step(self) -> Step:
        look = self.attention.fast_look()
        return super().fast_step() if look is None else cell_steps.step_luong(self, look)


def luong_decoder(
    cell: MakeCell,
    inputs: int,
    sizes: Sequence[int],
    memory: int,
    attention: Attention,
    final_state_sizes: FinalStateSizes = (),
    *,
    dropout: float = 0.0,
    variational_dropout: bool = False,
) -> Layer:
    """A stack of recurrences, and on top of it a look at the memory."""
    below = recurrent_decoder(
        cell, inputs, sizes, memory, final_state_sizes, dropout=dropout, variational_dropout=variational_dropout
    )
    return Stack(below, Luong(sizes[-1], memory, attention))


def bahdanau_decoder(
    cell: MakeCell,
    inputs: int,
    sizes: Sequence[int],
    memory: int,
    attention: Attention,
    final_state_sizes: FinalStateSizes = (),
    *,
    dropout: float = 0.0,
    variational_dropout: bool = False,
) -> Layer:
    """The lowest level looks, the others stand on it."""
    cells = [cell(*widths) for widths in zip([inputs + memory, *sizes], sizes, strict=False)]
    starts = [build_decoder_initial_state(cell, level, memory, final_state_sizes) for level, cell in enumerate(cells)]
    looking = Bahdanau(cells[0], starts[0], attention)
    return stack_levels([looking, *map(Recurrent, cells[1:], starts[1:])], dropout, variational_dropout)
