"""torch's own optimizers, what they decay, how a gradient is clipped, and their memory as named tensors.

Knows nothing of data or files.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from ..config.recipe import Train
from ..errors import RunError
from .tensors import shard_like, whole

COUNT = "step"  # torch's name for the number of steps a parameter has made; its other memories look like the parameter
MEMORIES = {  # torch's names for what each optimizer remembers of a parameter
    torch.optim.AdamW: (COUNT, "exp_avg", "exp_avg_sq"),
    torch.optim.Adam: (COUNT, "exp_avg", "exp_avg_sq"),
    torch.optim.RAdam: (COUNT, "exp_avg", "exp_avg_sq"),
    torch.optim.SGD: ("momentum_buffer",),
}


def build_optimizer(objective: nn.Module, settings: Train) -> torch.optim.Optimizer:
    """The optimizer of the settings. Only matrices decay: a bias or a norm's gain has no size to keep small.

    AdamW and RAdam decay apart from the gradient (Loshchilov and Hutter, 2019), Adam and SGD within it, as in torch.
    """
    learned = [parameter for parameter in objective.parameters() if parameter.requires_grad]
    groups = [
        {"params": [each for each in learned if each.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [each for each in learned if each.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    # Fused: one pass over memory instead of a dozen small operations a parameter; several times faster on a CPU.
    match settings.optimizer:
        case "adamw":
            return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)
        case "adam":
            return torch.optim.Adam(groups, lr=settings.learning_rate, fused=True)
        case "radam":
            return torch.optim.RAdam(groups, lr=settings.learning_rate, decoupled_weight_decay=True)
        case "sgd":
            return torch.optim.SGD(
                groups, lr=settings.learning_rate, momentum=settings.momentum
            )  # fused, it fails where a gradient comes late


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def clip_gradients(gradients: Sequence[Tensor], norm: float, count: float, settings: Train) -> None:
    """Make a summed gradient the mean over `count`, which has this norm; shorten it, and then cut its entries."""
    share = min(1.0, settings.clip_norm / norm) if settings.clip_norm and norm else 1.0
    for gradient in gradients:
        gradient.mul_(share / count)
        if settings.clip_value:
            gradient.clamp_(-settings.clip_value, settings.clip_value)


# --- memory ---------------------------------------------------------------------------------------------------


def optimizer_state(optimizer: torch.optim.Optimizer, objective: nn.Module) -> dict[str, Tensor]:
    """A copy of what the optimizer remembers, as `exp_avg/NAME OF THE PARAMETER` and so on."""
    return {
        f"{kind}/{name}": whole(optimizer.state[parameter][kind].detach()).clone()
        for name, parameter in objective.named_parameters()
        for kind in MEMORIES[type(optimizer)]
        if isinstance(optimizer.state.get(parameter, {}).get(kind), Tensor)
    }


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, objective: nn.Module, memory: Mapping[str, Tensor], place: Path | str
) -> None:
    """Let the optimizer remember this. A parameter that never had a gradient has left no memory."""
    unread, kinds = dict(memory), MEMORIES[type(optimizer)]
    for name, parameter in objective.named_parameters():
        mine = {kind: unread.pop(f"{kind}/{name}") for kind in kinds if f"{kind}/{name}" in unread}
        if not mine:
            continue
        own = parameter.shape, parameter.dtype
        fitting = {kind: (torch.Size(), torch.float32) if kind == COUNT else own for kind in kinds}
        if {kind: (tensor.shape, tensor.dtype) for kind, tensor in mine.items()} != fitting:
            raise RunError(f"{place}: the optimizer's memory of {name!r} does not fit this model")
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
