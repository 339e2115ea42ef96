"""A Hugging Face folder as something to start from: the field and the model that a run of that shape has."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..config.foreign import FOLDER, read_recipe
from ..config.recipe import Recipe
from ..data.schema import FieldKind
from ..errors import RunError
from ..tasks import declare
from ..tasks.task import Declaration, Task
from ..training.files import sha256


class OpenedFolder(NamedTuple):
    task: Task
    model: nn.Module
    sum: str  # over the files of the weights
    head: dict[str, Tensor]  # weights of a classifying head, by role


def declare_run(recipe: Recipe, fields: Mapping[str, FieldKind] | None = None) -> Declaration:
    """The task of a recipe; what a folder's tokenizer needs is imported where the recipe names one."""
    data = recipe.data
    if FOLDER in (getattr(data, "source_tokenizer", ""), getattr(data, "target_tokenizer", "")):
        from ..exchange.huggingface import field  # noqa: F401  # which makes it known
    return declare(recipe, fields)


def open_folder(folder: Path) -> OpenedFolder:
    """The model of a folder as that of a run, with the field that its tokenizer is."""
    from ..exchange.huggingface import load
    from ..exchange.huggingface.field import FolderText
    from ..exchange.huggingface.shapes import copy_tables, pair_bodies

    recipe, pretrained = read_recipe(folder), load(folder)
    if pretrained.tokenizer is None:
        needed = "source.spm, target.spm and vocab.json" if recipe.task == "seq2seq" else "tokenizer.json"
        raise RunError(f"{folder}: has no tokenizer, so no text can be read: put its {needed} into the folder")
    files, family, settings = pretrained.tokenizer.files, pretrained.family.name, pretrained.settings
    if recipe.task == "seq2seq":  # each side has pieces of its own
        sizes = {"source": settings.vocabulary, "target": settings.targets}
        own = {
            side: {name: data for name, data in files.items() if name != f"{other}.spm"}
            for side, other in (("source", "target"), ("target", "source"))
        }
        fields = {
            side: FolderText(own[side], family, size, folder, settings.start, side == "target")
            for side, size in sizes.items()
        }
    else:
        fields = {"target": FolderText(files, family, settings.vocabulary, folder)}
    task = Task(declare_run(recipe), recipe, fields)
    model = task.shape.build()
    with torch.no_grad():
        for ours, theirs in pair_bodies(model, pretrained):
            ours.copy_(theirs[len(theirs) - len(ours) :] if ours.dim() else theirs)
        copy_tables(model, pretrained, fields)
    head: dict[str, Tensor] = {}
    if (dense := pretrained.pooling_layer) is not None:
        head = {f"head.hidden.0.{name}": weight.detach() for name, weight in dense.named_parameters()}
    sums = "".join(sha256(file) for file in sorted(folder.glob("*.safetensors")))
    return OpenedFolder(task, model.eval(), hashlib.sha256(sums.encode()).hexdigest(), head)
