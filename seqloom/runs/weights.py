"""The weights of a run folder in a model: nothing is built that they cannot fill."""

from collections.abc import Mapping
from pathlib import Path

from torch import nn

from ..config.tasks import USES
from ..counts import format_count
from ..errors import RunError
from ..tasks.mixture import Mixture
from ..tasks.task import Task
from ..training.manifests import read_checked
from ..training.tensors import Allowance, count_max_bytes, count_tensors, load_weights, parse_tensors
from .folder import MIXTURE, WEIGHTS

EXTRA_NUMBERS = 1 << 24  # numbers that a model may have which are not in its weights, such as tables of positions


def load_model(folder: Path, task: Task, sums: Mapping[str, list[str]]) -> nn.Module:
    """The model with its weights, which have to match their checksum."""
    model = build_model(folder, task)
    data = read_checked(folder / WEIGHTS, sums[WEIGHTS], count_max_bytes(model))
    load_weights(model, parse_tensors(data, folder / WEIGHTS), folder / WEIGHTS)
    return model


def load_mixture(folder: Path, task: Task, sums: Mapping[str, list[str]]) -> Mixture | None:
    """What is mixed into the answers of the model, if anything is."""
    if MIXTURE not in sums:
        return None
    path, mixing = folder / MIXTURE, task.declaration.mixing
    if mixing is None:
        raise RunError(f"{path}: nothing is mixed into the answers of a run whose task is to {task.recipe.use.does}")
    return mixing.load(task, parse_tensors(read_checked(path, sums[MIXTURE]), path), path)


def build_model(folder: Path, task: Task) -> nn.Module:
    """A model as the recipe describes it, if the weights that are there can fill it: a recipe costs nothing to write,
    but layers take time to be made, and parameters memory."""
    use, model, (tensors, size) = USES[task.recipe.task], task.recipe.model, count_tensors(folder / WEIGHTS)
    sides = [model.side("encoder")] * use.encodes + [model.side("decoder")] * use.decodes
    layers = sum(len(side.sizes) for side in sides if side.kind != "linear")  # which is one product, however deep
    if layers > tensors and task.cell is None:
        raise RunError(
            f"{folder}: the recipe describes {format_count(layers, 'layer')}, but {WEIGHTS} holds "
            f"{format_count(tensors, 'tensor')}"
        )
    with Allowance(size + EXTRA_NUMBERS, f"{folder}: the recipe describes more parameters than {WEIGHTS} holds"):
        return task.shape.build()
