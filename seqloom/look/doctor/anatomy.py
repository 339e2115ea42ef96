"""The measurements of a model that a diagnosis needs, over a whole batch: memory, gradients by layer, gates, units."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...layers.description import walk_parts
from ...layers.tap import recording
from ...models import Batch, Generator, Labeler
from ..measures.gates import KEEPING
from ..measures.gradients import QueryKeyValue, compute_gradient_flow, compute_query_key_value
from ..measures.reading import INPUTS, SOURCE, compute_features, disable_dropout, get_mask, make_batch, name_body
from ..measures.receptive_field import compute_influence_by_lag, compute_memory_length
from ..measures.spectra import compute_spectra
from ..places import Level, concatenate_steps, list_levels

CLOSED, OPEN = 0.05, 0.95  # beyond these a gate hardly moves any more: its slope is below a fifth of the steepest
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
    flow = compute_gradient_flow(model, batch)
    gradients = {
        level: float(norms.sum()) / max(norms.size, 1)
        for side in flow
        for level, norms in zip(side.levels, side.norms, strict=True)
    }
    with disable_dropout(model), torch.no_grad(), recording(model, "*") as tape:
        compute_features(model, batch)
    levels = [level for level in list_levels(model) if level.tap in tape]
    return Anatomy(
        measure_memory_spans(model, batch),
        gradients,
        [use for level in levels if level.cell is not None for use in _measure_gates(level, tape, batch)],
        {level.name: _measure_dead_share(level, tape, batch) for level in levels},
        compute_query_key_value(model, batch),
        {one.name: one.radius for one in compute_spectra(model) if one.radius is not None},
    )


def measure_memory_spans(model: Labeler | Generator, batch: Batch) -> list[MemorySpan]:
    """Of each part that reads a side of the batch, by itself. An encoder that is looked at need not remember."""
    few = batch.rows(slice(None, ROWS))
    spans = [_make_span(name_body(model, INPUTS), compute_influence_by_lag(model, few))]
    if model.source is not None and few.source and not _attends_to_source(model):
        with disable_dropout(model), torch.no_grad():
            vectors = model.source.embed(few.source[0])
        alone = make_batch(vectors, few.source[1])
        spans.append(_make_span(name_body(model, SOURCE), compute_influence_by_lag(model.source.encoder, alone)))
    return [span for span in spans if span.longest]


def _attends_to_source(model: Generator) -> bool:
    return any(place.about.looks for place in walk_parts(model.decoder))


def _make_span(part: str, influence: "np.ndarray[tuple[int], np.dtype[np.floating]]") -> MemorySpan:
    return MemorySpan(part, compute_memory_length(influence), len(influence))


def _measure_gates(level: Level, tape: Mapping[str, list[Tensor]], batch: Batch) -> list[GateUse]:
    assert level.cell is not None
    keeping = next((gate for gate in KEEPING if gate in level.cell.gates), "")
    uses = []
    for gate in level.cell.gates:
        values = _drop_padding(concatenate_steps(tape[f"{level.prefix}{gate}"], True), level, batch)
        if len(values):
            shares = ((values < CLOSED).double().mean(), (values > OPEN).double().mean())
            uses.append(GateUse(level.name, gate, gate == keeping, float(values.mean()), *map(float, shares)))
    return uses


def _measure_dead_share(level: Level, tape: Mapping[str, list[Tensor]], batch: Batch) -> float:
    values = _drop_padding(concatenate_steps(tape[level.tap], level.cell is not None), level, batch)
    if len(values) < 2:
        return 0.0
    spread = values.double().std(0)
    return float((spread < 1e-3 * spread.mean().clamp(min=1e-12)).double().mean())


def _drop_padding(values: Tensor, level: Level, batch: Batch) -> Tensor:
    """What is not padding: (N, size)."""
    mask = get_mask(batch, level.side)
    return values[mask.flip(1) if level.backwards else mask]
