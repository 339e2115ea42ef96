"""The levels of a model by the names a person would give them, and what passes there.

A level of a recurrence is watched at its cell, step by step, so that gradients include the way through time; any other
level at the tap behind it in its stack.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..layers.attention_decoders import Bahdanau, Luong
from ..layers.base import Encoder, Layer, Stack
from ..layers.cells import Cell
from ..layers.convolution import Convolution
from ..layers.recurrent import Bidirectional, Recurrent
from ..layers.residual import Residual
from ..layers.transformer import CausalAttention, CrossAttention, SelfAttention
from .measures.reading import Model, bodies, called

Tape = Mapping[str, list[Tensor]]


@dataclass(frozen=True)
class Level:
    """A place of a model: which side of the batch it reads, its name, its tap, and its cell if it has one."""

    side: str
    name: str
    tap: str
    cell: Cell | None = None
    prefix: str = ""  # of the cell's own taps
    backwards: bool = False

    def steps(self, tape: Tape) -> list[Tensor]:
        """What passed, in the order of time: one tensor (B, size) a step, or one (B, T, size) for all."""
        seen = tape.get(self.tap, [])
        return seen[::-1] if self.backwards else seen

    def values(self, tape: Tape) -> Tensor:
        """What passed, (B, T, size)."""
        return joined(self.steps(tape), self.cell is not None)


def joined(steps: list[Tensor], walked: bool) -> Tensor:
    if not walked:
        return steps[0]
    return torch.stack(steps, 1) if steps else torch.zeros(0, 0, 0)


def levels(model: Model) -> list[Level]:
    """Every level of the model, the lowest first, the encoder's before the decoder's."""
    found = []
    for side, (prefix, body) in bodies(model).items():
        part = called(model, side)
        layer, inner = (body.layer, f"{prefix}layer.") if isinstance(body, Encoder) else (body, prefix)
        for tap, name, cell, cells, backwards in _Walk().down(layer, inner, ""):
            found.append(Level(side, f"{part} {name}".strip(), tap, cell, cells, backwards))
    return found


def recurrences(model: Model) -> list[Level]:
    """The levels that walk a cell over time."""
    return [level for level in levels(model) if level.cell is not None]


Found = tuple[str, str, Cell | None, str, bool]  # tap, name, cell, prefix of the cell, whether it reads backwards


class _Walk:
    """Counts levels on the way down a body."""

    def __init__(self) -> None:
        self.count = 0

    def down(self, layer: nn.Module, prefix: str, out: str) -> Iterator[Found]:
        """`out` is the tap behind the layer, if a stack holds it."""
        if isinstance(layer, Recurrent | Bahdanau):
            self.count += 1
            yield self._walked(layer.cell, prefix, f"layer {self.count}", False)
        elif isinstance(layer, Bidirectional):
            self.count += 1
            for number, (way, words) in enumerate(zip(layer.ways, ("forwards", "backwards"), strict=True)):
                name = f"layer {self.count} {words}"
                yield self._walked(way.cell, f"{prefix}ways.{number}.", name, number == 1)
        elif isinstance(layer, Stack):
            for number, part in enumerate(layer.layers):
                yield from self.down(part, f"{prefix}layers.{number}.", f"{prefix}out.{number}")
        elif isinstance(layer, Residual | Convolution | Luong):
            if out:
                yield out, self._name(layer), None, "", False
        else:
            for name, child in layer.named_children():
                if isinstance(child, Layer):
                    yield from self.down(child, f"{prefix}{name}.", "")

    def _walked(self, cell: Cell, prefix: str, name: str, backwards: bool) -> Found:
        taps = f"{prefix}cell.taps."
        return f"{taps}{cell.entries[0]}", name, cell, taps, backwards

    def _name(self, layer: nn.Module) -> str:
        if isinstance(layer, Luong):
            return "attention"
        inner = layer.layer if isinstance(layer, Residual) else layer
        if isinstance(inner, CrossAttention):
            return f"layer {self.count} source attention"
        if isinstance(inner, SelfAttention | CausalAttention | Convolution | Stack):
            self.count += 1
        if isinstance(inner, SelfAttention | CausalAttention):
            return f"layer {self.count} self-attention"
        return f"layer {self.count}" if isinstance(inner, Convolution | Stack) else f"layer {self.count} feed-forward"


def place_name(model: Model, module: str) -> str:
    """What a person calls the part of the model in which this module stands."""
    if level := holding(levels(model), module):
        return level.name
    for side, (prefix, _) in bodies(model).items():
        if module.startswith(prefix):
            return f"{called(model, side)} end".strip()
    return module


def holding(found: Sequence[Level], name: str) -> Level | None:
    """The level in which the module or parameter of this name stands, if it stands in one."""
    for level in found:
        inside = level.tap.replace("out.", "layers.") if level.cell is None else level.prefix.removesuffix("cell.taps.")
        if name.startswith(f"{inside.rstrip('.')}."):
            return level
    return None
