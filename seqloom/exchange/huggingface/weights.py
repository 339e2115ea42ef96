"""The weights of a folder: one safetensors file, or several and their index. Nothing else is read, nothing is run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import RunError
from ...schemas import FILE
from ...training.files import get_size_limit, read_json
from ...training.tensors import read_tensors
from .family import Family

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5", ".msgpack", ".ot")
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of norms, in folders made from TensorFlow's
TOLERANCE = 1e-3  # of waves and masks that were stored as weights, perhaps in half precision


def read_folder_weights(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the folder by its name; all are finite, no name stands there twice."""
    if (folder / INDEX).exists() or (folder / INDEX).is_symlink():
        return read_shards(folder)
    if not os.path.lexists(folder / WEIGHTS):
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
        if pickles:
            raise RunError(
                f"{folder}: holds its weights as {pickles[0][:80]!r}, which may run code when it is read; "
                f"only {WEIGHTS} is read"
            )
        raise RunError(f"{folder}: has no {WEIGHTS}")
    refuse_link(folder / WEIGHTS)
    return read_tensors(folder / WEIGHTS)


def read_shards(folder: Path) -> dict[str, Tensor]:
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise RunError(f"{folder / INDEX}: has no weight_map that says which file holds which weight")
    for file in places.values():
        if not isinstance(file, str) or not FILE.fullmatch(file) or not file.endswith(".safetensors"):
            raise RunError(f"{folder / INDEX}: names {file!r:.80}, but a shard is a .safetensors file of this folder")
    files = sorted(set(places.values()))
    for file in files:
        refuse_link(folder / file)
    if sum((folder / file).stat().st_size for file in files) > get_size_limit(folder / WEIGHTS):
        raise RunError(f"{folder}: holds more weights than this machine has memory")
    weights: dict[str, Tensor] = {}
    for file in files:
        for name, tensor in read_tensors(folder / file).items():
            if name in weights:
                raise RunError(f"{folder / file}: holds the weight {name!r:.80} a second time")
            if places.get(name) != file:
                raise RunError(f"{folder / file}: holds the weight {name!r:.80}, which {INDEX} does not say")
            weights[name] = tensor
    for name in places.keys() - weights.keys():
        raise RunError(f"{folder}: the weight {name!r:.80} is listed in {INDEX}, but not in its file")
    return weights


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link, which could point outside the folder."""
    if path.is_symlink():
        raise RunError(f"{path}: is a link, which is not followed; copy the folder with its files (cp -rL)")
    if not path.exists():
        raise RunError(f"{path}: is missing")


def name_weights(family: Family, weights: Mapping[str, Tensor], place: object) -> dict[str, Tensor]:
    """The tensors under the names that the family's table knows: with a prefix, and norms by today's names."""
    heads = {name.partition(".")[0] for name in names_of(family)} - {family.prefix.rstrip(".")}
    named: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if not name.startswith(family.prefix) and name.partition(".")[0] not in heads:
            name = family.prefix + name
        for old, new in OLD_NAMES.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        if name in named:
            raise RunError(f"{place}: holds the weight {name!r:.80} under two names")
        named[name] = tensor
    return named


def names_of(family: Family) -> list[str]:
    """Every name of every architecture, for their beginnings."""
    settings, extras = family.config.model_validate({}), frozenset(family.extras)
    rows = [row for head in set(family.architectures.values()) for row in family.rows(settings, head, extras)]
    return [row.theirs for row in rows] + list(family.ties(settings))


def drop_copies(family: Family, settings: Any, weights: dict[str, Tensor], place: object) -> dict[str, Tensor]:
    """The weights without what is stored twice and what is no weight; either must be what it should be."""
    kept = dict(weights)
    for copy, original in family.ties(settings).items():
        if copy in kept and original in kept:
            if kept[copy].shape != kept[original].shape or not torch.equal(kept[copy], kept[original]):
                raise RunError(f"{place}: the weight {copy!r} is not {original!r}, though config.json ties them")
            del kept[copy]
    for name, value in family.constants(settings).items():
        if name in kept:
            dropped = kept.pop(name)
            if value is not None and not are_equal(dropped, value):
                raise RunError(f"{place}: {name!r} is not what such a model computes in its place")
    return kept


def are_equal(weight: Tensor, value: Tensor) -> bool:
    return weight.shape == value.shape and bool(torch.allclose(weight.double(), value.double(), atol=TOLERANCE))
