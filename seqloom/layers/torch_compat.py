"""RNN, LSTM and GRU as `torch.nn` has them, weights in and out: the same numbers, with everything a `Layer` can do."""

from abc import abstractmethod
from typing import Any, Self

import torch
from torch import Tensor, nn

from .base import Entries, Layer, Memory, Stack
from .cells import Cell, GRUCell, LSTMCell, MakeCell, ProjectedLSTMCell, RNNCell
from .fast.steps import Step
from .recurrent import Bidirectional, Recurrent, recurrent_encoder
from .state import State


class TorchCompatible(Layer):
    """A stack of recurrences that can be had from, and given to, one of PyTorch's."""

    def __init__(self, cell: MakeCell, inputs: int, size: int, depth: int, bidirectional: bool, dropout: float) -> None:
        super().__init__()
        width = 2 * size if bidirectional else size  # PyTorch's size is that of one way
        merge = "concatenate" if bidirectional else "none"
        self.stack = recurrent_encoder(cell, inputs, [width] * depth, merge=merge, dropout=dropout)
        self.inputs, self.size, self.depth, self.bidirectional, self.dropout = (
            inputs,
            size,
            depth,
            bidirectional,
            dropout,
        )
        self.causal, self.final_state_sizes = self.stack.causal, self.stack.final_state_sizes

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.stack.initial_state(batch, memory)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return self.stack.final_states(state)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.stack(x, state, mask)

    def fast_step(self) -> Step:
        return self.stack.fast_step()

    @classmethod
    @abstractmethod
    def like(cls, module: Any) -> Self:
        """A layer of the module's shape."""

    @abstractmethod
    def twin(self) -> nn.RNNBase:
        """A module of PyTorch's of this layer's shape."""

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> Self:
        """The layer that computes what the module computes."""
        layer = cls.like(module).to(next(module.parameters()))
        with torch.no_grad():
            for cell, suffix in layer.cells():
                read(cell, module, suffix)
        return layer

    def to_torch(self) -> nn.RNNBase:
        """The module of PyTorch's that computes what the layer computes, batch first."""
        module = self.twin().to(next(self.parameters()))
        with torch.no_grad():
            for cell, suffix in self.cells():
                write(cell, module, suffix)
        return module

    def cells(self) -> list[tuple[Cell, str]]:
        """Each cell with the ending of its weights' names in PyTorch."""
        assert isinstance(self.stack, Stack)
        levels = [layer for layer in self.stack.layers if isinstance(layer, Recurrent | Bidirectional)]
        found: list[tuple[Cell, str]] = []
        for level, layer in enumerate(levels):
            ways = list(layer.ways) if isinstance(layer, Bidirectional) else [layer]
            found += [(way.cell, f"_l{level}{suffix}") for way, suffix in zip(ways, ("", "_reverse"), strict=False)]
        return found


def read(cell: Any, module: nn.RNNBase, suffix: str) -> None:
    """PyTorch has two biases where, but for the GRU, one is enough: their sum."""
    weights = dict(module.named_parameters())
    cell.W.weight.copy_(weights[f"weight_ih{suffix}"])
    cell.U.weight.copy_(weights[f"weight_hh{suffix}"])
    if module.bias and cell.U.bias is None:
        cell.W.bias.copy_(weights[f"bias_ih{suffix}"] + weights[f"bias_hh{suffix}"])
    elif module.bias:
        cell.W.bias.copy_(weights[f"bias_ih{suffix}"])
        cell.U.bias.copy_(weights[f"bias_hh{suffix}"])
    if module.proj_size:
        cell.P.weight.copy_(weights[f"weight_hr{suffix}"])


def write(cell: Any, module: nn.RNNBase, suffix: str) -> None:
    weights = dict(module.named_parameters())
    weights[f"weight_ih{suffix}"].copy_(cell.W.weight)
    weights[f"weight_hh{suffix}"].copy_(cell.U.weight)
    if module.bias:
        weights[f"bias_ih{suffix}"].copy_(cell.W.bias)
        weights[f"bias_hh{suffix}"].copy_(torch.zeros_like(cell.W.bias) if cell.U.bias is None else cell.U.bias)
    if module.proj_size:
        weights[f"weight_hr{suffix}"].copy_(cell.P.weight)


class RNN(TorchCompatible):
    """Elman's network; `activation` is "tanh" or "relu"."""

    def __init__(
        self,
        inputs: int,
        size: int,
        depth: int = 1,
        *,
        activation: str = "tanh",
        bidirectional: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(lambda i, s: RNNCell(i, s, activation, bias), inputs, size, depth, bidirectional, dropout)
        self.activation, self.bias = activation, bias

    @classmethod
    def like(cls, module: Any) -> Self:
        return cls(
            module.input_size,
            module.hidden_size,
            module.num_layers,
            activation=module.nonlinearity,
            bidirectional=module.bidirectional,
            bias=module.bias,
            dropout=module.dropout,
        )

    def twin(self) -> nn.RNNBase:
        shape = (self.inputs, self.size, self.depth)
        return nn.RNN(*shape, self.activation, self.bias, True, self.dropout, self.bidirectional)


class LSTM(TorchCompatible):
    """Long short-term memory. With `memory`, c has that many units, and h is a projection of them."""

    def __init__(
        self,
        inputs: int,
        size: int,
        depth: int = 1,
        *,
        memory: int = 0,
        bidirectional: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        def cell(inputs: int, size: int) -> Cell:
            return ProjectedLSTMCell(inputs, size, memory, bias) if memory else LSTMCell(inputs, size, bias=bias)

        super().__init__(cell, inputs, size, depth, bidirectional, dropout)
        self.memory, self.bias = memory, bias

    @classmethod
    def like(cls, module: Any) -> Self:
        return cls(
            module.input_size,
            module.proj_size or module.hidden_size,
            module.num_layers,
            memory=module.hidden_size if module.proj_size else 0,
            bidirectional=module.bidirectional,
            bias=module.bias,
            dropout=module.dropout,
        )

    def twin(self) -> nn.RNNBase:
        shape = (self.inputs, self.memory or self.size, self.depth)
        return nn.LSTM(*shape, self.bias, True, self.dropout, self.bidirectional, self.size if self.memory else 0)


class GRU(TorchCompatible):
    """Gated recurrent units, the reset after the product as PyTorch has it."""

    def __init__(
        self,
        inputs: int,
        size: int,
        depth: int = 1,
        *,
        bidirectional: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(lambda i, s: GRUCell(i, s, bias), inputs, size, depth, bidirectional, dropout)
        self.bias = bias

    @classmethod
    def like(cls, module: Any) -> Self:
        return cls(
            module.input_size,
            module.hidden_size,
            module.num_layers,
            bidirectional=module.bidirectional,
            bias=module.bias,
            dropout=module.dropout,
        )

    def twin(self) -> nn.RNNBase:
        return nn.GRU(self.inputs, self.size, self.depth, self.bias, True, self.dropout, self.bidirectional)
