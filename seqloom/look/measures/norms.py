"""What normalization does to the size of things: how much it shrinks what passes, and the gradient coming back."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...models import Batch
from ..places import name_place
from .reading import Model, compute_features, copy_sharing_weights, disable_dropout


@dataclass(frozen=True)
class Shrinkage:
    """One norm on its way: the mean over all that passed it."""

    name: str
    spread: float  # σ, the standard deviation (of an RMSNorm, the root mean square) of what comes in
    size: float  # how many times as long what goes out is
    gradient: float  # about how many times as long a gradient is after passing back through: the mean gain over σ


def measure_shrinkage(model: Model, batch: Batch) -> list[Shrinkage]:
    """Of every LayerNorm or RMSNorm on the way, in order. Padding does not count: it is all zeros."""
    model = copy_sharing_weights(model)
    passed: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def listen(name: str) -> Any:
        def hook(norm: nn.Module, arguments: tuple[Tensor, ...], result: Tensor) -> None:
            passed.setdefault(name, []).append((arguments[0].detach(), result.detach()))

        return hook

    norms = {name: part for name, part in model.named_modules() if isinstance(part, nn.LayerNorm | nn.RMSNorm)}
    for name, part in norms.items():
        part.register_forward_hook(listen(name))
    with disable_dropout(model), torch.no_grad():
        compute_features(model, batch)
    return [_compute_shrinkage(name_place(model, name), norms[name], pairs) for name, pairs in passed.items()]


def _compute_shrinkage(name: str, norm: nn.Module, pairs: list[tuple[Tensor, Tensor]]) -> Shrinkage:
    before, after = (torch.cat([pair[side].flatten(0, -2) for pair in pairs]) for side in (0, 1))
    real = before.abs().sum(-1) > 0
    if not real.any():
        return Shrinkage(name, 0.0, 1.0, 1.0)
    before, after = before[real], after[real]
    centered = before - before.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else before
    spread = centered.square().mean(-1).sqrt().clamp(min=1e-12)
    weight = getattr(norm, "weight", None)
    gain = 1.0 if weight is None else float(weight.detach().square().mean().sqrt())
    size = after.norm(dim=-1) / before.norm(dim=-1).clamp(min=1e-12)
    return Shrinkage(name, float(spread.mean()), float(size.mean()), float((gain / spread).mean()))
