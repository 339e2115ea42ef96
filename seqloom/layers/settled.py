"""Weights that are computed from others, worked out once for a whole walk and not at every step.

PyTorch's `parametrize.cached` does that for the whole process: another thread that walks meanwhile would be given
weights that belong to a graph which is not its own.
"""

from typing import TypeVar

from torch import nn
from torch.nn.utils import parametrize

M = TypeVar("M", bound=nn.Module)


def settled(module: M) -> M:
    """The module or, if a weight in it is computed, a copy that has the result in its place and shares all else."""
    parts = {name: None if part is None else settled(part) for name, part in module._modules.items()}
    computed = "parametrizations" in parts
    if not computed and all(parts[name] is part for name, part in module._modules.items()):
        return module
    copy: M = object.__new__(parametrize.type_before_parametrizations(module))
    copy.__dict__ = module.__dict__ | {"_modules": parts}
    if computed:
        del parts["parametrizations"]
        copy.__dict__ |= {name: getattr(module, name) for name in module.parametrizations}  # type: ignore[union-attr]
    return copy
