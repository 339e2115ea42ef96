"""Single steps of attention: over a cache that grows, and over a memory that some rows share. See `steps.py`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from ..cache import Cache, find_visible
from ..state import SharedLeaf, State
from . import native_steps
from .native_kernels import can_use
from .steps import Step, change_of

if TYPE_CHECKING:
    from ..attention import MultiHeadAttention
    from ..transformer import CausalAttention, CrossAttention


def step_causal(layer: "CausalAttention") -> Step:
    query_size, project, out = layer.attend.query_size, change_of(layer.project), change_of(layer.attend.out)
    look = attend_own(layer.attend)
    heads, width, window = layer.attend.heads, layer.attend.width, layer.window
    turn = layer.turn

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        cache, count = state
        projected = project(x)
        if turn.turns:  # queries and keys of all heads are turned together
            positions, count = turn.positions(x[:, None], count, None)
            turned = turn(projected[:, : 2 * query_size].view(x.shape[0], 2 * heads, 1, width), positions)
            projected = torch.cat([turned.reshape(x.shape[0], -1), projected[:, 2 * query_size :]], 1)
        cache = cache.grow(1)
        if not window:
            context = look(projected, cache, 0, cache.valid)
            return out(context), (cache, count)
        if cache.padded:
            near = find_visible(cache, 1, window)
            context = look(projected, cache, 0, None if near is None else near[:, 0])
        else:
            context = look(projected, cache, max(0, cache.length - window), None)
        return out(context), (cache.trim(window), count)

    return step


def attend_own(attend: "MultiHeadAttention") -> Callable[[Tensor, Cache, int, Tensor | None], Tensor]:
    """What queries see of a cache from the step `first` on, when the keys and values beside them have joined it."""
    if can_use(attend.out.weight):
        return native_steps.attend_own(attend)
    heads, width, query_size = attend.heads, attend.width, attend.query_size

    def look(projected: Tensor, cache: Cache, first: int, valid: Tensor | None) -> Tensor:
        rows, end = projected.shape[0], cache.length
        steps = cache.store.steps
        steps[:, end - 1] = projected[:, query_size:]
        query = projected[:, :query_size].view(rows, heads, 1, width)
        keys = steps[:, first:end, :query_size].unflatten(2, (heads, -1)).transpose(1, 2)
        values = steps[:, first:end, query_size:].unflatten(2, (heads, -1)).transpose(1, 2)
        mask = None if valid is None else valid[:, None, None, first:end]
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask).reshape(rows, -1)

    return look


def step_cross(layer: "CrossAttention") -> Step:
    ask, look, out = change_of(layer.query), attend_memory(layer.attend), change_of(layer.attend.out)

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        return out(look(ask(x), state)), state

    return step


def attend_memory(attend: "MultiHeadAttention") -> Callable[[Tensor, SharedLeaf], Tensor]:
    """What queries see of a memory, which some rows share: they ask side by side in time."""
    if can_use(attend.out.weight):
        return native_steps.attend_memory(attend)
    heads, width, query_size = attend.heads, attend.width, attend.query_size
    known: tuple[Tensor, ...] = ()
    keys = values = attend.out.weight
    shown: Tensor | None = None

    def look(query: Tensor, memory: SharedLeaf) -> Tensor:
        nonlocal known, keys, values, shown
        if memory.tensors is not known:  # the same at almost every step
            known = memory.tensors
            keys_values, mask = known
            keys = keys_values[..., :query_size].unflatten(2, (heads, -1)).transpose(1, 2)
            values = keys_values[..., query_size:].unflatten(2, (heads, -1)).transpose(1, 2)
            shown = None if bool(mask.all()) else mask[:, None, None]
        queries = query.view(keys.shape[0], -1, heads, width).transpose(1, 2)
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=shown)
        return context.transpose(1, 2).reshape(query.shape[0], -1)

    return look
