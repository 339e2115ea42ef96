"""One step of a recurrence, and the walk over many.

A cell takes an input (B, ...) and its entries, and returns the next entries: tensors (B, size), the first of which is
the cell's output. What a cell calls `W` is applied to the inputs of all steps at once, before the walk, so `forward` is
given W x + b.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .description import FORWARDS, RECURRENCE, DescribedModule, Description, count_parameters, join_path
from .fast import cell_steps, kernels, native_kernels, native_stack
from .materialize import materialize
from .padding import zero_padding
from .state import Entries, raise_to_single
from .tap import Tap, is_watched


class Cell(DescribedModule):
    """One step of a recurrence. `forward` is enough; `kernel`, `step_once`, `fast_step` and `block` are faster ways."""

    fast_ways = ("kernel", "step_once", "fast_step", "block")
    slope: float | None = None  # the steepest of the activation of a plain recurrence; a gated one has no such number
    entries: tuple[str, ...] = ("h",)
    gates: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()  # what W x + b is cut into

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.inputs, self.size, self.sizes = inputs, size, (size,) * len(self.entries)
        self.taps = nn.ModuleDict({name: Tap() for name in (*self.entries, *self.gates)})
        self.W: Any = nn.Identity()
        self.U: Any = nn.Identity()

    @abstractmethod
    def forward(self, x: Tensor, entries: Entries) -> Entries:
        """The equations: the entries after one step. x is what W made of the input."""

    def gate(self, name: str, value: Tensor) -> Tensor:
        """How far the gate is open, between 0 and 1."""
        return self.taps[name](value.sigmoid())

    def step(self, x: Tensor, entries: Entries) -> Entries:
        """`forward`, watched."""
        return tuple(self.taps[name](entry) for name, entry in zip(self.entries, self(x, entries), strict=True))

    def scan(self, x: Tensor, entries: Entries, mask: Tensor | None = None) -> tuple[Tensor, Entries]:
        """All outputs over x (B, T, inputs), zeros for padding, and the last entries.

        What stands in padding is not read. In single precision always: errors would add up.
        """
        if torch.is_autocast_enabled(x.device.type):
            with torch.autocast(x.device.type, enabled=False):
                return self.scan(raise_to_single(x), tuple(map(raise_to_single, entries)), mask)
        unseen = not is_watched(self.taps)
        if x.shape[1] == 1 and mask is None and unseen:
            entries = self.step_once(x[:, 0], entries)
            return entries[0][:, None], entries
        cell = materialize(self)
        fast = cell.kernel() if unseen else None
        if fast is None or x.shape[1] < 2:  # one step costs less than preparing a kernel for it
            y, entries = walk(cell.step, cell.W(zero_padding(x, mask)), entries, mask)
            return zero_padding(y, mask), entries
        return kernels.scan(native_kernels.choose_kernel(fast, x), cell.W, x, entries, mask)

    def step_once(self, x: Tensor, entries: Entries) -> Entries:
        """A single step on an input (B, inputs), as in generating."""
        return self(self.W(x), entries)

    def kernel(self) -> kernels.Kernel | None:
        """A fast way to compute what `forward` says over many steps, where there is one."""
        return None

    def fast_step(self) -> cell_steps.Advance | None:
        """`forward`, prepared for many single steps without gradient, where there is a faster way."""
        return None

    def block(self) -> native_stack.Block | None:
        """What native code has to know to step through it as part of a whole decoder, if it can."""
        return None

    @property
    def output(self) -> str:  # type: ignore[override]
        return f"taps.{self.entries[0]}"

    def unwrap(self) -> "Cell":
        """The cell whose equations these are, without what is put around it."""
        return self

    def describe(self) -> Description:
        name = type(self).__name__.removesuffix("Cell")
        return Description(name, FORWARDS, count_parameters(self), RECURRENCE)


def find_cells(part: DescribedModule, path: str = "", direction: str = "") -> Iterator[tuple[str, Cell, str]]:
    """Every cell that a part walks over time: where it stands, and in which direction it reads."""
    if isinstance(part, Cell):
        yield path, part, direction
        return
    for child in part.children_in_order():
        yield from find_cells(child.part, join_path(path, child.path), child.direction or direction)


def walk(
    step: Callable[[Tensor, Entries], Entries], x: Tensor, entries: Entries, mask: Tensor | None
) -> tuple[Tensor, Entries]:
    """Step after step over x (B, T, ...); where the mask is false the entries pass."""
    outputs = []
    for time, x_t in enumerate(x.unbind(1)):
        after = step(x_t, entries)
        entries = after if mask is None else choose_by_mask(mask[:, time, None], after, entries)
        outputs.append(entries[0])
    return torch.stack(outputs, 1) if outputs else entries[0][:, None][:, :0], entries


def choose_by_mask(mask: Tensor, after: Entries, before: Entries) -> Entries:
    """The new entries in the rows that moved, the old ones in the others."""
    return tuple(torch.where(mask, new, old) for new, old in zip(after, before, strict=True))


MakeCell = Callable[[int, int], Cell]  # inputs, size
