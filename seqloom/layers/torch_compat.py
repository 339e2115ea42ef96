"""RNN, LSTM and GRU as `torch.nn` has them, weights in and out: the same numbers, with everything a `Layer` can do."""

from abc import abstractmethod
from typing import Any, Self

import torch
from torch import Tensor, nn

from .base import Entries, Layer, Memory
from .cell import find_cells
from .cells import Cell, GRUCell, LSTMCell, MakeCell, ProjectedLSTMCell, RNNCell
from .description import BACKWARDS, RECURRENCE, walk_parts
from .fast import native_decoder
from .fast.steps import Step
from .recurrent import recurrent_encoder
from .state import State


class TorchCompatible(Layer):
    """A stack of recurrences that can be had from, and given to, one of PyTorch's."""

    def __init__(self, cell: MakeCell, inputs: int, size: int, depth: int, bidirectional: bool, dropout: float) -> None:
        super().__init__()
        width = 2 * size if bidirectional else size  # PyTorch's size is that of one way
        merge = "concatenate" if bidirectional else "none"
        self.stack = recurrent_encoder(cell, inputs, [width] * depth, merge=merge, dropout=dropout)
        self.inputs, self.size, self.depth = inputs, size, depth
        self.bidirectional, self.dropout = bidirectional, dropout
        self.causal, self.final_state_sizes = self.stack.causal, self.stack.final_state_sizes

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.stack.initial_state(batch, memory)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return self.stack.final_states(state)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.stack(x, state, mask)

    def fast_step(self) -> Step:
        return self.stack.fast_step()

    def decoder_parts(self) -> native_decoder.Parts | None:
        return self.stack.decoder_parts()

    @classmethod
    def like(cls, module: Any, **own: Any) -> Self:
        """A layer of the module's shape; `own` are settings of one kind."""
        sizes = module.input_size, module.proj_size or module.hidden_size, module.num_layers
        shared = {name: getattr(module, name) for name in ("bidirectional", "bias", "dropout")}
        build: Any = cls
        return build(*sizes, **shared, **own)

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
            for name, weight in self.torch_weights().items():
                module.get_parameter(name).copy_(weight)
        return module

    def torch_weights(self) -> dict[str, Tensor]:
        """The weights by PyTorch's names. It has two biases everywhere; where we have one, the second is zero."""
        weights: dict[str, Tensor] = {}
        for cell, suffix in self.cells():
            W, U = cell.W, cell.U
            weights |= {f"weight_ih{suffix}": W.weight, f"weight_hh{suffix}": U.weight}
            if W.bias is not None:
                second = torch.zeros_like(W.bias) if U.bias is None else U.bias
                weights |= {f"bias_ih{suffix}": W.bias, f"bias_hh{suffix}": second}
            if (projection := dict(cell.named_parameters()).get("P.weight")) is not None:
                weights[f"weight_hr{suffix}"] = projection
        return weights

    def cells(self) -> list[tuple[Cell, str]]:
        """Each cell with the ending of its weights' names in PyTorch."""
        levels = [place.part for place in walk_parts(self.stack) if place.about.role == RECURRENCE]
        return [
            (cell, f"_l{level}{'_reverse' if direction == BACKWARDS else ''}")
            for level, part in enumerate(levels)
            for _, cell, direction in find_cells(part)
        ]


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
    def like(cls, module: Any, **own: Any) -> Self:
        return super().like(module, activation=module.nonlinearity)

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
    def like(cls, module: Any, **own: Any) -> Self:
        return super().like(module, memory=module.hidden_size if module.proj_size else 0)

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

    def twin(self) -> nn.RNNBase:
        return nn.GRU(self.inputs, self.size, self.depth, self.bias, True, self.dropout, self.bidirectional)
