"""AdamW, what it decays, the learning rate of each step, and its memory as named tensors.

Knows nothing of data or files.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import RunError
from ..recipe import Train

MOMENTS = ("exp_avg", "exp_avg_sq")  # torch's names for AdamW's running means of the gradient and its square
COUNT = "step"  # … and for the number of steps a parameter has made


def rate_at(step: int, settings: Train) -> float:
    """The learning rate of this step, counted from 1: a line up to `rate`, then half a cosine down to nothing.

    It ends at zero rather than at a share of `rate`, because small last steps let the weights settle and the best
    ones are kept anyway; the step after the last would be the one of rate zero, so that none is made in vain.
    """
    if step <= settings.warmup:
        return settings.rate * step / settings.warmup
    way = (step - settings.warmup) / (settings.steps + 1 - settings.warmup)
    return settings.rate * (1 + math.cos(math.pi * min(way, 1.0))) / 2


def adamw(objective: nn.Module, settings: Train) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter, 2019). Only matrices decay: a bias or a norm's gain has no size to keep small."""
    learnt = [parameter for parameter in objective.parameters() if parameter.requires_grad]
    groups = [
        {"params": [each for each in learnt if each.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [each for each in learnt if each.ndim < 2], "weight_decay": 0.0},
    ]
    # Fused: one pass over memory instead of a dozen small operations a parameter; several times faster on a CPU.
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=settings.rate, fused=True)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


def memory_of(optimiser: torch.optim.Optimizer, objective: nn.Module) -> dict[str, Tensor]:
    """A copy of what the optimiser remembers, as `exp_avg/NAME OF THE PARAMETER` and so on."""
    return {
        f"{kind}/{name}": optimiser.state[parameter][kind].detach().clone()
        for name, parameter in objective.named_parameters()
        if parameter in optimiser.state
        for kind in (COUNT, *MOMENTS)
    }


def load_memory(
    optimiser: torch.optim.Optimizer, objective: nn.Module, memory: Mapping[str, Tensor], place: Path | str
) -> None:
    """Let the optimiser remember this. A parameter that never had a gradient has left no memory."""
    unread = dict(memory)
    for name, parameter in objective.named_parameters():
        mine = {kind: unread.pop(f"{kind}/{name}") for kind in (COUNT, *MOMENTS) if f"{kind}/{name}" in unread}
        if not mine:
            continue
        fitting = {COUNT: (torch.Size(), torch.float32), **dict.fromkeys(MOMENTS, (parameter.shape, parameter.dtype))}
        if {kind: (tensor.shape, tensor.dtype) for kind, tensor in mine.items()} != fitting:
            raise RunError(f"{place}: the optimiser's memory of {name!r} does not fit this model")
        # Copied, because torch aligns its own memory and a file's content lies anywhere: sums could round otherwise.
        optimiser.state[parameter] = {kind: each.to(parameter.device, copy=True) for kind, each in mine.items()}
    for name in unread:
        raise RunError(f"{place}: remembers {name!r:.80}, which this model does not have")
