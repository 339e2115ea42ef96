"""How positions are told: the vectors that are added, and how alike two places are by their distance."""

from dataclasses import dataclass

import numpy as np
import torch

from ...arrays import Floats
from .reading import Model


@dataclass(frozen=True)
class PositionVectors:
    """(positions, features), and the cosine of each two of them: (positions, positions)."""

    name: str
    values: Floats
    alike: Floats


@torch.no_grad()
def compute_position_vectors(model: Model, length: int = 64) -> list[PositionVectors]:
    """Of every part of the model that encodes positions; of rotary ones, what becomes of a query of ones."""
    tables = []
    for name, part in model.named_modules():
        if tabulate := getattr(part, "tabulate", None):
            kind, vectors = tabulate(length)
            values: Floats = vectors.double().cpu().numpy()
            lengths = np.linalg.norm(values, axis=1, keepdims=True)
            directions = values / np.where(lengths > 0, lengths, 1)
            tables.append(PositionVectors(f"{kind} ({name})" if name else kind, values, directions @ directions.T))
    return tables
