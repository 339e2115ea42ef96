"""The parts of a model from the bottom to the top, each with its shape and parameters: what a drawing shows."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..layers.description import EACH, ONE, POINTWISE, POOLING, join_path, walk_parts
from ..layers.tap import recording
from ..models import Batch
from .measures.reading import (
    INPUTS,
    SOURCE,
    Model,
    compute_features,
    disable_dropout,
    list_bodies,
    take_row,
    wrap_model,
)


@dataclass(frozen=True)
class Part:
    """One row of the drawing. `flow` says how steps are joined: not at all, in time, both ways, with all around, with
    the past, or into one."""

    side: str
    name: str
    flow: str
    size: int  # features a step
    parameters: int
    looks: bool = False  # at the memory


class _Count:
    """Parameters, each counted where it first occurs: a tied matrix is there once."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def of(self, part: nn.Module) -> int:
        new = [parameter for parameter in part.parameters() if id(parameter) not in self.seen]
        self.seen |= {id(parameter) for parameter in new}
        return sum(parameter.numel() for parameter in new)


def list_parts(model: Model, batch: Batch) -> list[Part]:
    """Of the model as it reads the first row of the batch; the sizes are those that really pass."""
    batch = take_row(batch)
    count = _Count()
    with disable_dropout(model), torch.no_grad(), recording(model, "*") as tape:
        top = compute_features(model, batch)
    parts: list[Part] = []
    shape = wrap_model(model)
    for side, (where, body) in list_bodies(model).items():
        embed = shape.embedding_of(side)
        with disable_dropout(model), torch.no_grad():
            size = embed(batch.source[0] if side == SOURCE else batch.inputs).shape[-1]
        if shape.head is not None:
            parts.append(Part(side, "embedding", EACH, size, count.of(embed)))
        for path, part, about in walk_parts(body, where):
            if about.role == POOLING:
                continue
            outputs = tape.get(join_path(path, part.output))
            size = int(outputs[0].shape[-1]) if outputs else size
            if about.role != POINTWISE or about.parameters:  # dropout and the like have nothing to show
                parts.append(Part(side, about.name, about.shape, size, count.of(part), about.looks))
        if side == SOURCE or not shape.per_element:
            parts.append(Part(side, "summary", ONE, size, count.of(body)))  # what is left of it makes the summary
    if shape.head is not None:
        flow = EACH if top.dim() == 3 else ONE
        with disable_dropout(model), torch.no_grad():
            answer = shape.head(top)
        width = answer.shape[-1] if isinstance(answer, Tensor) else answer[0].shape[-1]
        parts.append(Part(INPUTS, f"head ({type(shape.head).__name__})", flow, int(width), count.of(shape.head)))
    return parts
