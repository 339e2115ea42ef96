"""torch's own optimizers by name. To add one: a function here that builds it, and a line in `OPTIMIZERS`.

Importing this loads no torch: a recipe is read, shown and refused without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from .train import Train

Groups = list[dict[str, Any]]  # the parameters, and how strongly they decay


# Fused: one pass over memory instead of a dozen small operations a parameter; several times faster on a CPU.


def build_adamw(groups: Groups, settings: Train) -> Optimizer:
    """Decays apart from the gradient (Loshchilov and Hutter, 2019)."""
    from torch.optim import AdamW

    return AdamW(groups, lr=settings.learning_rate, fused=True)


def build_adam(groups: Groups, settings: Train) -> Optimizer:
    """Decays within the gradient, as in torch."""
    from torch.optim import Adam

    return Adam(groups, lr=settings.learning_rate, fused=True)


def build_radam(groups: Groups, settings: Train) -> Optimizer:
    """Decays apart from the gradient, as AdamW."""
    from torch.optim import RAdam

    return RAdam(groups, lr=settings.learning_rate, decoupled_weight_decay=True)


def build_sgd(groups: Groups, settings: Train) -> Optimizer:
    """Decays within the gradient, as in torch. Not fused: it would fail where a gradient comes late."""
    from torch.optim import SGD

    return SGD(groups, lr=settings.learning_rate, momentum=settings.momentum)


MOMENTUM = ("sgd",)  # those that read train.momentum
OPTIMIZERS: dict[str, Callable[[Groups, Train], Optimizer]] = {
    "adamw": build_adamw,
    "adam": build_adam,
    "radam": build_radam,
    "sgd": build_sgd,
}
