"""How positions are told: the vectors that are added, and how alike two places are by their distance."""

from dataclasses import dataclass

import numpy as np
import torch

from ...arrays import Floats
from ...layers.positions import LearnedPositions, Rotary, SinusoidalPositions
from .reading import Model


@dataclass(frozen=True)
class PositionVectors:
    """(positions, features), and the cosine of each two of them: (positions, positions)."""

    name: str
    values: Floats
    alike: Floats


def position_vectors(model: Model, length: int = 64) -> list[PositionVectors]:
    """Of every part of the model that tells positions; of rotary ones, the turn of a query of ones."""
    found = []
    for name, part in model.named_modules():
        if isinstance(part, SinusoidalPositions | LearnedPositions | Rotary):
            found.append(_vectors(name, part, length))
    return found


@torch.no_grad()
def _vectors(name: str, part: SinusoidalPositions | LearnedPositions | Rotary, length: int) -> PositionVectors:
    if isinstance(part, LearnedPositions):
        values, words = part.table[:length], "learned positions"
    elif isinstance(part, SinusoidalPositions):
        nothing = torch.zeros(1, length, 2 * len(part.rate)).to(part.rate)
        values, words = part(nothing, part.initial_state(1))[0][0], "waves"
    else:
        ones = torch.ones(1, 1, length, 2 * len(part.rate)).to(part.rate)
        values, words = part(ones, torch.arange(length)[None].to(part.rate.device))[0, 0], "rotary positions"
    array: Floats = values.double().cpu().numpy()
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    directions = array / np.where(lengths > 0, lengths, 1)
    return PositionVectors(f"{words} ({name})" if name else words, array, directions @ directions.T)
