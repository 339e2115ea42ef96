"""Seen while training goes on: the gradient and the move of every layer, and how far recurrent weights stretch.

Gradients are those that training has just used, so nothing is computed twice; only weights are read, never changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..arrays import Floats
from ..models import Objective
from ..training.tensors import gather_whole
from ..training.watching import Observation
from .measures.reading import INPUTS, SOURCE
from .measures.spectra import list_recurrent_blocks
from .places import Level, find_level, list_levels

TINY = 1e-30
DOUBLINGS = 10  # a radius is found from the power 2^10 of a matrix: to half a per cent, at the cost of ten products
SPECTRUM = ("largest", "median", "smallest", "radius")


class Watching:
    """Around one step of training: the norms of all gradients and moves by layer, and the recurrent matrices."""

    def __init__(self, objective: Objective) -> None:
        model = objective.model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        levels = list_levels(model)
        names = {id(parameter): name for name, parameter in reversed(list(model.named_parameters()))}
        layers = [name_layer(names[id(parameter)], levels) for parameter in self.parameters]
        order = list_layers(levels)
        self.layers = sorted(set(layers), key=lambda layer: order.index(layer) if layer in order else len(order))
        self.places = torch.tensor([self.layers.index(layer) for layer in layers])
        self.recurrences = [level for level in levels if level.cell is not None]

    @torch.no_grad()
    def before(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self.parameters]

    @torch.no_grad()
    def after(self, before: list[Tensor], norm: float) -> Observation:
        known = (p.grad if p.grad is not None else torch.zeros_like(p) for p in self.parameters)
        gradients = self._measure_layers(list(known))
        gradients *= norm / max(float(gradients.norm()), TINY)  # as it was before it was clipped
        moved = self._measure_layers([now.detach() - then for now, then in zip(self.parameters, before, strict=True)])
        share = moved / self._measure_layers(before).clamp(min=TINY)
        return {
            "gradients": dict(zip(self.layers, map(_round, gradients.tolist()), strict=True)),
            "updates": dict(zip(self.layers, map(_round, share.tolist()), strict=True)),
            "spectra": {
                f"{level.name}, {name}": summarize_spectrum(gather_whole(block.detach()))
                for level in self.recurrences
                for name, block in list_recurrent_blocks(level)
            },
        }

    def _measure_layers(self, tensors: list[Tensor]) -> Tensor:
        norms = torch.stack([gather_whole(norm) for norm in torch._foreach_norm(tensors)]).double().cpu()
        squares = torch.zeros(len(self.layers), dtype=torch.float64).index_add_(0, self.places, norms**2)
        return squares.sqrt()


def name_layer(parameter: str, levels: Sequence[Level]) -> str:
    """What a person calls the part of the model that holds a parameter."""
    if level := find_level(levels, parameter):
        return level.name
    first, _, rest = parameter.partition(".")
    if first == "source":
        return "source embedding" if rest.startswith("embed") else "encoder end"
    return {"embed": "embedding", "decoder": "decoder end", "encoder": "encoder end"}.get(first, first)


def list_layers(levels: Sequence[Level]) -> list[str]:
    """All names that `name_layer` gives, from the first layer to the last."""
    reads = [level.name for level in levels if level.side == SOURCE]
    own = [level.name for level in levels if level.side == INPUTS]
    ends = ["encoder end"] if reads else []
    return ["source embedding", *reads, *ends, "embedding", *own, "encoder end", "decoder end", "head"]


def summarize_spectrum(matrix: Tensor) -> list[float]:
    """The largest, the median and the smallest singular value, and the spectral radius of a square one."""
    values = torch.linalg.svdvals(matrix.float().cpu())
    square = matrix.shape[0] == matrix.shape[1]
    summary = [float(values[0]), float(values[len(values) // 2]), float(values[-1])]
    return [_round(value) for value in [*summary, *([estimate_radius(matrix.float().cpu())] if square else [])]]


def estimate_radius(matrix: Tensor) -> float:
    """The largest modulus of an eigenvalue, as the growth of a high power: ‖W^n‖^(1/n). Ten times as fast."""
    power, log = matrix, 0.0
    for number in range(DOUBLINGS + 1):
        size = float(power.norm())
        if size == 0:
            return 0.0
        log += np.log(size) / 2**number
        if number < DOUBLINGS:
            power = (power / size) @ (power / size)
    return float(np.exp(log))


def _round(value: float) -> float:
    """Five digits: what is kept for every layer is read by people, in pictures."""
    return float(f"{value:.5g}")


@dataclass(frozen=True)
class WatchedTraining:
    """Over training: (steps,) and, by layer or matrix, (steps, layers), or (steps, matrices, 4) as `SPECTRUM`."""

    steps: NDArray[np.int64]
    layers: list[str]
    gradients: Floats
    updates: Floats
    matrices: list[str]
    spectra: Floats


def read_watched(records: Sequence[dict[str, Any]]) -> WatchedTraining:
    """From the lines of records.jsonl; what was not watched is left out."""
    watched = {record["step"]: record["watched"] for record in records if record.get("watched")}
    layers = list(dict.fromkeys(name for one in watched.values() for name in one["gradients"]))
    matrices = list(dict.fromkeys(name for one in watched.values() for name in one["spectra"]))

    def table(kind: str) -> Floats:
        rows = [[one[kind].get(layer, np.nan) for layer in layers] for one in watched.values()]
        return np.array(rows, float).reshape(len(watched), len(layers))

    rows = [[(one["spectra"].get(name, []) + [np.nan] * 4)[:4] for name in matrices] for one in watched.values()]
    spectra = np.array(rows, float).reshape(len(watched), len(matrices), len(SPECTRUM))
    return WatchedTraining(
        np.array(list(watched), int), layers, table("gradients"), table("updates"), matrices, spectra
    )
