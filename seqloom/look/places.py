"""The levels of a model by the names a person would give them, and what passes there.

A level of a recurrence is watched at its cell, step by step, so that gradients include the way through time; any other
level at its own tap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..layers.cell import Cell, find_cells
from ..layers.description import (
    BACKWARDS,
    FEED_FORWARD,
    POINTWISE,
    POOLING,
    POSITIONS,
    READOUT_ATTENTION,
    SELF_ATTENTION,
    SOURCE_ATTENTION,
    join_path,
    walk_parts,
)
from .measures.reading import Model, list_bodies, name_body

Tape = Mapping[str, list[Tensor]]
UNNUMBERED = {POINTWISE, POSITIONS, POOLING}  # roles that are no levels
WORDS = {role: role for role in (SELF_ATTENTION, SOURCE_ATTENTION, FEED_FORWARD, READOUT_ATTENTION)}


@dataclass(frozen=True)
class Level:
    """A place of a model: which side of the batch it reads, its name, its tap, where it stands, and its cell if it has
    one."""

    side: str
    name: str
    tap: str
    path: str
    cell: Cell | None = None
    prefix: str = ""  # of the cell's own taps
    backwards: bool = False

    def steps(self, tape: Tape) -> list[Tensor]:
        """What passed, in the order of time: one tensor (B, size) a step, or one (B, T, size) for all."""
        outputs = tape.get(self.tap, [])
        return outputs[::-1] if self.backwards else outputs

    def values(self, tape: Tape) -> Tensor:
        """What passed, (B, T, size)."""
        return concatenate_steps(self.steps(tape), self.cell is not None)


def concatenate_steps(steps: list[Tensor], walked: bool) -> Tensor:
    if not walked:
        return steps[0]
    return torch.stack(steps, 1) if steps else torch.zeros(0, 0, 0)


def list_levels(model: Model) -> list[Level]:
    """Every level of the model, the lowest first, the encoder's before the decoder's."""
    levels = []
    for side, (where, body) in list_bodies(model).items():
        count, whose = 0, name_body(model, side)
        for path, part, about in walk_parts(body, where):
            if about.role in UNNUMBERED:
                continue
            count += about.role not in (SOURCE_ATTENTION, FEED_FORWARD, READOUT_ATTENTION)
            number = "" if about.role == READOUT_ATTENTION else f"layer {count}"
            cells = list(find_cells(part, path))
            for place, cell, direction in cells:
                name = " ".join(filter(None, [whose, number, direction]))
                home = path if len(cells) == 1 else place.rpartition(".")[0]
                taps, backwards = join_path(place, "taps."), direction == BACKWARDS
                levels.append(Level(side, name, join_path(place, cell.output), home, cell, taps, backwards))
            if not cells:
                name = " ".join(filter(None, [whose, number, WORDS.get(about.role, "")]))
                levels.append(Level(side, name, join_path(path, part.output), path))
    return levels


def list_recurrences(model: Model) -> list[Level]:
    """The levels that walk a cell over time."""
    return [level for level in list_levels(model) if level.cell is not None]


def name_place(model: Model, module: str) -> str:
    """What a person calls the part of the model in which this module stands."""
    if level := find_level(list_levels(model), module):
        return level.name
    for side, (prefix, _) in list_bodies(model).items():
        if module.startswith(prefix):
            return f"{name_body(model, side)} end".strip()
    return module


def find_level(levels: Sequence[Level], name: str) -> Level | None:
    """The level in which the module or parameter of this name stands, if it stands in one."""
    return next((level for level in levels if name.startswith(f"{level.path}.")), None)
