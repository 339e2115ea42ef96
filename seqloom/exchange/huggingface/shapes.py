"""Two models of one shape, a run's and that of a folder: which weights of both are the same."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .field import FolderText
from .model import MASKED, PretrainedModel


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


def copy_tables(model: Any, pretrained: PretrainedModel, field: FolderText) -> None:
    """The vectors of the tokens under our numbers; of what they do not have, zeros."""
    rows = torch.from_numpy(field.source_rows())
    known = rows >= 0
    (tokens, segments), (theirs, others) = tables(model), tables(pretrained.network)
    tokens.zero_()[known] = theirs[rows[known]]
    if segments is not None and others is not None:
        segments.copy_(others)
    head = model.head
    if model.generates and head.project.weight is not tokens:
        head.project.weight.zero_()[known] = pretrained.network.head.project.weight[rows[known]]
    elif not model.generates:
        head.head.project.bias.zero_()
        if pretrained.answers == MASKED:
            head.hidden.load_state_dict(pretrained.network.head.hidden.state_dict())
            head.head.project.bias[known] = pretrained.network.head.head.project.bias[rows[known]]
