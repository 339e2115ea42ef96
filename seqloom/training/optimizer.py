"""What an optimizer decays, how a gradient is clipped, and their memory as named tensors.

Knows nothing of data or files.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..config.optimizers import OPTIMIZERS
from ..config.recipe import Train
from ..errors import RunError
from .tensors import gather_whole, shard_like

SHARE = "share_of_learning_rate"  # our entry in torch's groups of parameters
NO_DEPTHS: Mapping[str, int] = {}
COUNT = "step"  # torch's name for the number of steps a parameter has made; its other memories look like the parameter


def build_optimizer(
    objective: nn.Module, settings: Train, depths: Mapping[str, int] = NO_DEPTHS
) -> torch.optim.Optimizer:
    """The optimizer of the settings; `depths` says how many layers below the head each parameter is.

    Only matrices decay: a bias or a norm's gain has no size to keep small.
    """
    groups: dict[tuple[int, bool], dict[str, Any]] = {}
    for name, parameter in objective.named_parameters():
        if parameter.requires_grad:
            place = depths.get(name, 0) if settings.layer_decay < 1 else 0, parameter.ndim < 2
            share = {
                "weight_decay": 0.0 if place[1] else settings.weight_decay,
                SHARE: settings.layer_decay ** place[0],
            }
            groups.setdefault(place, {"params": []} | share)["params"].append(parameter)
    return OPTIMIZERS[settings.optimizer]([groups[place] for place in sorted(groups)], settings)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(SHARE, 1.0)


def clip_gradients(gradients: Sequence[Tensor], norm: float, count: float, settings: Train) -> None:
    """Make a summed gradient the mean over `count`, which has this norm; shorten it, and then cut its entries."""
    share = min(1.0, settings.clip_norm / norm) if settings.clip_norm and norm else 1.0
    for gradient in gradients:
        gradient.mul_(share / count)
        if settings.clip_value:
            gradient.clamp_(-settings.clip_value, settings.clip_value)


# --- memory ---------------------------------------------------------------------------------------------------


def memories(optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    """Its names for what it remembers of a parameter: seen after one step on a parameter of one element."""
    trial, one = copy(optimizer), nn.Parameter(torch.zeros(1))
    trial.state, trial.param_groups = defaultdict(dict), [{**optimizer.param_groups[0], "params": [one]}]
    one.grad = torch.ones(1)
    trial.step()
    return tuple(name for name, value in trial.state[one].items() if isinstance(value, Tensor))


def get_optimizer_state(optimizer: torch.optim.Optimizer, objective: nn.Module) -> dict[str, Tensor]:
    """A copy of what the optimizer remembers, as `exp_avg/NAME OF THE PARAMETER` and so on."""
    return {
        f"{kind}/{name}": gather_whole(value.detach()).clone()
        for name, parameter in objective.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, objective: nn.Module, memory: Mapping[str, Tensor], place: Path | str
) -> None:
    """Let the optimizer remember this. A parameter that never had a gradient has left no memory."""
    unread, kinds = dict(memory), memories(optimizer)
    for name, parameter in objective.named_parameters():
        mine = {kind: unread.pop(f"{kind}/{name}") for kind in kinds if f"{kind}/{name}" in unread}
        if not mine:
            continue
        own = parameter.shape, parameter.dtype
        fitting = {kind: (torch.Size(), torch.float32) if kind == COUNT else own for kind in kinds}
        if {kind: (tensor.shape, tensor.dtype) for kind, tensor in mine.items()} != fitting:
            raise RunError(f"{place}: the optimizer's state of {name!r} does not fit this model")
        # Copied, because torch aligns its own memory and a file's content lies anywhere: sums could round otherwise.
        counts = parameter.device if optimizer.defaults.get("fused") else torch.device("cpu")  # as torch has it
        optimizer.state[parameter] = {
            kind: each.to(counts, copy=True)
            if kind == COUNT
            else shard_like(each.to(parameter.device, copy=True), parameter)
            for kind, each in mine.items()
        }
    for name in unread:
        raise RunError(f"{place}: remembers {name!r:.80}, which this model does not have")
