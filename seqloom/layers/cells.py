"""The cells: each its equations and nothing else.

W, U and b are the usual letters: W (with b) looks at the input, U at the state; `forward` is given W x + b.
To add a cell, name its entries and gates, write `forward`, and join `CELLS`: depth, both ways, padding, decoding and
watching come by themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import orthogonal, spectral_norm

from .cell import Cell as Cell
from .cell import MakeCell as MakeCell
from .cell_weights import constrain_weights as constrain_weights
from .cell_weights import drop_weights as drop_weights
from .cell_weights import initialize as initialize
from .cell_weights import linear
from .fast import cell_steps, kernels, lstm_kernels, native_stack, parallel_scan
from .state import Entries

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "identity": torch.clone,
}
STEEPEST = {"tanh": 1.0, "relu": 1.0, "identity": 1.0, "sigmoid": 0.25}  # the largest slope of each


class RNNCell(Cell):
    """Elman's (1990): h = φ(W x + U h + b)."""

    def __init__(self, inputs: int, size: int, activation: str = "tanh", bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.activation, self.slope = activation, STEEPEST[activation]
        self.W, self.U = linear(inputs, size, size, bias), linear(size, size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        return (ACTIVATIONS[self.activation](x + self.U(h)),)

    def kernel(self) -> kernels.Kernel | None:
        return kernels.Kernel(kernels.RNN, (self.U.weight,)) if self.activation == "tanh" else None


class LSTMCell(Cell):
    """Gates for what comes in, stays and goes out (Hochreiter and Schmidhuber, 1997; Gers et al., 2000)."""

    entries, gates, blocks = ("h", "c"), ("i", "f", "o"), ("i", "f", "g", "o")

    def __init__(self, inputs: int, size: int, candidate: str = "tanh", bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.candidate = candidate
        self.W, self.U = linear(inputs, 4 * size, size, bias), linear(size, 4 * size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        i, f, g, o = (x + self.U(h)).chunk(4, -1)
        c = self.gate("f", f) * c + self.gate("i", i) * ACTIVATIONS[self.candidate](g)
        return self.gate("o", o) * c.tanh(), c

    def kernel(self) -> kernels.Kernel | None:
        if self.candidate != "tanh":
            return None
        whole = partial(lstm_kernels.run_pytorch_lstm, self.W, self.U)
        return kernels.Kernel(lstm_kernels.LSTM, (self.U.weight,), whole=whole)

    def step_once(self, x: Tensor, entries: Entries) -> Entries:
        if self.candidate != "tanh":
            return super().step_once(x, entries)
        return torch.lstm_cell(x, entries, self.W.weight, self.U.weight, self.W.bias)

    def fast_step(self) -> cell_steps.Advance | None:
        plain = self.candidate == "tanh" and type(self.U) is nn.Linear
        return cell_steps.advance_lstm(self) if plain else None

    def block(self) -> native_stack.Block | None:
        return native_stack.make_block(native_stack.LSTM, self.W, self.U) if self.candidate == "tanh" else None


class ProjectedLSTMCell(Cell):
    """An LSTM with two memory sizes: what it says, h, is a projection of what it knows, c (Sak et al., 2014)."""

    entries, gates, blocks = ("h", "c"), ("i", "f", "o"), ("i", "f", "g", "o")

    def __init__(self, inputs: int, size: int, memory: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.sizes = (size, memory)
        self.W, self.U = linear(inputs, 4 * memory, memory, bias), linear(size, 4 * memory, memory, bias=False)
        self.P = linear(memory, size, memory, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        i, f, g, o = (x + self.U(h)).chunk(4, -1)
        c = self.gate("f", f) * c + self.gate("i", i) * g.tanh()
        return self.P(self.gate("o", o) * c.tanh()), c


class PeepholeLSTMCell(Cell):
    """The gates see c too (Gers and Schmidhuber, 2000): each unit its own, or, if `full`, all of it.

    `sees` names the gates that do. o sees the new c, as published, or, if not `late`, the old one like i and f.
    """

    entries, gates, blocks = ("h", "c"), ("i", "f", "o"), ("i", "f", "g", "o")

    def __init__(
        self, inputs: int, size: int, full: bool = False, sees: str = "ifo", late: bool = True, bias: bool = True
    ) -> None:
        super().__init__(inputs, size)
        self.late = late
        self.W, self.U = linear(inputs, 4 * size, size, bias), linear(size, 4 * size, size, bias=False)
        make = partial(linear, size, size, size, bias=False) if full else partial(Scale, size)
        self.V = nn.ModuleDict({gate: make() if gate in sees else Nothing() for gate in self.gates})

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, old = entries
        i, f, g, o = (x + self.U(h)).chunk(4, -1)
        c = self.gate("f", f + self.V["f"](old)) * old + self.gate("i", i + self.V["i"](old)) * g.tanh()
        return self.gate("o", o + self.V["o"](c if self.late else old)) * c.tanh(), c

    def kernel(self) -> kernels.Kernel | None:
        """For the published form: all gates look, the output gate at the new c."""
        looks: list[Any] = [look.weight for look in self.V.values() if not isinstance(look, Nothing)]
        if not self.late or len(looks) < 3:
            return None
        if looks[0].dim() == 1:
            return kernels.Kernel(lstm_kernels.Peephole, (self.U.weight, torch.stack(looks)))
        return kernels.Kernel(lstm_kernels.FullPeephole, (self.U.weight, torch.cat(looks[:2]), looks[2]))


class Scale(nn.Module):
    """A product with a diagonal matrix."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Nothing(nn.Module):
    """A product with zero."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


class CoupledLSTMCell(Cell):
    """What is forgotten makes room for what is new: i = 1 − f, a quarter fewer parameters (Greff et al., 2015)."""

    entries, gates, blocks = ("h", "c"), ("f", "o"), ("f", "g", "o")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 3 * size, size, bias), linear(size, 3 * size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        f, g, o = (x + self.U(h)).chunk(3, -1)
        f = self.gate("f", f)
        c = f * c + (1 - f) * g.tanh()
        return self.gate("o", o) * c.tanh(), c

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(lstm_kernels.Coupled, (self.U.weight,))


class NormedLSTMCell(Cell):
    """An LSTM whose products and memory are normalized, each step by itself (Ba et al., 2016)."""

    entries, gates, blocks = ("h", "c"), ("i", "f", "o"), ("i", "f", "g", "o")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W = nn.Sequential(linear(inputs, 4 * size, size, bias=False), nn.LayerNorm(4 * size, bias=bias))
        self.U, self.norm_h = linear(size, 4 * size, size, bias=False), nn.LayerNorm(4 * size, bias=False)
        self.norm_c = nn.LayerNorm(size)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, c = entries
        i, f, g, o = (x + self.norm_h(self.U(h))).chunk(4, -1)
        c = self.gate("f", f) * c + self.gate("i", i) * g.tanh()
        return self.gate("o", o) * self.norm_c(c).tanh(), c

    def kernel(self) -> kernels.Kernel:
        weights = (self.U.weight, self.norm_h.weight, self.norm_c.weight, self.norm_c.bias)
        return kernels.Kernel(lstm_kernels.NormedLSTM, weights)


class GRUCell(Cell):
    """u keeps the old, r lets it into the new. The reset acts after the product, as in cuDNN and `nn.GRU`."""

    gates, blocks = ("r", "u"), ("r", "u", "n")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 3 * size, size, bias), linear(size, 3 * size, size, bias)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        (x_r, x_u, x_n), (h_r, h_u, h_n) = x.chunk(3, -1), self.U(h).chunk(3, -1)
        n = torch.tanh(x_n + self.gate("r", x_r + h_r) * h_n)
        u = self.gate("u", x_u + h_u)
        return (u * h + (1 - u) * n,)

    def kernel(self) -> kernels.Kernel:
        bias = self.U.weight.new_zeros(3 * self.size) if self.U.bias is None else self.U.bias
        return kernels.Kernel(kernels.GRU, (self.U.weight, bias))

    def step_once(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        return (torch.gru_cell(x, h, self.W.weight, self.U.weight, self.W.bias, self.U.bias),)

    def fast_step(self) -> cell_steps.Advance | None:
        return cell_steps.advance_gru(self) if type(self.U) is nn.Linear else None

    def block(self) -> native_stack.Block | None:
        return native_stack.make_block(native_stack.GRU, self.W, self.U)


class ResetBeforeGRUCell(Cell):
    """The reset gate acts on h before the product, as first published (Cho et al., 2014)."""

    gates, blocks = ("r", "u"), ("r", "u", "n")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W, self.U = linear(inputs, 3 * size, size, bias), linear(size, 2 * size, size, bias=False)
        self.U_n = linear(size, size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        (x_r, x_u, x_n), (h_r, h_u) = x.chunk(3, -1), self.U(h).chunk(2, -1)
        n = torch.tanh(x_n + self.U_n(self.gate("r", x_r + h_r) * h))
        u = self.gate("u", x_u + h_u)
        return (u * h + (1 - u) * n,)

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(kernels.ResetBefore, (self.U.weight, self.U_n.weight))


class NormedGRUCell(Cell):
    """A GRU (reset after) whose products are normalized, each step by itself (Ba et al., 2016)."""

    gates, blocks = ("r", "u"), ("r", "u", "n")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W = nn.Sequential(linear(inputs, 3 * size, size, bias=False), nn.LayerNorm(3 * size, bias=bias))
        self.U, self.norm_h = linear(size, 3 * size, size, bias=False), nn.LayerNorm(3 * size, bias=bias)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        (x_r, x_u, x_n), (h_r, h_u, h_n) = x.chunk(3, -1), self.norm_h(self.U(h)).chunk(3, -1)
        n = torch.tanh(x_n + self.gate("r", x_r + h_r) * h_n)
        u = self.gate("u", x_u + h_u)
        return (u * h + (1 - u) * n,)


class DecayGRUCell(Cell):
    """GRU-D (Che et al., 2018): what was last seen fades towards its mean, and so does h, while values are missing.

    The input is three things side by side, each as wide as the series: the values (anything where they are missing),
    1 where they were observed and 0 where not, and the time since each was last observed.
    """

    entries, gates = ("h", "x"), ("r", "u")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        channels, rest = divmod(inputs, 3)
        if rest:
            raise ValueError(f"a GRU-D reads values, what was observed and gaps: 3 × channels, not {inputs} features")
        self.channels, self.sizes = channels, (size, channels)
        self.mean = nn.Parameter(torch.zeros(channels))
        # Weight and bias: each channel fades by its own gap. At zero, where ReLU has no slope, it would never begin to.
        self.fade_x = nn.Parameter(torch.empty(1 + bias, channels).uniform_(0, size**-0.5))
        self.fade_h = linear(channels, size, size, bias)
        self.V = linear(2 * channels, 3 * size, size, bias)
        self.U, self.U_n = linear(size, 2 * size, size, bias=False), linear(size, size, size, bias=False)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        h, last = entries
        values, observed, gaps = x.chunk(3, -1)
        fading = torch.exp(-F.relu(gaps * self.fade_x[0] + self.fade_x[1:].sum(0)))
        imputed = torch.where(observed > 0, values, fading * last + (1 - fading) * self.mean)
        h = torch.exp(-F.relu(self.fade_h(gaps))) * h
        (x_r, x_u, x_n), (h_r, h_u) = self.V(torch.cat([imputed, observed], -1)).chunk(3, -1), self.U(h).chunk(2, -1)
        n = torch.tanh(x_n + self.U_n(self.gate("r", x_r + h_r) * h))
        u = self.gate("u", x_u + h_u)
        return u * h + (1 - u) * n, torch.where(observed > 0, values, last)


class MinGRUCell(Cell):
    """A GRU whose gate and candidate see the input alone, so that all steps train at once (Feng et al., 2024)."""

    gates, blocks = ("u",), ("u", "n")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W = linear(inputs, 2 * size, size, bias)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        u, n = x.chunk(2, -1)
        u = self.gate("u", u)
        return (u * h + (1 - u) * n,)

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(parallel_scan.Leaky, ())


class MinLSTMCell(Cell):
    """An LSTM whose gates see the input alone and share its memory out between them (Feng et al., 2024)."""

    gates, blocks = ("f",), ("i", "f", "n")

    def __init__(self, inputs: int, size: int, bias: bool = True) -> None:
        super().__init__(inputs, size)
        self.W = linear(inputs, 3 * size, size, bias)

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        (h,) = entries
        i, f, n = x.chunk(3, -1)
        # σ(f) / (σ(f) + σ(i)), without a quotient of numbers that may both be zero
        f = self.gate("f", F.softplus(-i) - F.softplus(-f))
        return (f * h + (1 - f) * n,)

    def kernel(self) -> kernels.Kernel:
        return kernels.Kernel(parallel_scan.Leaky, (), share_memory)


class Zoneout(Cell):
    """Another cell, of whose units some stay as they were, drawn anew at each step (Krueger et al., 2017).

    Out of training every unit moves by the share that moved on average.
    """

    def __init__(self, cell: Cell, share: float) -> None:
        super().__init__(cell.inputs, cell.size)
        self.cell, self.share = cell, share
        self.entries, self.gates, self.sizes, self.taps = cell.entries, cell.gates, cell.sizes, cell.taps

    def forward(self, x: Tensor, entries: Entries) -> Entries:
        after = self.cell(self.cell.W(x), entries)
        return tuple(self.mix(old, new) for old, new in zip(entries, after, strict=True))

    def unwrap(self) -> Cell:
        return self.cell.unwrap()

    def mix(self, old: Tensor, new: Tensor) -> Tensor:
        if self.training:
            return torch.where(torch.rand_like(new) < self.share, old, new)
        return self.share * old + (1 - self.share) * new


def share_memory(x: Tensor) -> Tensor:
    """What a minLSTM's i and f leave of its memory, and the candidate: as `parallel_scan.Leaky` reads them."""
    i, f, n = x.chunk(3, -1)
    return torch.cat([F.softplus(-i) - F.softplus(-f), n], -1)


CELLS: dict[str, MakeCell] = {
    "rnn": RNNCell,
    "rnn-relu": partial(RNNCell, activation="relu"),
    "rnn-identity": partial(RNNCell, activation="identity"),
    "rnn-sigmoid": partial(RNNCell, activation="sigmoid"),
    "lstm": LSTMCell,
    "lstm-sigmoid": partial(LSTMCell, candidate="sigmoid"),
    "lstm-normed": NormedLSTMCell,
    "peephole": PeepholeLSTMCell,
    "peephole-full": partial(PeepholeLSTMCell, full=True),
    "peephole-early": partial(PeepholeLSTMCell, sees="fo", late=False),
    "coupled": CoupledLSTMCell,
    "gru": GRUCell,
    "gru-before": ResetBeforeGRUCell,
    "gru-normed": NormedGRUCell,
    "mingru": MinGRUCell,
    "minlstm": MinLSTMCell,
    "zoneout": lambda inputs, size: Zoneout(LSTMCell(inputs, size), 0.2),
    "orthogonal": lambda inputs, size: constrain_weights(RNNCell(inputs, size), orthogonal),
    "spectral": lambda inputs, size: constrain_weights(GRUCell(inputs, size), spectral_norm),
}
