"""Which layer knows what: a linear probe of each level on labels that the caller gives.

A probe is ridge regression onto the labels, solved exactly, on some sequences, and judged on others. What the most
frequent label alone would get stands beside it: a probe that does no better has found nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...arrays import Floats
from ...layers.tap import recording
from ...models import Batch
from ..places import list_levels
from .reading import INPUTS, Model, compute_features, disable_dropout, get_mask

NONE = -1  # of an element that has no label, and is left out


@dataclass(frozen=True)
class Probe:
    name: str
    accuracy: float  # on elements that the probe was not fitted on
    majority: float  # of the label that is most frequent where it was fitted
    elements: int  # how many it was judged on


def label_elements(batch: Batch) -> Tensor:
    """The target of each element; the one label of a sequence is that of all its elements."""
    target = batch.target
    return target if target.dim() > 1 else target[:, None].expand(batch.mask.shape)


def fit_probes(
    model: Model,
    batches: Sequence[Batch],
    labels: Sequence[Tensor],
    side: str = INPUTS,
    held_out: float = 0.3,
    ridge: float = 1.0,
    seed: int = 0,
) -> list[Probe]:
    """One for each level that reads this side, the lowest first; `labels` has one (B, T) of integers for each batch."""
    here = [level for level in list_levels(model) if level.side == side]
    states: dict[str, list[Floats]] = {level.name: [] for level in here}
    known, rows = [], []
    for number, (batch, batch_labels) in enumerate(zip(batches, labels, strict=True)):
        mask = get_mask(batch, side).cpu() & (batch_labels.cpu() != NONE)
        with disable_dropout(model), torch.no_grad(), recording(model, "*") as tape:
            compute_features(model, batch)
        for level in here:
            states[level.name].append(level.values(tape).cpu()[mask].double().numpy())
        known.append(batch_labels.cpu()[mask].numpy())
        rows.append(np.repeat(np.arange(len(mask)), mask.sum(1)) + 1_000_000 * number)
    if not known or not sum(map(len, known)):
        return []
    target, groups = np.concatenate(known), np.concatenate(rows)
    judged = _draw_held_out(groups, held_out, seed)
    return [_fit_probe(name, np.concatenate(values), target, judged, ridge) for name, values in states.items()]


def _draw_held_out(groups: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """True for the elements of some sequences: whole ones, so that no probe has seen its neighbors."""
    sequences = np.unique(groups)
    count = min(max(1, round(share * len(sequences))), max(len(sequences) - 1, 0))
    chosen = np.random.default_rng(seed).permutation(sequences)[:count]
    return np.isin(groups, chosen)


def _fit_probe(name: str, values: Floats, target: NDArray[np.int64], judged: NDArray[np.bool_], ridge: float) -> Probe:
    fitted, classes = values[~judged], target[~judged]
    kinds, counts = np.unique(classes, return_counts=True)
    mean, spread = fitted.mean(0), fitted.std(0)
    scaled = (values - mean) / np.where(spread > 0, spread, 1)
    design = np.concatenate([scaled, np.ones((len(scaled), 1))], 1)
    one_hot = (classes[:, None] == kinds).astype(float)
    penalty = ridge * np.eye(design.shape[1])
    penalty[-1, -1] = 1e-9  # the shift is free
    own = design[~judged]
    weights = np.linalg.solve(own.T @ own + penalty, own.T @ one_hot)
    guessed = kinds[(design[judged] @ weights).argmax(1)]
    truth = target[judged]
    if not len(truth):
        return Probe(name, 0.0, 0.0, 0)
    usual = kinds[counts.argmax()]
    return Probe(name, float((guessed == truth).mean()), float((usual == truth).mean()), len(truth))
