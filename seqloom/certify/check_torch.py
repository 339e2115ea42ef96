"""The product against `torch.nn` where it computes the same.

PyTorch's modules are called with our weights in place of theirs, as expressions of ours, so that gradients of every
weight can be compared and not only those of the inputs.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from ..layers import GRU, LSTM, RNN, Layer, Memory, MultiHeadAttention, Stack, recording
from ..layers.positions import NoRotation
from ..layers.residual import RESIDUALS
from ..layers.state import map_state
from ..layers.torch_compat import TorchCompatible
from ..layers.torch_transformer import attention_weights, torch_twin, torch_weights
from ..layers.transformer import CausalAttention, CrossAttention, SelfAttention, position_wise
from .certificate import EXACT, Check, Gaps, compare, draw_leaf, stir

INPUTS, SIZE, HEADS, HIDDEN = 3, 4, 2, 5
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()  # PyTorch knows padding on the right only
AHEAD = torch.ones(5, 5).triu(1).bool()

RECURRENCES: dict[str, Callable[[], TorchCompatible]] = {
    "nn.RNN, tanh": partial(RNN, INPUTS, SIZE),
    "nn.RNN, relu": partial(RNN, INPUTS, SIZE, activation="relu"),
    "nn.LSTM": partial(LSTM, INPUTS, SIZE),
    "nn.LSTM, proj_size": partial(LSTM, INPUTS, SIZE, memory=6),
    "nn.LSTM, bidirectional, 2 layers": partial(LSTM, INPUTS, SIZE, 2, bidirectional=True),
    "nn.GRU": partial(GRU, INPUTS, SIZE),
}


def recurrence_agrees(name: str) -> Gaps:
    layer, x = stir(RECURRENCES[name]()), draw_leaf(2, 5, INPUTS)
    drawn: list[Tensor] = []

    def draw(zeros: Tensor) -> Tensor:
        drawn.append(draw_leaf(*zeros.shape))
        return drawn[-1]

    first = map_state(draw, layer.initial_state(2))
    y, last = layer(x, first)
    ways = 2 if layer.bidirectional else 1

    def theirs_of(state: object) -> list[Tensor]:
        """Each entry of all levels and directions, (levels · ways, B, size), as PyTorch has it."""
        entries = zip(*layer.final_states(state), strict=True)
        return [torch.cat([level.unflatten(1, (ways, -1)).transpose(0, 1) for level in entry]) for entry in entries]

    begin = theirs_of(first)
    theirs, after = functional_call(
        layer.twin(), layer.torch_weights(), (x, begin[0] if len(begin) == 1 else tuple(begin))
    )
    ends = [after] if isinstance(after, Tensor) else list(after)
    return compare([y, *theirs_of(last)], [theirs, *ends], [x, *drawn, *layer.parameters()])


# --- attention --------------------------------------------------------------------------------------------------


def self_attention_agrees(causal: bool) -> Gaps:
    layer = stir((CausalAttention if causal else SelfAttention)(SIZE, MultiHeadAttention(SIZE, HEADS), NoRotation()))
    x = draw_leaf(2, 5, SIZE)
    ours, _ = layer(x, layer.initial_state(2), MASK)
    hidden = {"key_padding_mask": ~MASK, "need_weights": False} | ({"attn_mask": AHEAD} if causal else {})
    peer = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
    theirs, _ = functional_call(peer, attention_weights(layer), (x, x, x), hidden)
    return compare([ours], [theirs * MASK[..., None]], [x, *layer.parameters()])


def cross_attention_agrees() -> Gaps:
    layer = stir(CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, HEADS)))
    x, source = draw_leaf(2, 3, SIZE), draw_leaf(2, 5, SIZE)
    ours, _ = layer(x, layer.initial_state(2, Memory(source, MASK, source[:, 0], ())))
    peer, hidden = nn.MultiheadAttention(SIZE, HEADS, batch_first=True), {"key_padding_mask": ~MASK}
    theirs, _ = functional_call(peer, attention_weights(layer), (x, source, source), hidden)
    return compare([ours], [theirs], [x, source, *layer.parameters()])


def spelled_out_heads_agree(causal: bool) -> Gaps:
    """What somebody who watches the weights gets, against PyTorch's fused function."""
    attend = stir(MultiHeadAttention(SIZE, HEADS, width=3, values=2))
    query, keys, values = draw_leaf(2, HEADS, 5, 3), draw_leaf(2, HEADS, 5, 3), draw_leaf(2, HEADS, 5, 2)
    with recording(attend):
        ours = attend(query, keys, values, causal=causal)
    theirs = attend.join(F.scaled_dot_product_attention(query, keys, values, is_causal=causal))
    return compare([ours], [theirs], [query, keys, values, *attend.parameters()])


# --- Transformer layers -----------------------------------------------------------------------------------------


def block(norm: str, activation: str, decoder: bool) -> Stack:
    """One layer as PyTorch has it: no positions before, no norm behind."""
    own = (CausalAttention if decoder else SelfAttention)(SIZE, MultiHeadAttention(SIZE, HEADS), NoRotation())
    other: list[Layer] = [CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, HEADS))] if decoder else []
    parts = [own, *other, position_wise(SIZE, HIDDEN, activation, 0.0)]
    return stir(Stack(*(RESIDUALS[norm](SIZE, part) for part in parts)))


def encoder_layer_agrees(norm: str, activation: str) -> Gaps:
    net, x = block(norm, activation, decoder=False), draw_leaf(2, 5, SIZE)
    ours, _ = net(x, net.initial_state(2), MASK)
    theirs = functional_call(torch_twin(net), torch_weights(net), (x,), {"src_key_padding_mask": ~MASK})
    return compare([ours], [theirs * MASK[..., None]], [x, *net.parameters()])


def decoder_layer_agrees(norm: str) -> Gaps:
    net, x, source = block(norm, "relu", decoder=True), draw_leaf(2, 5, SIZE), draw_leaf(2, 5, SIZE)
    ours, _ = net(x, net.initial_state(2, Memory(source, MASK, source[:, 0], ())))
    hidden = {"tgt_mask": AHEAD, "memory_key_padding_mask": ~MASK}
    theirs = functional_call(torch_twin(net), torch_weights(net), (x, source), hidden)
    return compare([ours], [theirs], [x, source, *net.parameters()])


def checks() -> Iterator[Check]:
    for name in RECURRENCES:
        yield Check("cells", name, "PyTorch's numbers", EXACT, partial(recurrence_agrees, name))
    for claim, causal in (("PyTorch's numbers", False), ("PyTorch's numbers, causal", True)):
        yield Check("attention", "nn.MultiheadAttention", claim, EXACT, partial(self_attention_agrees, causal))
        yield Check("attention", "nn.functional", claim, EXACT, partial(spelled_out_heads_agree, causal))
    yield Check("attention", "nn.MultiheadAttention", "PyTorch's numbers, cross", EXACT, cross_attention_agrees)
    for norm in ("post", "pre"):
        for activation in ("relu", "gelu"):
            claim = f"PyTorch's numbers, {norm}, {activation}"
            measure = partial(encoder_layer_agrees, norm, activation)
            yield Check("transformer", "nn.TransformerEncoderLayer", claim, EXACT, measure)
        claim = f"PyTorch's numbers, {norm}"
        yield Check("transformer", "nn.TransformerDecoderLayer", claim, EXACT, partial(decoder_layer_agrees, norm))
