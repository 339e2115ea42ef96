"""One step of a decoder without gradient, in as few operations as it takes.

Writing is thousands of steps of one element each, where what costs is not the arithmetic but the number of calls. So a
stack of layers is turned into a list of functions of x (B, D), once for a whole search: what has no effect outside of
training is left out, weights are looked up beforehand, nothing is split that can be viewed. Their states are those of
the layers they stand for, and may be taken over at any time. A layer not known here, or one that somebody watches,
goes its own way. Where compiled kernels are asked for, `compiled_steps.py` does the work. A law proves each equal to
its layer.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attention import AdditiveAttention, Attention, MultiHeadAttention
from ..attention_decoders import Bahdanau, Luong
from ..base import Encoder, Layer, Memory, Pointwise, Stack
from ..cache import Cache
from ..cells import GRUCell, LSTMCell
from ..embeddings import TokenEmbedding
from ..heads import Categorical, Head
from ..padding import zero_padding
from ..positions import LearnedPositions, NoRotation, SinusoidalPositions
from ..recurrent import Recurrent, VariationalDropout
from ..residual import PostNorm, PreNorm, ReZero
from ..state import Shared, State
from ..tap import watched
from ..torch_compat import TorchCompatible
from ..transformer import CausalAttention, CrossAttention, SwiGLU, visible
from . import compiled_stack, compiled_steps

Move = Callable[[Tensor, State], tuple[Tensor, State]]  # x (B, D), the state before -> y (B, D), the state after
Moves = Callable[[Tensor, Sequence[State]], tuple[Tensor, list[State]]]  # several layers, each with its state
Change = Callable[[Tensor], Tensor]


def prepared(layer: Layer) -> Move:
    """The layer as a function of one element a row. Its weights must stay as they are meanwhile."""
    if layer.training or watched(layer):
        return plain(layer)
    return known(layer)


def known(layer: Layer) -> Move:
    """As `prepared`, for a layer that is not trained or watched."""
    if isinstance(layer, Stack):
        return stack(list(layer.layers))
    if isinstance(layer, TorchCompatible):
        return known(layer.stack)
    if isinstance(layer, PostNorm | PreNorm | ReZero):
        return residual(layer)
    if isinstance(layer, CausalAttention):
        return causal_attention(layer)
    if isinstance(layer, CrossAttention):
        return cross_attention(layer)
    if isinstance(layer, Pointwise):
        return each(layer)
    if isinstance(layer, SinusoidalPositions):
        return waves(layer)
    if isinstance(layer, LearnedPositions):
        return learned_positions(layer)
    if isinstance(layer, VariationalDropout):
        return nothing
    if isinstance(layer, Recurrent) and (advance := cell_step(layer.cell)):
        return recurrence(advance, change_of(layer.cell.W))
    if isinstance(layer, Bahdanau) and isinstance(layer.cell.W, nn.Linear) and (advance := cell_step(layer.cell)):
        return bahdanau(layer, advance)
    if isinstance(layer, Luong):
        return luong(layer)
    return plain(layer)


def encoded(encoder: Encoder, x: Tensor, mask: Tensor) -> Memory:
    """`encoder(x, mask)`; without gradient, and where they are compiled, its layers in as few calls as may be."""
    layer = encoder.layer
    if torch.is_grad_enabled() or layer.training or not isinstance(layer, Stack) or watched(layer):
        found: Memory = encoder(x, mask)
        return found
    state, values = layer.initial_state(x.shape[0]), zero_padding(x, mask)
    after: list[State] = []
    for together, group in groupby(layer.layers, lambda part: compiled_stack.products(part) is not None):
        parts = list(group)
        if together and x.shape[1]:
            values = compiled_stack.Fused(parts).read(values, mask)
            after += state[len(after) : len(after) + len(parts)]
            continue
        for part in parts:
            values, passed = part(values, state[len(after)], mask)
            after.append(passed)
    values = zero_padding(values, mask)
    return Memory(values, mask, encoder.pool(values, mask), layer.final_states(tuple(after)))


# --- layers made of layers --------------------------------------------------------------------------------------


def plain(layer: Layer) -> Move:
    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = layer(x[:, None], state)
        return y[:, 0], state

    return move


def nothing(x: Tensor, state: State) -> tuple[Tensor, State]:
    return x, state


def stack(layers: Sequence[Layer]) -> Move:
    """Layers one after another; some of them in one call, where they are compiled."""
    moves: list[tuple[int, Moves]] = []
    for together, group in groupby(layers, lambda layer: compiled_stack.products(layer) is not None):
        parts = list(group)
        moves.append((len(parts), compiled_stack.Fused(parts) if together else in_turn(list(map(known, parts)))))

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        after: list[State] = []
        for count, part in moves:
            x, passed = part(x, state[len(after) : len(after) + count])
            after += passed
        return x, tuple(after)

    return move


def in_turn(moves: Sequence[Move]) -> Moves:
    def act(x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        after = []
        for part, before in zip(moves, states, strict=True):
            x, passed = part(x, before)
            after.append(passed)
        return x, after

    return act


def residual(layer: PostNorm | PreNorm | ReZero) -> Move:
    inner = known(layer.layer)
    if isinstance(layer, ReZero):
        share = layer.share

        def rezero(x: Tensor, state: State) -> tuple[Tensor, State]:
            change, state = inner(x, state)
            return torch.addcmul(x, share, change), state

        return rezero
    norm = change_of(layer.norm)
    if isinstance(layer, PreNorm):

        def pre(x: Tensor, state: State) -> tuple[Tensor, State]:
            change, state = inner(norm(x), state)
            return x + change, state

        return pre
    joined = add_norm(layer.norm)

    def post(x: Tensor, state: State) -> tuple[Tensor, State]:
        change, state = inner(x, state)
        return joined(x, change), state

    return post


def add_norm(norm: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """x and its change, added and normalized."""
    weight = next(norm.parameters(), None)
    fast = compiled_steps.add_norm(norm) if weight is not None and compiled_steps.usable(weight) else None
    if fast is not None:
        return fast
    change = change_of(norm)
    return lambda x, more: change(x + more)


# --- what has no state ------------------------------------------------------------------------------------------


def change_of(module: nn.Module) -> Change:
    """A module without a state as a plain function: calling a module costs as much as a small product."""
    if type(module) is nn.Linear:
        return product(module.weight, module.bias)
    if isinstance(module, nn.LayerNorm):
        shape, scale, shift, epsilon = module.normalized_shape, module.weight, module.bias, module.eps
        return lambda x: torch.layer_norm(x, shape, scale, shift, epsilon)
    if isinstance(module, nn.GELU) and module.approximate == "none":
        return F.gelu
    if isinstance(module, SwiGLU):
        return swiglu
    if isinstance(module, TokenEmbedding):
        return tokens(module)
    return module


def product(weight: Tensor, bias: Tensor | None) -> Change:
    if compiled_steps.usable(weight):
        return compiled_steps.product(weight, bias)
    return lambda x: F.linear(x, weight, bias)


def bend_of(before: nn.Module | None, module: nn.Module) -> Change:
    """As `change_of`; what a product has just made may be changed in place."""
    if type(before) is not nn.Linear:
        return change_of(module)
    if isinstance(module, nn.ReLU):
        return torch.relu_
    if isinstance(module, nn.GELU) and module.approximate == "none" and compiled_steps.usable(before.weight):
        return compiled_steps.gelu(before.weight.dtype)
    return change_of(module)


def swiglu(x: Tensor) -> Tensor:
    half = x.shape[1] // 2
    return F.silu(x[:, :half]) * x[:, half:]


def tokens(module: TokenEmbedding) -> Change:
    table, scale = module.weight, module.scale
    return lambda x: F.embedding(x, table).mul_(scale)


def answer_of(head: Head) -> Callable[[Tensor], Any]:
    """What a head tells from features (B, D), with time again: (B, 1, …)."""
    if type(head) is Categorical:
        project, impossible = change_of(head.project), head.impossible
        if len(impossible):
            return lambda y: project(y).index_fill_(1, impossible, -torch.inf)[:, None]
        return lambda y: project(y)[:, None]
    return lambda y: head(y[:, None])


def each(layer: Pointwise) -> Move:
    modules = [module for module in layer.module if not isinstance(module, nn.Dropout)]
    changes = [bend_of(*pair) for pair in zip([None, *modules], modules, strict=False)]

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        for change in changes:
            x = change(x)
        return x, state

    return move


# --- positions --------------------------------------------------------------------------------------------------


def waves(layer: SinusoidalPositions) -> Move:
    table = layer.rate.new_empty(0, 0)  # of the positions up to here; it grows

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        nonlocal table
        furthest = int(state.max())
        if furthest >= len(table):
            zeros = x.new_zeros(1, 2 * furthest + 64, x.shape[1])
            table = layer(zeros, layer.initial_state(1))[0][0]
        return x + table.index_select(0, state), state + 1

    return move


def learned_positions(layer: LearnedPositions) -> Move:
    table, slow = layer.table[layer.offset :], plain(layer)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        if int(state.max()) >= len(table):
            return slow(x, state)  # which says why that cannot be
        return x + table.index_select(0, state), state + 1

    return move


# --- attention --------------------------------------------------------------------------------------------------


def causal_attention(layer: CausalAttention) -> Move:
    query_size, project, out = layer.attend.query_size, change_of(layer.project), change_of(layer.attend.out)
    look = attend_own(layer.attend)
    heads, width, window = layer.attend.heads, layer.attend.width, layer.window
    turn, still = layer.turn, isinstance(layer.turn, NoRotation)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        cache, count = state
        projected = project(x)
        if not still:  # queries and keys of all heads are turned together
            positions, count = turn.positions(x[:, None], count, None)
            turned = turn(projected[:, : 2 * query_size].view(x.shape[0], 2 * heads, 1, width), positions)
            projected = torch.cat([turned.reshape(x.shape[0], -1), projected[:, 2 * query_size :]], 1)
        cache = cache.grown(1)
        if not window:
            seen = look(projected, cache, 0, cache.valid)
            return out(seen), (cache, count)
        if cache.padded:
            near = visible(cache, 1, window)
            seen = look(projected, cache, 0, None if near is None else near[:, 0])
        else:
            seen = look(projected, cache, max(0, cache.length - window), None)
        return out(seen), (cache.trimmed(window), count)

    return move


def attend_own(attend: MultiHeadAttention) -> Callable[[Tensor, Cache, int, Tensor | None], Tensor]:
    """What queries see of a cache from the step `first` on, when the keys and values beside them have joined it."""
    if compiled_steps.usable(attend.out.weight):
        return compiled_steps.attend_own(attend)
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


def cross_attention(layer: CrossAttention) -> Move:
    ask, look, out = change_of(layer.query), attend_memory(layer.attend), change_of(layer.attend.out)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        return out(look(ask(x), state)), state

    return move


def attend_memory(attend: MultiHeadAttention) -> Callable[[Tensor, Shared], Tensor]:
    """What queries see of a memory, which some rows share: they ask side by side in time."""
    if compiled_steps.usable(attend.out.weight):
        return compiled_steps.attend_memory(attend)
    heads, width, query_size = attend.heads, attend.width, attend.query_size
    known: tuple[Tensor, ...] = ()
    keys = values = attend.out.weight
    shown: Tensor | None = None

    def look(query: Tensor, memory: Shared) -> Tensor:
        nonlocal known, keys, values, shown
        if memory.tensors is not known:  # the same at almost every step
            known = memory.tensors
            keys_values, mask = known
            keys = keys_values[..., :query_size].unflatten(2, (heads, -1)).transpose(1, 2)
            values = keys_values[..., query_size:].unflatten(2, (heads, -1)).transpose(1, 2)
            shown = None if bool(mask.all()) else mask[:, None, None]
        asked = query.view(keys.shape[0], -1, heads, width).transpose(1, 2)
        seen = F.scaled_dot_product_attention(asked, keys, values, attn_mask=shown)
        return seen.transpose(1, 2).reshape(query.shape[0], -1)

    return look


# --- recurrences ------------------------------------------------------------------------------------------------

# W x + b (B, …) and the entries before -> the entries after.
Advance = Callable[[Tensor, State], State]


def cell_step(cell: nn.Module) -> Advance | None:
    """The step of a cell, for those that are known here."""
    if type(cell) is LSTMCell and cell.candidate == "tanh" and type(cell.U) is nn.Linear:
        return lstm(cell)
    if type(cell) is GRUCell and type(cell.U) is nn.Linear:
        return gru(cell)
    return None


def recurrence(advance: Advance, W: Change) -> Move:
    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        state = advance(W(x), state)
        return state[0], state

    return move


def lstm(cell: LSTMCell) -> Advance:
    U, size = cell.U.weight, cell.size
    if compiled_steps.usable(U):
        of_h, finish = compiled_steps.product(U, None), compiled_steps.lstm(size, U.dtype)
        return lambda share, entries: finish(share, of_h(entries[0]), entries[1])
    turned = U.t()

    def advance(share: Tensor, entries: State) -> State:
        h, c = entries
        gates = torch.addmm(share, h, turned)
        g = gates[:, 2 * size : 3 * size].tanh()
        i, f, _, o = gates.sigmoid_().split(size, 1)  # all gates in one go: a quarter for nothing is cheaper
        c = torch.addcmul(f * c, i, g)
        return o * c.tanh(), c

    return advance


def gru(cell: GRUCell) -> Advance:
    U, b, size = cell.U.weight, cell.U.bias, cell.size
    of_h = product(U, b)
    if compiled_steps.usable(U):
        finish = compiled_steps.gru(size, U.dtype)
        return lambda share, entries: (finish(share, of_h(entries[0]), entries[0]),)

    def advance(share: Tensor, entries: State) -> State:
        (h,) = entries
        old = of_h(h)
        r_u = torch.add(share[:, : 2 * size], old[:, : 2 * size]).sigmoid_()
        n = torch.addcmul(share[:, 2 * size :], r_u[:, :size], old[:, 2 * size :]).tanh_()
        return (torch.lerp(n, h, r_u[:, size:]),)

    return advance


def bahdanau(layer: Bahdanau, advance: Advance) -> Move:
    look, W = attention(layer.attention), change_of(layer.cell.W)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        entries, source = state
        entries = advance(W(torch.cat([x, look(entries[0], source)], 1)), entries)
        return entries[0], (entries, source)

    return move


def luong(layer: Luong) -> Move:
    look, join = attention(layer.attention), change_of(layer.join)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        return join(torch.cat([x, look(x, state)], 1)).tanh_(), state

    return move


def attention(module: Attention) -> Callable[[Tensor, Shared], Tensor]:
    """What queries (B, Q) see of a memory, which some rows share."""
    if isinstance(module, AdditiveAttention) and not module.hard and compiled_steps.usable(module.judge.weight):
        return compiled_steps.additive(module)
    return lambda query, memory: memory.ask(module, query[:, None])[:, 0]
