"""Where the gradient goes: over time and layers, and over the weights. No parameter's own gradient is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...arrays import Floats
from ...layers.description import find_described
from ...layers.tap import recording
from ...models import Batch
from ..places import Level, list_levels, name_place
from .reading import Model, Names, compute_loss, disable_dropout, get_mask, number_positions


@dataclass(frozen=True)
class GradientFlow:
    """‖∂L/∂h_t‖ of the levels that read one side of the batch: (levels, T), the mean over the rows that reach t."""

    side: str
    levels: list[str]
    steps: list[str]
    norms: Floats


@dataclass(frozen=True)
class QueryKeyValue:
    """The gradient's norm at the queries', keys' and values' weights of one attention, and the weights' own."""

    name: str
    query: float
    key: float
    value: float
    weights: tuple[float, float, float]


def compute_gradient_flow(model: Model, batch: Batch, names: Names | None = None) -> list[GradientFlow]:
    """One heat map for each side: which steps of which levels still move the loss."""
    names = number_positions(batch) if names is None else names
    levels = list_levels(model)
    with disable_dropout(model), recording(model, "*") as tape:
        lost = compute_loss(model, batch)
        norms = {level: _compute_norms(level, tape, lost) for level in levels}
    flows = []
    for side in dict.fromkeys(level.side for level in levels):
        mask = get_mask(batch, side).cpu()
        here = [level for level in levels if level.side == side]
        width = int(mask.any(0).nonzero().max()) + 1 if mask.any() else 0
        rows = [_average_rows(norms[level], mask)[:width] for level in here]
        labels = names.of(side)[:width]
        labels += [str(step) for step in range(len(labels) + 1, width + 1)]
        flows.append(GradientFlow(side, [level.name for level in here], labels, np.stack(rows)))
    return flows


def _compute_norms(level: Level, tape: Mapping[str, list[Tensor]], lost: Tensor) -> Tensor:
    """(B, T); what the loss does not depend on has no gradient."""
    steps = level.steps(tape)
    if not lost.requires_grad or not steps:
        return torch.zeros(0, 0)
    gradients = torch.autograd.grad(lost, steps, retain_graph=True, allow_unused=True)
    filled = [torch.zeros_like(step) if one is None else one for step, one in zip(steps, gradients, strict=True)]
    whole = torch.stack(filled, 1) if level.cell is not None else filled[0]
    return whole.detach().norm(dim=-1).cpu()


def _average_rows(norms: Tensor, mask: Tensor) -> Floats:
    if not norms.numel():
        return np.zeros(mask.shape[1])
    return ((norms * mask).sum(0) / mask.sum(0).clamp(min=1)).numpy()


def compute_query_key_value(model: Model, batch: Batch) -> list[QueryKeyValue]:
    """The gradients of W_q, W_k and W_v apart: early in training, those of the first two are often starved."""
    parts = {name: part for name, part in find_described(model) if part.projections}
    named = {
        f"{name}.{weight}": part.get_parameter(weight) for name, part in parts.items() for weight in part.projections
    }
    gradients = _compute_gradients(model, batch, named)
    results = []
    for name, part in parts.items():
        grads, weights = (
            _split_norms([values[f"{name}.{weight}"] for weight in part.projections], part.query_size)
            for values in (gradients, named)
        )
        results.append(QueryKeyValue(name_place(model, name), *grads, weights=weights))
    return results


def _split_norms(values: Sequence[Tensor], size: int) -> tuple[float, float, float]:
    """The norms of the three parts of what one product makes of its input; queries and keys are `size` wide."""
    whole = torch.cat(list(values)).detach()
    query, key, value = (float(piece.norm()) for piece in whole.split([size, size, len(whole) - 2 * size]))
    return query, key, value


def _compute_gradients(model: Model, batch: Batch, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    with disable_dropout(model):
        lost = compute_loss(model, batch)
        if not named or not lost.requires_grad:
            return {name: torch.zeros_like(parameter) for name, parameter in named.items()}
        gradients = torch.autograd.grad(lost, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for (name, parameter), gradient in zip(named.items(), gradients, strict=True)
    }
