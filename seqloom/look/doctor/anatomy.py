"""The measurements of a model that a diagnosis needs, over a whole batch: memory, gradients by layer, gates, units."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...layers.description import walk_parts
from ...layers.tap import recording
from ...models import Batch, Generator, Labeler
from ..measures.gates import CLOSED, KEEPING, OPEN
from ..measures.gradients import QueryKeyValue, gradient_flow, query_key_value
from ..measures.reading import INPUTS, SOURCE, batch_of, called, features, mask_of_side, quiet
from ..measures.receptive_field import influence_by_lag, memory_length
from ..measures.spectra import spectra
from ..places import Level, joined, levels

ROWS = 16  # of the batch whose memory is measured, at most


@dataclass(frozen=True)
class MemorySpan:
    """How far back one part of the model remembers, and how far it would have to."""

    part: str
    length: int  # the furthest lag that still moves the last output
    longest: int  # elements of the longest sequence measured


@dataclass(frozen=True)
class GateUse:
    """One gate of one level: how far it is open, and how often as good as closed or open."""

    level: str
    gate: str
    keeps: bool  # whether it is the one that keeps the old
    mean: float
    closed: float
    open: float


@dataclass(frozen=True)
class Anatomy:
    memories: list[MemorySpan]
    gradients: dict[str, float]  # level by level, the mean of ‖∂L/∂h‖ over the steps
    gates: list[GateUse]
    dead: dict[str, float]  # level by level, the share of units that say the same whatever is read
    attention: list[QueryKeyValue]
    radius: dict[str, float]  # of every recurrent matrix that has one


def examine(model: Labeler | Generator, batch: Batch) -> Anatomy:
    """All of it, on a batch of real examples."""
    flow = gradient_flow(model, batch)
    gradients = {
        level: float(norms.sum()) / max(norms.size, 1)
        for side in flow
        for level, norms in zip(side.levels, side.norms, strict=True)
    }
    with quiet(model), torch.no_grad(), recording(model, "*") as tape:
        features(model, batch)
    found = [level for level in levels(model) if level.tap in tape]
    return Anatomy(
        memories(model, batch),
        gradients,
        [use for level in found if level.cell is not None for use in _gates(level, tape, batch)],
        {level.name: _dead(level, tape, batch) for level in found},
        query_key_value(model, batch),
        {one.name: one.radius for one in spectra(model) if one.radius is not None},
    )


def memories(model: Labeler | Generator, batch: Batch) -> list[MemorySpan]:
    """Of each part that reads a side of the batch, by itself. An encoder that is looked at need not remember."""
    few = batch.rows(slice(None, ROWS))
    found = [_span(called(model, INPUTS), influence_by_lag(model, few))]
    if model.source is not None and few.source and not _looks(model):
        with quiet(model), torch.no_grad():
            vectors = model.source.embed(few.source[0])
        alone = batch_of(vectors, few.source[1])
        found.append(_span(called(model, SOURCE), influence_by_lag(model.source.encoder, alone)))
    return [span for span in found if span.longest]


def _looks(model: Generator) -> bool:
    return any(place.about.looks for place in walk_parts(model.decoder))


def _span(part: str, influence: "np.ndarray[tuple[int], np.dtype[np.floating]]") -> MemorySpan:
    return MemorySpan(part, memory_length(influence), len(influence))


def _gates(level: Level, tape: Mapping[str, list[Tensor]], batch: Batch) -> list[GateUse]:
    assert level.cell is not None
    keeping = next((gate for gate in KEEPING if gate in level.cell.gates), "")
    found = []
    for gate in level.cell.gates:
        values = _seen(joined(tape[f"{level.prefix}{gate}"], True), level, batch)
        if len(values):
            shares = ((values < CLOSED).double().mean(), (values > OPEN).double().mean())
            found.append(GateUse(level.name, gate, gate == keeping, float(values.mean()), *map(float, shares)))
    return found


def _dead(level: Level, tape: Mapping[str, list[Tensor]], batch: Batch) -> float:
    values = _seen(joined(tape[level.tap], level.cell is not None), level, batch)
    if len(values) < 2:
        return 0.0
    spread = values.double().std(0)
    return float((spread < 1e-3 * spread.mean().clamp(min=1e-12)).double().mean())


def _seen(values: Tensor, level: Level, batch: Batch) -> Tensor:
    """What is not padding: (N, size)."""
    mask = mask_of_side(batch, level.side)
    return values[mask.flip(1) if level.backwards else mask]
