"""One step of a decoder without gradient, in as few operations as it takes.

Writing is thousands of steps of one element each, where what costs is not the arithmetic but the number of calls. So a
stack of layers is turned into a list of functions of x (B, D), once for a whole search: what has no effect outside of
training is left out, weights are looked up beforehand, nothing is split that can be viewed. Their states are those of
the layers they stand for, and may be taken over at any time. A layer not known here, or one that somebody watches,
goes its own way. A law proves each equal to its layer.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import Each, Layer, Stack
from .cells import GRUCell, LSTMCell
from .positions import Still, Waves
from .recurrent import Recurrent
from .residual import Post, Pre, ReZero
from .state import State
from .tap import watched
from .torch_like import TorchLike
from .transformer import CausalAttention, CrossAttention, visible

Move = Callable[[Tensor, State], tuple[Tensor, State]]  # x (B, D), the state before -> y (B, D), the state after
Change = Callable[[Tensor], Tensor]


def prepared(layer: Layer) -> Move:
    """The layer as a function of one element a row. Its weights must stay as they are meanwhile."""
    if layer.training or watched(layer):
        return plain(layer)
    if isinstance(layer, Stack):
        return stack([prepared(part) for part in layer.layers])
    if isinstance(layer, TorchLike):
        return prepared(layer.stack)
    if isinstance(layer, Post | Pre | ReZero):
        return residual(layer)
    if isinstance(layer, CausalAttention) and not layer.window:
        return causal_attention(layer)
    if isinstance(layer, CrossAttention):
        return cross_attention(layer)
    if isinstance(layer, Each):
        return each(layer)
    if isinstance(layer, Waves):
        return waves(layer)
    if isinstance(layer, Recurrent) and type(layer.cell) is LSTMCell and layer.cell.candidate == "tanh":
        return lstm(layer.cell)
    if isinstance(layer, Recurrent) and type(layer.cell) is GRUCell:
        return gru(layer.cell)
    return plain(layer)


def plain(layer: Layer) -> Move:
    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = layer(x[:, None], state)
        return y[:, 0], state

    return move


def stack(moves: Sequence[Move]) -> Move:
    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        after = []
        for part, before in zip(moves, state, strict=True):
            x, passed = part(x, before)
            after.append(passed)
        return x, tuple(after)

    return move


def residual(layer: Post | Pre | ReZero) -> Move:
    inner = prepared(layer.layer)
    if isinstance(layer, ReZero):
        share = layer.share

        def rezero(x: Tensor, state: State) -> tuple[Tensor, State]:
            change, state = inner(x, state)
            return torch.addcmul(x, share, change), state

        return rezero
    norm = change_of(layer.norm)
    if isinstance(layer, Pre):

        def pre(x: Tensor, state: State) -> tuple[Tensor, State]:
            change, state = inner(norm(x), state)
            return x + change, state

        return pre

    def post(x: Tensor, state: State) -> tuple[Tensor, State]:
        change, state = inner(x, state)
        return norm(x + change), state

    return post


def change_of(module: nn.Module) -> Change:
    """A module without a state as a plain function: calling a module costs as much as a small product."""
    if isinstance(module, nn.Linear):
        weight, bias = module.weight, module.bias
        return lambda x: F.linear(x, weight, bias)
    if isinstance(module, nn.LayerNorm):
        shape, scale, shift, epsilon = module.normalized_shape, module.weight, module.bias, module.eps
        return lambda x: torch.layer_norm(x, shape, scale, shift, epsilon)
    if isinstance(module, nn.ReLU):
        return torch.relu
    return module


def each(layer: Each) -> Move:
    changes = [change_of(module) for module in layer.module if not isinstance(module, nn.Dropout)]

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        for change in changes:
            x = change(x)
        return x, state

    return move


def waves(layer: Waves) -> Move:
    rate = layer.rate

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        angle = state[:, None] * rate
        return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, : x.shape[1]], state + 1

    return move


def causal_attention(layer: CausalAttention) -> Move:
    heads, width, value_width = layer.attend.heads, layer.attend.width, layer.attend.value_width
    query_size, project, out = layer.attend.query_size, change_of(layer.project), change_of(layer.attend.out)
    turn, still = layer.turn, isinstance(layer.turn, Still)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        cache, count = state
        batch, projected = len(x), project(x)
        if not still:  # queries and keys of all heads are turned together
            positions, count = turn.positions(x[:, None], count, None)
            turned = turn(projected[:, : 2 * query_size].view(batch, 2 * heads, 1, width), positions)
            projected = torch.cat([turned.reshape(batch, -1), projected[:, 2 * query_size :]], 1)
        cache = cache.append(projected[:, None, query_size:], None)
        query = projected[:, :query_size].view(batch, heads, 1, width)
        keys_values = cache.read()[0]
        keys = keys_values[..., :query_size].view(batch, -1, heads, width).transpose(1, 2)
        values = keys_values[..., query_size:].view(batch, -1, heads, value_width).transpose(1, 2)
        seen = visible(cache, 1, 0)
        mask = None if seen is None else seen[:, None, None]
        found = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return out(found.reshape(batch, -1)), (cache, count)

    return move


def cross_attention(layer: CrossAttention) -> Move:
    heads, width, value_width = layer.attend.heads, layer.attend.width, layer.attend.value_width
    query_size, ask, out = layer.attend.query_size, change_of(layer.query), change_of(layer.attend.out)

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        keys_values, mask = state.tensors  # one row a source; its beams ask side by side in time
        sources, length = keys_values.shape[:2]
        query = ask(x).view(sources, -1, heads, width).transpose(1, 2)
        keys = keys_values[..., :query_size].view(sources, length, heads, width).transpose(1, 2)
        values = keys_values[..., query_size:].view(sources, length, heads, value_width).transpose(1, 2)
        found = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask[:, None, None])
        return out(found.transpose(1, 2).reshape(len(x), -1)), state

    return move


def lstm(cell: LSTMCell) -> Move:
    (W, b), U, size = weights(cell.W), cell.U.weight.t(), cell.size

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        h, c = state
        gates = F.linear(x, W, b).addmm_(h, U)
        i_f, g, o = (
            gates[:, : 2 * size].sigmoid_(),
            gates[:, 2 * size : 3 * size].tanh_(),
            gates[:, 3 * size :].sigmoid_(),
        )
        c = torch.addcmul(i_f[:, size:] * c, i_f[:, :size], g)
        h = o * c.tanh()
        return h, (h, c)

    return move


def gru(cell: GRUCell) -> Move:
    (W, b), (U, d), size = weights(cell.W), weights(cell.U), cell.size

    def move(x: Tensor, state: State) -> tuple[Tensor, State]:
        (h,) = state
        new, old = F.linear(x, W, b), F.linear(h, U, d)
        r_u = new[:, : 2 * size].add_(old[:, : 2 * size]).sigmoid_()
        n = new[:, 2 * size :].addcmul_(r_u[:, :size], old[:, 2 * size :]).tanh_()
        h = torch.lerp(n, h, r_u[:, size:])
        return h, (h,)

    return move


def weights(product: nn.Linear) -> tuple[Tensor, Tensor | None]:
    return product.weight, product.bias
