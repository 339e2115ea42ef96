"""Where a model looks: the weights it really uses, of every kind of attention, with the tokens beside them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...arrays import Floats
from ...layers.description import ITSELF, SOURCE, DescribedModule, find_described, join_path
from ...layers.description import SUMMARY as SUMMARY
from ...layers.tap import recording
from ...models import Batch
from .reading import Model, Names, compute_features, disable_dropout, list_bodies, name_body, number_positions, take_row

OVER_SOURCE, OVER_ITSELF = SOURCE, ITSELF  # what is looked at
PARTS = {OVER_ITSELF: "self", OVER_SOURCE: "cross", SUMMARY: "pooling"}


@dataclass(frozen=True)
class Picture:
    """A picture (height, width, channels) of bytes, and the side of the squares in which it is read, row by row."""

    pixels: NDArray[np.uint8]
    patch: int

    @property
    def grid(self) -> tuple[int, int]:
        height, width = self.pixels.shape[:2]
        return -(-height // self.patch), -(-width // self.patch)


@dataclass(frozen=True)
class AttentionMap:
    """How much each target token attends to each source token."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float32]  # (T, S) each, one behind the other
    names: list[str]  # of each map: which layer, which head
    title: str = "Attention"
    kind: str = OVER_SOURCE
    example: str = ""  # what was read and answered
    picture: Picture | None = None  # that the source was cut out of
    part: str = ""  # of the model, as a person names it: "decoder.cross"

    def pick(self, number: int) -> "AttentionMap":
        """One of the maps."""
        return replace(self, weights=self.weights[number : number + 1], names=[self.names[number]])

    def between(self, rows: slice, columns: slice) -> "AttentionMap":
        """A part of it, to look closer."""
        weights = self.weights[:, rows, columns]
        return replace(self, source=self.source[columns], target=self.target[rows], weights=weights)

    @property
    def entropy(self) -> Floats:
        """How widely each map looks, in bits, the mean over its rows: 0 is one place, log₂ S is everywhere alike."""
        logs = np.log2(np.where(self.weights > 0, self.weights, 1))
        rows = -(self.weights * logs).sum(-1)
        return rows.mean(-1) if rows.size else np.zeros(len(self.names))


def compute_attention_maps(model: Model, batch: Batch, names: Names | None = None) -> list[AttentionMap]:
    """All attention on the first row of the batch: over the source, over itself, and in the summary."""
    batch, names = _take_first_row(batch, names)
    with disable_dropout(model), torch.no_grad(), recording(model, "*weights") as tape:
        compute_features(model, batch)
    maps = []
    for side, (where, body) in list_bodies(model).items():
        for kind in (OVER_ITSELF, OVER_SOURCE, SUMMARY):
            places = list(find_attention_taps(body, where, kind))
            if not places:
                continue
            read = names.source if kind == OVER_SOURCE else names.of(side)
            rows = names.target if kind == OVER_SOURCE else names.of(side)
            weights, labels = _collect_weights(tape, places)
            if kind == SUMMARY:
                rows = [f"query {number}" for number in range(1, weights.shape[1] + 1)]
            weights = weights[:, : len(rows), : len(read)]  # of nothing but padding, nothing is shown
            body_name = name_body(model, side)
            part = f"{body_name or 'model'}.{PARTS[kind]}"
            maps.append(AttentionMap(read, rows, weights, labels, _title(body_name, kind), kind, part=part))
    return maps


def _take_first_row(batch: Batch, names: Names | None) -> tuple[Batch, Names]:
    """The first row, without padding, and as many names as there is to be seen of it."""
    alone = take_row(batch)
    names = number_positions(alone) if names is None else names
    read, about = int(alone.mask.sum()), int(alone.source[1].sum()) if alone.source else 0
    return alone, Names(names.inputs[:read], names.target[:read], names.source[:about])


def find_attention_taps(body: DescribedModule, where: str, kind: str) -> Iterator[tuple[str, int]]:
    """The taps of one kind of attention, each with the number of its layer."""
    looking = [(path, part) for path, part in find_described(body) if kind in part.looks_at]
    for count, (path, part) in enumerate(looking, 1):
        yield join_path(where, path, part.looks_at[kind]), count


def _collect_weights(
    tape: dict[str, list[Tensor]], places: list[tuple[str, int]]
) -> tuple[NDArray[np.float32], list[str]]:
    maps, labels = [], []
    for place, layer in places:
        weights = torch.cat(tape[place], -2)[0]  # a walk over time leaves one (…, 1, S) a step
        heads = weights if weights.dim() == 3 else weights[None]
        maps += [head.float().numpy() for head in heads.cpu()]
        labels += [f"layer {layer}" + (f", head {h}" if len(heads) > 1 else "") for h in range(1, len(heads) + 1)]
    return np.stack(maps), labels


def _title(part: str, kind: str) -> str:
    who = f"the {part}" if part else "the layer"
    return {
        OVER_SOURCE: f"Attention of {who} over the source",
        OVER_ITSELF: f"Self-attention of {who}",
        SUMMARY: f"Attention pooling of {who}",
    }[kind]
