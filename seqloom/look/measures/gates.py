"""What the gates of a recurrence do over time, what its states hold, and how much of a memory its gates let live."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...arrays import Floats
from ...layers.tap import recording
from ...models import Batch
from ..places import Level, concatenate_steps, list_recurrences
from .reading import SOURCE, Model, Names, compute_features, disable_dropout, get_mask, number_positions, take_row

KEEPING = ("f", "u")  # what the cells call the gate that keeps the old


@dataclass(frozen=True)
class Trace:
    """One level of a recurrence over time: its gates and its entries, each (T, units)."""

    name: str
    steps: list[str]
    gates: dict[str, Floats]
    entries: dict[str, Floats]
    backwards: bool = False  # whether it reads from the end

    @property
    def part(self) -> str:
        """Of the model, as a person names it: "decoder.1" or "encoder.1.backwards"."""
        return re.sub(r"[^a-z0-9]+", ".", self.name.lower().replace("layer", "")).strip(".")

    def of(self, quantity: str) -> Floats:
        return (self.gates | self.entries)[quantity]

    def mean(self, quantity: str) -> Floats:
        """Over the units, step by step."""
        return self.of(quantity).mean(1)

    def quantiles(self, quantity: str, low: float = 0.1, high: float = 0.9) -> tuple[Floats, Floats]:
        """Between these lie most units, step by step."""
        values = self.of(quantity)
        return np.quantile(values, low, axis=1), np.quantile(values, high, axis=1)

    @property
    def keeping(self) -> str:
        """The gate that says how much of the old state stays, or nothing."""
        return next((gate for gate in KEEPING if gate in self.gates), "")

    @property
    def memory_path(self) -> Floats:
        """The memory's path, ∏ f over the steps read after t: how much of step t is left at the end. (T, units)"""
        if not self.keeping:
            raise ValueError(f"{self.name} has no gate that keeps its state")
        keeps = self.gates[self.keeping][:: -1 if self.backwards else 1]
        after = np.concatenate([keeps[1:], np.ones_like(keeps[:1])])
        product: Floats = np.cumprod(after[::-1], 0)[::-1]
        return product[:: -1 if self.backwards else 1]


@dataclass(frozen=True)
class UnitValues:
    """One gate or state of one level, unit by unit: (T, units)."""

    name: str  # of the level
    quantity: str
    part: str  # as a person names it: "decoder.1.f"
    steps: list[str]
    values: Floats
    gate: bool


def list_unit_values(traces: Sequence[Trace]) -> list[UnitValues]:
    """Every state and gate of every level: the first is the state of the first level."""
    return [
        UnitValues(trace.name, quantity, f"{trace.part}.{quantity}", trace.steps, values, quantity in trace.gates)
        for trace in traces
        for quantity, values in (trace.entries | trace.gates).items()
    ]


def record_traces(model: Model, batch: Batch, names: Names | None = None) -> list[Trace]:
    """Every gated or plain recurrence of the model, over the first row of the batch."""
    batch = take_row(batch)
    names = number_positions(batch) if names is None else names
    levels = list_recurrences(model)
    with disable_dropout(model), torch.no_grad(), recording(model, "*taps.*") as tape:
        compute_features(model, batch)
    return [_make_trace(level, tape, batch, names) for level in levels if level.side != SOURCE or batch.source]


def _make_trace(level: Level, tape: dict[str, list[torch.Tensor]], batch: Batch, names: Names) -> Trace:
    cell = level.cell
    assert cell is not None
    shown = get_mask(batch, level.side)[0].cpu()

    def values(name: str) -> Floats:
        steps = tape[f"{level.prefix}{name}"]
        return concatenate_steps(steps[::-1] if level.backwards else steps, True)[0].cpu()[shown].numpy()

    gates, entries = ({name: values(name) for name in kind} for kind in (cell.gates, cell.entries))
    return Trace(level.name, names.of(level.side)[: int(shown.sum())], gates, entries, level.backwards)
