"""A Hugging Face folder as something to start from: the recipe, field and model of a run of that shape."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...config.recipe import Recipe
from ...errors import RunError
from ...fields import FolderText
from ...tasks import declare
from ...tasks.task import Task
from ...training.files import sha256
from .encoders import Pooler
from .folder import load, read_config, read_generation, read_settings
from .model import PretrainedModel
from .tokenizer import LibraryTokenizer

# Of the families that one body is enough for: how their blocks are normalized, and what the first of two layers of
# their classifying head is followed by.
NORMS = {"bert": "post", "distilbert": "post", "roberta": "post", "gpt2": "pre"}
HEADS = {"bert": "tanh", "distilbert": "relu", "roberta": "tanh"}
ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh"),
    "relu": "relu",
}
WINDOW = 128


class Opened(NamedTuple):
    task: Task
    model: nn.Module
    sum: str  # over the files of the weights
    head: dict[str, Tensor]  # weights of a classifying head, by role


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a run that has the shape of the model in a folder."""
    family, config, _ = read_config(folder)
    settings = read_settings(family, {**config, **read_generation(folder)}, folder / "config.json")
    return make_recipe(family.name, settings, folder)


def make_recipe(family: str, settings: Any, place: object) -> Recipe:
    if family not in NORMS:
        raise RunError(f"{place}: a {family} cannot be started from, but {', '.join(NORMS)} can")
    if settings.activation not in ACTIVATIONS:
        raise RunError(f"{place}: the activation {settings.activation!r} has no counterpart in a run")
    post = NORMS[family] == "post"
    longest = settings.positions - getattr(settings, "offset", 0)
    model = {
        "kind": "transformer",
        "size": settings.size,
        "embedding": settings.size,
        "depth": settings.depth,
        "heads": settings.heads,
        "feed_forward": settings.hidden or 4 * settings.size,
        "activation": ACTIVATIONS[settings.activation],
        "norm": NORMS[family],
        "norm_epsilon": settings.epsilon,
        "embedding_norm": post,
        "positions": "learned",
        "max_positions": longest,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "scaled_embedding": False,
        "tied": settings.tied,
    }
    window = min(WINDOW, longest)
    if post:
        segments = getattr(settings, "segments", 0)
        data: dict[str, Any] = {"target_tokenizer": FolderText.kind, "window": window}
        return Recipe.of({"task": "pretrain", "model": {**model, "segments": segments}, "data": data}).resolved()
    values = {"data": {"target_tokenizer": FolderText.kind}, "train": {"bptt_window": window}}
    return Recipe.of({"task": "language", "model": {**model, "output_bias": False}, **values}).resolved()


def hidden_activation(folder: Path) -> str:
    """What the hidden layer of the family's classifying head is followed by."""
    return HEADS[read_config(folder)[0].name]


def open_folder(folder: Path) -> Opened:
    """The model of a folder as that of a run, with the field that its tokenizer is."""
    found = load(folder)
    recipe = make_recipe(found.family.name, found.settings, folder)
    if not isinstance(found.tokenizer, LibraryTokenizer):
        raise RunError(f"{folder}: has no tokenizer, so no text can be read: put its tokenizer.json into the folder")
    files = {name: data.decode() for name, data in found.tokenizer.files.items()}
    field = FolderText(files, found.family.name, found.settings.vocabulary, folder)
    task = Task(declare(recipe), recipe, {"target": field})
    model = task.build()
    with torch.no_grad():
        for ours, theirs in pair_bodies(model, found):
            ours.copy_(theirs[len(theirs) - len(ours) :] if ours.dim() else theirs)
        copy_tables(model, found, field)
    head: dict[str, Tensor] = {}
    if isinstance(pooler := getattr(getattr(found.network, "encoder", None), "pool", None), Pooler):
        head = {f"head.hidden.0.{name}": weight.detach() for name, weight in pooler.dense.named_parameters()}
    sums = "".join(sha256(file) for file in sorted(folder.glob("*.safetensors")))
    return Opened(task, model.eval(), hashlib.sha256(sums.encode()).hexdigest(), head)


def body_of(model: Any) -> nn.Module:
    """What stands between the embedding and the head or the summary."""
    body: nn.Module = model.decoder if model.generates else model.encoder.layer
    return body


def pair_bodies(model: Any, theirs: PretrainedModel) -> Iterator[tuple[Tensor, Tensor]]:
    """The weights of both bodies, ours and theirs, one after the other: both are built of the same layers in the same
    order. A table of positions of theirs may have rows in front that no element is given."""
    ours, others = (list(body_of(one).parameters()) for one in (model, theirs.network))
    alike = [
        one.shape[1:] == other.shape[1:] and len(one) <= len(other) for one, other in zip(ours, others, strict=True)
    ]
    assert all(alike), "the two bodies differ"
    yield from zip(ours, others, strict=True)


def tables(model: Any) -> tuple[Tensor, Tensor | None]:
    """The vectors of tokens, and those of segments, if there are any."""
    embed = model.embed
    tokens = getattr(embed, "tokens", None)
    return (embed.weight, None) if tokens is None else (tokens.weight, embed.weight)


def copy_tables(model: Any, found: PretrainedModel, field: FolderText) -> None:
    """The vectors of the tokens under our numbers; of what they do not have, zeros."""
    rows = torch.from_numpy(field.source_rows())
    known = rows >= 0
    (tokens, segments), (theirs, others) = tables(model), tables(found.network)
    tokens.zero_()[known] = theirs[rows[known]]
    if segments is not None and others is not None:
        segments.copy_(others)
    head = model.head
    if model.generates and head.project.weight is not tokens:
        head.project.weight.zero_()[known] = found.network.head.project.weight[rows[known]]
    elif not model.generates:
        head.project.bias.zero_()
        bias = getattr(getattr(found.network.head, "head", None), "project", None)
        if bias is not None and len(bias.bias) == field.size:
            head.project.bias[known] = bias.bias[rows[known]]
