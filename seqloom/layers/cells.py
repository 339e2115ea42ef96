"""One step of a recurrence, and the cells: each its equations and nothing else.

A cell takes an input (B, ...) and its entries, and returns the next entries: tensors (B, size), the first of which is
the cell's output. W, U and b are the courses' letters: W (with b) looks at the input, U at the state. What a cell calls
`W` is applied to the inputs of all steps at once, before the walk, so `forward` is given W x + b.

To add a cell, name its entries and gates, write `forward`, and join `CELLS`: depth, both ways, padding, decoding and
watching come by themselves.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from . import kernels
from .base import Entries
from .tap import Tap, watched


class Cell(nn.Module):
    entries: tuple[str, ...] = ("h",)
    gates: tuple[str, ...] = ()

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.inputs, self.size, self.sizes = inputs, size, (size,) * len(self.entries)
        self.taps = nn.ModuleDict({name: Tap() for name in (*self.entries, *self.gates)})
        self.W: nn.Module = nn.Identity()

    @abstractmethod
    def forward(self, x: Tensor, entries: Entries) -> Entries:
        """The equations: the entries after one step. x is what W made of the input."""

    def gate(self, name: str, value: Tensor) -> Tensor:
        """How far the gate is open, between 0 and 1."""
        opening: Tensor = self.taps[name](value.sigmoid())
        return opening

    def step(self, x: Tensor, entries: Entries) -> Entries:
        """`forward`, watched."""
        return tuple(self.taps[name](entry) for name, entry in zip(self.entries, self(x, entries), strict=True))

    def scan(self, x: Tensor, entries: Entries, mask: Tensor | None = None) -> tuple[Tensor, Entries]:
        """All outputs over x (B, T, inputs), and the last entries."""
        fast = self.kernel()
        if fast is None or x.shape[1] < 2 or watched(self):  # one step costs less than preparing a kernel for it
            return walk(self.step, self.W(x), entries, mask)
        return kernels.scan(fast, self.W, x, entries, mask)

    def kernel(self) -> kernels.Kernel | None:
        """A fast way to compute what `forward` says over many steps, where there is one."""
        return None


def walk(
    step: Callable[[Tensor, Entries], Entries], x: Tensor, entries: Entries, mask: Tensor | None
) -> tuple[Tensor, Entries]:
    """Step after step over x (B, T, ...); where the mask is false the entries pass."""
    outputs = []
    for time, x_t in enumerate(x.unbind(1)):
        after = step(x_t, entries)
        entries = after if mask is None else kept(mask[:, time, None], after, entries)
        outputs.append(entries[0])
    return torch.stack(outputs, 1) if outputs else entries[0][:, None][:, :0], entries


def kept(mask: Tensor, after: Entries, before: Entries) -> Entries:
    """The new entries in the rows that moved, the old ones in the others."""
    return tuple(torch.where(mask, new, old) for new, old in zip(after, before, strict=True))


class RNNCell(Cell):
    """Elman's: h = tanh(W x + U h + b)."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, size, size), linear(size, size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        return (torch.tanh(x + self.U(h)),)

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(kernels.RNN, (self.U.weight,))


class LSTMCell(Cell):
    """Gates for what comes in, stays and goes out (Hochreiter and Schmidhuber, 1997; Gers et al., 2000)."""

    entries, gates = ("h", "c"), ("i", "f", "o")

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 4 * size, size), linear(size, 4 * size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        i, f, g, o = (x + self.U(h)).chunk(4, -1)
        c = self.gate("f", f) * c + self.gate("i", i) * g.tanh()
        return self.gate("o", o) * c.tanh(), c

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(kernels.LSTM, (self.U.weight,))


class PeepholeLSTMCell(Cell):
    """The gates see c too (Gers and Schmidhuber, 2000): each unit its own, or, if `full`, all of it."""

    entries, gates = ("h", "c"), ("i", "f", "o")

    def __init__(self, inputs: int, size: int, full: bool = False) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 4 * size, size), linear(size, 4 * size, size, bias=False)
        self.i, self.f, self.o = (linear(size, size, size, False) if full else Scale(size) for _ in range(3))

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        i, f, g, o = (x + self.U(h)).chunk(4, -1)
        c = self.gate("f", f + self.f(c)) * c + self.gate("i", i + self.i(c)) * g.tanh()
        return self.gate("o", o + self.o(c)) * c.tanh(), c


class Scale(nn.Module):
    """A product with a diagonal matrix."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class CoupledLSTMCell(Cell):
    """What is forgotten makes room for what is new: one gate for both (Greff et al., 2015)."""

    entries, gates = ("h", "c"), ("f", "o")

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 3 * size, size), linear(size, 3 * size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        f, g, o = (x + self.U(h)).chunk(3, -1)
        f = self.gate("f", f)
        c = f * c + (1 - f) * g.tanh()
        return self.gate("o", o) * c.tanh(), c


class GRUCell(Cell):
    """The reset gate acts after the product, as in cuDNN and `nn.GRU`."""

    gates = ("r", "u")

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 3 * size, size), linear(size, 3 * size, size)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        (x_r, x_u, x_n), (h_r, h_u, h_n) = x.chunk(3, -1), self.U(h).chunk(3, -1)
        n = torch.tanh(x_n + self.gate("r", x_r + h_r) * h_n)
        u = self.gate("u", x_u + h_u)
        return (u * h + (1 - u) * n,)

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(kernels.GRU, (self.U.weight, self.U.bias))


class ResetBeforeGRUCell(Cell):
    """The reset gate acts on h before the product, not after it (Cho et al., 2014)."""

    gates = ("r", "u")

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 3 * size, size), linear(size, 2 * size, size, bias=False)
        self.U_n = linear(size, size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        (x_r, x_u, x_n), (h_r, h_u) = x.chunk(3, -1), self.U(h).chunk(2, -1)
        n = torch.tanh(x_n + self.U_n(self.gate("r", x_r + h_r) * h))
        u = self.gate("u", x_u + h_u)
        return (u * h + (1 - u) * n,)


def linear(inputs: int, outputs: int, size: int, bias: bool = True) -> nn.Linear:
    """A product whose weights start as those of `torch.nn`'s recurrent layers do: even, within 1 / sqrt(size)."""
    product = nn.Linear(inputs, outputs, bias)
    for parameter in product.parameters():
        nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
    return product


MakeCell = Callable[[int, int], Cell]  # inputs, size

CELLS: dict[str, MakeCell] = {
    "rnn": RNNCell,
    "lstm": LSTMCell,
    "peephole": PeepholeLSTMCell,
    "peephole-full": partial(PeepholeLSTMCell, full=True),
    "coupled": CoupledLSTMCell,
    "gru": GRUCell,
    "gru-reset-before": ResetBeforeGRUCell,
}
