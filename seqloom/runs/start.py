"""`model.from`: another run to start from, of any task. Its body and its tokenizer are carried over, its head where
that answers the same; which weights are new is written down."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..config.foreign import is_foreign
from ..config.recipe import Recipe
from ..data.schema import FieldKind
from ..data.vocabulary import Vocabulary
from ..errors import RecipeError
from ..fields import TEXT_KINDS
from ..fields.word_list import WordList
from ..layers.cells import MakeCell
from ..schemas import Start as StartShape
from ..tasks.task import Declaration, Task
from ..training.manifests import read_manifest
from ..training.tensors import list_weights
from .folder import WEIGHTS
from .foreign import declare_run

LAYER = re.compile(r"^((?:ways\.\d\.)?layers\.)(\d+)\.")


class Start:
    """A run, or a Hugging Face folder, that another one starts from. `extras` are weights of a new head that the folder
    has: BERT's pooler."""

    def __init__(self, folder: str, cell: MakeCell | None = None) -> None:
        self.folder, self.extras = folder, dict[str, Tensor]()
        if is_foreign(folder):
            from .foreign import open_folder

            source = open_folder(Path(folder))
            self.task, self.model, self.sum, self.extras = source.task, source.model, source.sum, source.head
            return
        from .run import load

        run = load(Path(folder), cell, "cpu")
        self.task, self.model = run.task, run.net
        self.sum = read_manifest(Path(folder))[WEIGHTS][-1]

    def carry_fields(self, declaration: Declaration) -> dict[str, Any]:
        """The fields that the new run goes on with: that of what the body reads, and texts that are written."""
        ours, theirs = declaration.schema.sides, self.task.fields
        read, written = ("source" if "source" in sides else "target" for sides in (ours, theirs))
        pairs = {read: written} if written in theirs and read in ours else {}
        if {"source", "target"} <= ours.keys() & theirs.keys():
            texts = [kind in TEXT_KINDS for kind in (ours["target"].field.kind, theirs["target"].kind)]
            pairs |= {"target": "target"} if all(texts) else {}
        carried = {side: read_alike(theirs[other], ours[side].field.kind) for side, other in pairs.items()}
        for side, other in pairs.items():
            if ours[side].field.kind != carried[side].kind:
                raise RecipeError(
                    f"model.from is {self.folder}, whose {other} is {describe_kind(theirs[other].kind)}, but here the "
                    f"{side} is {describe_kind(ours[side].field.kind)}: a body goes on with what it has learned to read"
                )
        return carried

    def load_into(self, model: Any, task: Task) -> StartShape:
        """Give a new model the weights of the body, and of the head if the answers are the same; all or none."""
        ours = name_by_role(model)
        theirs = drop_segments(name_by_role(self.model), self.model, ours)
        weights: dict[str, Tensor] = {}
        for role, (name, tensor) in ours.items():
            part = role.partition(".")[0]
            if part == "head" and not self.answers_alike(task):
                if role in self.extras and self.extras[role].shape == tensor.shape:
                    weights[name] = self.extras[role]
                continue
            if role in theirs:
                weight = theirs[role][1]
                if weight.shape != tensor.shape:
                    raise RecipeError(
                        f"model.from is {self.folder}, whose weight {theirs[role][0]} is {describe_shape(weight)}, but "
                        f"here {name} is {describe_shape(tensor)}: the settings of [model] must be those of that run"
                    )
                weights[name] = weight
            elif part == "read":
                raise RecipeError(
                    f"model.from is {self.folder}, which has no weight for {name}: the settings of [model] must be "
                    "those of that run"
                )
        own = list_weights(model)
        with torch.no_grad():
            for name, tensor in weights.items():
                own[name].copy_(tensor)
        used = {theirs[role][0] for role, (name, _) in ours.items() if name in weights and role in theirs}
        return StartShape(
            run=self.folder,
            sha256=self.sum,
            loaded=[name for name in own if name in weights],
            new=[name for name in own if name not in weights],
            left=[name for name in list_weights(self.model) if name not in used],
        )

    def answers_alike(self, task: Task) -> bool:
        """Whether the head says the same: the same task, and the same answers in the same order."""
        theirs = self.task.fields.get("target")
        return (
            self.task.recipe.task == task.recipe.task
            and theirs is not None
            and theirs.to_json() == task.target.to_json()
        )


def declare_with_start(
    recipe: Recipe, fields: Mapping[str, FieldKind] | None = None, cell: MakeCell | None = None
) -> tuple[Declaration, Start | None, dict[str, Any]]:
    """The task of a run that begins, the run that it starts from, if there is one, and the fields that come from it."""
    declaration = declare_run(recipe, fields)
    if not recipe.model.start:
        return declaration, None, {}
    if recipe.data.vectors:
        raise RecipeError("model.from and data.vectors both say what the embedding starts with: choose one")
    start = Start(recipe.model.start, cell)
    carried = start.carry_fields(declaration)
    return declaration.reuse_fields(carried), start, carried


def read_alike(field: Any, kind: str) -> Any:
    """A field as one of another kind that cuts the same texts alike: words between blanks are a list of words."""
    if kind != WordList.kind or field.kind != "spaced" or field.characters:
        return field
    return WordList(Vocabulary(field.symbols), field.lowercase)


def describe_kind(kind: str) -> str:
    words = {"listed": "words that somebody has cut", "spelled": "words with their letters"}
    words["folder"] = "text cut by the tokenizer of a Hugging Face folder"
    return f"text cut into {kind}" if kind in TEXT_KINDS and kind not in words else words.get(kind, kind)


def describe_shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape)) or "one number"


def name_by_role(model: Any) -> dict[str, tuple[str, Tensor]]:
    """Every weight by what it is for, whatever the part that holds it is called in this shape of model.

    Layers are counted among those that have weights: where dropout stands between them, and it has none, they have
    other numbers.
    """
    tensors: dict[str, tuple[str, Tensor]] = {}
    prefixes: Mapping[str, str] = model.roles()
    weights = list_weights(model)
    for role, prefix in prefixes.items():
        inside = {
            name.removeprefix(prefix): (name, tensor) for name, tensor in weights.items() if name.startswith(prefix)
        }
        numbers = sorted({int(match[2]) for name in inside if (match := LAYER.match(name))})
        for name, held in inside.items():
            if match := LAYER.match(name):
                name = f"{match[1]}{numbers.index(int(match[2]))}.{name[match.end() :]}"
            tensors[f"{role}.{name}"] = held
    return tensors


def drop_segments(
    theirs: dict[str, tuple[str, Tensor]], model: Any, ours: Mapping[str, object]
) -> dict[str, tuple[str, Tensor]]:
    """For a model without segments, the vectors of tokens as they are in the first segment: what everything has that
    says none."""
    tokens = "read.embedding.tokens.weight"
    if tokens not in theirs or tokens in ours:
        return theirs
    (name, table), (_, segments) = theirs[tokens], theirs["read.embedding.weight"]
    kept = {role: held for role, held in theirs.items() if role != tokens}
    return kept | {"read.embedding.weight": (name, table + segments[0] / model.embed.tokens.scale)}


def describe_start(start: StartShape, model: nn.Module) -> str:
    """What was loaded and what is new, in a sentence."""
    sizes = {name: tensor.numel() for name, tensor in list_weights(model).items()}

    def count(names: list[str]) -> str:
        parts = ", ".join(dict.fromkeys(name.split(".")[0] for name in names))
        return f"{sum(sizes[name] for name in names):,} ({parts})" if names else "none"

    left = ", ".join(dict.fromkeys(name.split(".")[0] for name in start.left))
    return (
        f"starting from {start.run}: of the weights, {count(start.loaded)} are loaded and {count(start.new)} are new"
        + (f"; its {left} is left behind" if left else "")
    )
