"""torch's own optimizers by name. To add one: a function here that builds it, and a line in `OPTIMIZERS`.

Importing this loads no torch: a recipe is read, shown and refused without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import unwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from .train import Train

Groups = list[dict[str, Any]]  # the parameters, and how strongly they decay
BETA1 = 0.9  # how slowly the mean of the gradients changes


@cache
def skip_compiler(kind: type[Optimizer]) -> type[Any]:
    """The same optimizer, whose methods do not begin by importing torch's compiler, some 1,000 modules. torch's own do,
    only to tell it that they are not to be compiled."""
    from torch import no_grad

    methods = {name: unwrap(getattr(kind, name)) for name in ("add_param_group", "zero_grad")}
    return type(kind.__name__, (kind,), methods | {"step": no_grad()(unwrap(kind.step))})


# Fused: one pass over memory instead of a dozen small operations a parameter; several times faster on a CPU.


def build_adamw(groups: Groups, settings: Train) -> Optimizer:
    """Decays apart from the gradient (Loshchilov and Hutter, 2019)."""
    from torch.optim import AdamW

    return skip_compiler(AdamW)(groups, lr=settings.learning_rate, betas=(BETA1, settings.beta2), fused=True)


def build_adam(groups: Groups, settings: Train) -> Optimizer:
    """Decays within the gradient, as in torch."""
    from torch.optim import Adam

    return skip_compiler(Adam)(groups, lr=settings.learning_rate, betas=(BETA1, settings.beta2), fused=True)


def build_radam(groups: Groups, settings: Train) -> Optimizer:
    """Decays apart from the gradient, as AdamW."""
    from torch.optim import RAdam

    betas = BETA1, settings.beta2
    return skip_compiler(RAdam)(groups, lr=settings.learning_rate, betas=betas, decoupled_weight_decay=True)


def build_sgd(groups: Groups, settings: Train) -> Optimizer:
    """Decays within the gradient, as in torch. Not fused: it would fail where a gradient comes late."""
    from torch.optim import SGD

    return skip_compiler(SGD)(groups, lr=settings.learning_rate, momentum=settings.momentum)


MOMENTUM = ("sgd",)  # those that read train.momentum
ADAPTIVE = ("adamw", "adam", "radam")  # those that read train.beta2
OPTIMIZERS: dict[str, Callable[[Groups, Train], Optimizer]] = {
    "adamw": build_adamw,
    "adam": build_adam,
    "radam": build_radam,
    "sgd": build_sgd,
}
