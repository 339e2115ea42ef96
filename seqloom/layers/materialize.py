"""Weights that are computed from others, worked out once for a whole walk and not at every step.

PyTorch's `parametrize.cached` does that for the whole process: another thread that walks meanwhile would be given
weights that belong to a graph which is not its own.
"""

from typing import TypeVar

from torch import nn
from torch.nn.utils import parametrize

M = TypeVar("M", bound=nn.Module)


def materialize(module: M) -> M:
    """The module or, if a weight in it is computed, a copy that has the result in its place and shares all else."""
    inner = {name: materialize(part) for name, part in module._modules.items() if part is not None and part._modules}
    computed = "parametrizations" in inner
    if not computed and all(part is module._modules[name] for name, part in inner.items()):
        return module
    copy: M = object.__new__(parametrize.type_before_parametrizations(module))
    copy.__dict__ = module.__dict__ | {"_modules": module._modules | inner}
    if computed:
        del copy._modules["parametrizations"]
        copy.__dict__ |= {name: getattr(module, name) for name in module.parametrizations}  # type: ignore[union-attr]
    return copy
