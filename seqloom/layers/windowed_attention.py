"""Attention to what is near, in memory that grows with the length and not with its square."""

import torch
from torch import Tensor
from torch.nn import functional as F

from .attention import MultiHeadAttention


def attend_window(
    attend: MultiHeadAttention,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    before: int,
    after: int,
    mask: Tensor | None,
) -> Tensor:
    """Each element sees `before` elements in front of it, itself, and `after` behind it; padding stands at the end.

    Unwatched, the sequence is cut into blocks, and each block sees its neighbors only. Watched, one mask over
    all pairs is spelled out, so that all weights can be seen.
    """
    batch, heads, time, _ = query.shape
    if attend.weights.watched:
        place = torch.arange(time, device=query.device)
        distance = place[:, None] - place
        shown = (distance <= before) & (distance >= -after)
        return attend(query, keys, values, shown[None] if mask is None else shown & mask[:, None])
    block = max(before, after, 1)
    count = -(-time // block)
    room = count * block - time
    valid = torch.ones(1, time, dtype=torch.bool, device=query.device) if mask is None else mask
    sides = (1, 1 if after else 0)  # neighboring blocks that may be seen, in front and behind
    own = F.pad(query, (0, 0, 0, room)).unflatten(2, (count, block))  # (B, heads, count, block, width)
    edge = (sides[0] * block, sides[1] * block + room)
    around = [
        F.pad(part, (0, 0, *edge)).unfold(2, block * (1 + sum(sides)), block).mT for part in (keys, values)
    ]  # (B, heads, count, blocks seen, width)
    known = F.pad(valid, edge).unfold(1, block * (1 + sum(sides)), block)  # (B, count, blocks seen)
    place = torch.arange(block, device=query.device)[:, None]
    other = torch.arange(block * (1 + sum(sides)), device=query.device) - block
    shown = (place - other <= before) & (place - other >= -after)
    merged = [part.transpose(1, 2).flatten(0, 1) for part in (own, *around)]  # each block is a row of its own
    visible = (shown & known[:, :, None]).expand(batch, -1, -1, -1).flatten(0, 1)
    context: Tensor = attend(*merged, visible)  # (B · count, block, size)
    return context.unflatten(0, (batch, count)).flatten(1, 2)[:, :time]
