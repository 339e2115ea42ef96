"""Two models of one shape, a run's and that of a folder: which weights of both are the same."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .field import FolderText
from .model import MASKED, PretrainedModel


def list_bodies(model: Any) -> list[nn.Module]:
    """What stands between an embedding and the head or the summary."""
    reads = model.source if model.generates else model
    return [*([] if reads is None else [reads.encoder.layer]), *([model.decoder] if model.generates else [])]


def pair_bodies(model: Any, theirs: PretrainedModel) -> Iterator[tuple[Tensor, Tensor]]:
    """The weights of both bodies, ours and theirs, one after the other: both are built of the same layers in the same
    order. A table of positions of theirs may have rows in front that no element is given."""
    ours, others = (
        [weight for body in list_bodies(one) for weight in body.parameters()] for one in (model, theirs.network)
    )
    alike = [
        one.shape[1:] == other.shape[1:] and len(one) <= len(other) for one, other in zip(ours, others, strict=True)
    ]
    assert all(alike), "the two bodies differ"
    yield from zip(ours, others, strict=True)


def name_tables(model: Any) -> dict[str, tuple[Tensor, Tensor | None]]:
    """By side, the vectors of tokens and those of segments, if there are any."""
    sides = {"target": model.embed} | ({} if model.source is None else {"source": model.source.embed})
    found = {}
    for side, embed in sides.items():
        tokens = getattr(embed, "tokens", None)
        found[side] = (embed.weight, None) if tokens is None else (tokens.weight, embed.weight)
    return found


def copy_tables(model: Any, pretrained: PretrainedModel, fields: Mapping[str, FolderText]) -> None:
    """The vectors of the tokens under our numbers; of what they do not have, zeros."""
    others = name_tables(pretrained.network)
    for side, (tokens, segments) in name_tables(model).items():
        rows, (theirs, own) = torch.from_numpy(fields[side].source_rows()), others[side]
        tokens.zero_()[rows >= 0] = theirs[rows[rows >= 0]]
        if segments is not None and own is not None:
            segments.copy_(own)
    rows = torch.from_numpy(fields["target"].source_rows())
    known = rows >= 0
    head, answer = model.head, pretrained.network.head
    if not model.generates:
        head.head.project.bias.zero_()
        if pretrained.answers == MASKED:
            head.hidden.load_state_dict(answer.hidden.state_dict())
            head.head.project.bias[known] = answer.head.project.bias[rows[known]]
        return
    if head.project.weight is not model.embed.weight:
        head.project.weight.zero_()[known] = answer.project.weight[rows[known]]
    if model.source is not None:
        head.project.bias.zero_()[known] = answer.project.bias[rows[known]]
