"""How far a recurrence stretches what it remembers: its singular values, in numbers and step by step."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...arrays import Floats
from ...layers.cells import Cell
from ..places import Level, list_recurrences
from .reading import Model


@dataclass(frozen=True)
class Spectrum:
    """Of one recurrent matrix: singular values, the largest first; the radius is of square ones alone."""

    name: str
    singular: Floats
    radius: float | None

    @property
    def norm(self) -> float:
        """The most a vector can grow in one product: λ₁."""
        return float(self.singular[0]) if len(self.singular) else 0.0


def compute_spectra(model: Model) -> list[Spectrum]:
    """Of every recurrent weight in the model, gate by gate."""
    spectra = []
    for level in list_recurrences(model):
        for name, block in list_recurrent_blocks(level):
            spectra.append(compute_spectrum(f"{level.name}, {name}", block))
    return spectra


@torch.no_grad()
def compute_spectrum(name: str, matrix: Tensor) -> Spectrum:
    values = matrix.detach().cpu().double()
    square = values.shape[0] == values.shape[1]
    radius = float(torch.linalg.eigvals(values).abs().max()) if square and values.numel() else None
    return Spectrum(name, torch.linalg.svdvals(values).numpy(), radius)


def list_recurrent_blocks(level: Level) -> list[tuple[str, Tensor]]:
    """What the cell's state is multiplied with: a matrix for each gate and candidate."""
    assert level.cell is not None
    cell = level.cell.unwrap()
    weights = [
        (name, part.weight)
        for name, part in cell.named_modules()
        if isinstance(part, nn.Linear) and name.split(".")[0] in ("U", "U_n", "V") and _reads_state(cell, name, part)
    ]
    named_blocks = []
    for name, weight in weights:
        units = cell.sizes[-1] if cell.entries[-1] == "c" else cell.size
        blocks = weight.split(units) if len(weight) % units == 0 else (weight,)
        named_blocks += [(_name_block(cell, name, number, len(blocks)), block) for number, block in enumerate(blocks)]
    return named_blocks


def _reads_state(cell: Cell, name: str, part: nn.Linear) -> bool:
    """A V that looks at the input is no recurrence; one that looks at the cell's memory is."""
    return name.split(".")[0] != "V" or part.in_features == part.out_features == cell.sizes[-1]


def _name_block(cell: Cell, name: str, number: int, count: int) -> str:
    if count == 1:
        return "W_h" if name == "U" else f"W_h of {name.removeprefix('U_').removeprefix('V.')}"
    blocks = cell.blocks if len(cell.blocks) == count else cell.gates
    return f"W_h of {blocks[number]}" if number < len(blocks) else f"W_h {number + 1}"


@dataclass(frozen=True)
class ScalarDecay:
    """(γ̄ w)^lag for each weight: what is left of a gradient after so many steps of a recurrence of one unit."""

    weights: list[float]
    slope: float
    left: Floats  # (weights, lags from 0)


def compute_scalar_decay(weights: list[float], slope: float = 1.0, lags: int = 50) -> ScalarDecay:
    """The scalar experiment: below γ̄ w = 1 a gradient vanishes, above it explodes, up to what a float holds."""
    with np.errstate(over="ignore"):
        left = np.power(slope * np.asarray(weights, float)[:, None], np.arange(lags + 1))
    largest = np.finfo(float).max
    return ScalarDecay(list(weights), slope, np.nan_to_num(left, posinf=largest, neginf=-largest))
