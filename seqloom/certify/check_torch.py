"""The product against `torch.nn` where it computes the same.

PyTorch's modules are called with our weights in place of theirs, as expressions of ours, so that gradients of every
weight can be compared and not only those of the inputs.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from ..layers import Layer, Memory, MultiHeadAttention, Stack, recording
from ..layers.cells import Cell, GRUCell, LSTMCell, MakeCell, ProjectedLSTMCell, RNNCell
from ..layers.positions import NoRotation
from ..layers.residual import RESIDUALS
from ..layers.transformer import CausalAttention, CrossAttention, SelfAttention, position_wise
from .certificate import EXACT, Check, Gaps, compare, leaf, stirred

INPUTS, SIZE, HEADS, HIDDEN = 3, 4, 2, 5
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()  # PyTorch knows padding on the right only
Weights = dict[str, Tensor]


# --- recurrences ------------------------------------------------------------------------------------------------

RECURRENCES: dict[str, tuple[MakeCell, type[nn.RNNBase], dict[str, Any]]] = {
    "nn.RNN, tanh": (RNNCell, nn.RNN, {}),
    "nn.RNN, relu": (partial(RNNCell, activation="relu"), nn.RNN, {"nonlinearity": "relu"}),
    "nn.LSTM": (LSTMCell, nn.LSTM, {}),
    "nn.LSTM, proj_size": (partial(ProjectedLSTMCell, memory=6), nn.LSTM, {"hidden_size": 6, "proj_size": SIZE}),
    "nn.GRU": (GRUCell, nn.GRU, {}),
}


def cell_weights(cell: Cell) -> Weights:
    """PyTorch has two biases; where we have one, theirs of the state is zero."""
    ours: Weights = dict(cell.named_parameters())
    written = {"weight_ih_l0": ours["W.weight"], "weight_hh_l0": ours["U.weight"], "bias_ih_l0": ours["W.bias"]}
    written["bias_hh_l0"] = ours.get("U.bias", torch.zeros_like(ours["W.bias"]))
    return written | ({"weight_hr_l0": ours["P.weight"]} if "P.weight" in ours else {})


def recurrence_agrees(name: str) -> Gaps:
    make, kind, options = RECURRENCES[name]
    cell = stirred(make(INPUTS, SIZE))
    peer = kind(**{"input_size": INPUTS, "hidden_size": SIZE, "batch_first": True} | options)
    x, first = leaf(2, 5, INPUTS), [leaf(2, size) for size in cell.sizes]
    y, last = cell.scan(x, tuple(first))
    begin = first[0][None] if len(first) == 1 else tuple(entry[None] for entry in first)
    theirs, after = functional_call(peer, cell_weights(cell), (x, begin))
    ends = [after[0]] if isinstance(after, Tensor) else [entry[0] for entry in after]
    return compare([y, *last], [theirs, *ends], [x, *first, *cell.parameters()])


# --- attention --------------------------------------------------------------------------------------------------


def self_attention_agrees(causal: bool) -> Gaps:
    layer = stirred((CausalAttention if causal else SelfAttention)(SIZE, MultiHeadAttention(SIZE, HEADS), NoRotation()))
    x = leaf(2, 5, SIZE)
    ours, _ = layer(x, layer.initial_state(2), MASK)
    peer, future = nn.MultiheadAttention(SIZE, HEADS, batch_first=True), torch.ones(5, 5).triu(1).bool()
    hidden = {"key_padding_mask": ~MASK, "need_weights": False} | ({"attn_mask": future} if causal else {})
    theirs, _ = functional_call(peer, heads_weights(layer), (x, x, x), hidden)
    return compare([ours], [theirs * MASK[..., None]], [x, *layer.parameters()])


def heads_weights(layer: Layer, prefix: str = "") -> Weights:
    """An attention layer's weights under the names that `nn.MultiheadAttention` has for them."""
    ours = dict(layer.named_parameters())
    if isinstance(layer, CrossAttention):
        weight = torch.cat([ours["query.weight"], ours["key_value.weight"]])
        bias = torch.cat([ours["query.bias"], ours["key_value.bias"]])
    else:
        weight, bias = ours["project.weight"], ours["project.bias"]
    out = {"out_proj.weight": ours["attend.out.weight"], "out_proj.bias": ours["attend.out.bias"]}
    written = {"in_proj_weight": weight, "in_proj_bias": bias} | out
    return {f"{prefix}{name}": value for name, value in written.items()}


def cross_attention_agrees() -> Gaps:
    layer = stirred(CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, HEADS)))
    x, source = leaf(2, 3, SIZE), leaf(2, 5, SIZE)
    ours, _ = layer(x, layer.initial_state(2, Memory(source, MASK, source[:, 0], ())))
    peer, hidden = nn.MultiheadAttention(SIZE, HEADS, batch_first=True), {"key_padding_mask": ~MASK}
    theirs, _ = functional_call(peer, heads_weights(layer), (x, source, source), hidden)
    return compare([ours], [theirs], [x, source, *layer.parameters()])


def spelled_out_heads_agree(causal: bool) -> Gaps:
    """What somebody who watches the weights gets, against PyTorch's fused function."""
    attend = stirred(MultiHeadAttention(SIZE, HEADS, width=3, values=2))
    query, keys, values = leaf(2, HEADS, 5, 3), leaf(2, HEADS, 5, 3), leaf(2, HEADS, 5, 2)
    with recording(attend):
        ours = attend(query, keys, values, causal=causal)
    theirs = attend.join(F.scaled_dot_product_attention(query, keys, values, is_causal=causal))
    return compare([ours], [theirs], [query, keys, values, *attend.parameters()])


# --- Transformer layers -----------------------------------------------------------------------------------------


def block(norm: str, activation: str, decoder: bool) -> Stack:
    """One layer as PyTorch has it: no positions before, no norm behind."""
    own = (CausalAttention if decoder else SelfAttention)(SIZE, MultiHeadAttention(SIZE, HEADS), NoRotation())
    other = [CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, HEADS))] if decoder else []
    parts = [own, *other, position_wise(SIZE, HIDDEN, activation, 0.0)]
    return stirred(Stack(*(RESIDUALS[norm](SIZE, part) for part in parts)))


def block_weights(net: Stack) -> Weights:
    """By PyTorch's names: the parts are self_attn, multihead_attn, linear1 and 2, and norms that are counted."""
    written: Weights = {}
    for number, part in enumerate(net.layers, 1):
        ours = dict(part.named_parameters())
        written |= {f"norm{number}.{name}": ours[f"norm.{name}"] for name in ("weight", "bias")}
        inner = part.layer
        assert isinstance(inner, Layer)
        if isinstance(inner, SelfAttention | CausalAttention | CrossAttention):
            name = "multihead_attn." if isinstance(inner, CrossAttention) else "self_attn."
            written |= heads_weights(inner, name)
        else:
            for linear, place in (("linear1", 0), ("linear2", 3)):
                written |= {f"{linear}.{name}": ours[f"layer.module.{place}.{name}"] for name in ("weight", "bias")}
    return written


def encoder_layer_agrees(norm: str, activation: str) -> Gaps:
    net, x = block(norm, activation, decoder=False), leaf(2, 5, SIZE)
    ours, _ = net(x, net.initial_state(2), MASK)
    peer = nn.TransformerEncoderLayer(SIZE, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm == "pre")
    theirs = functional_call(peer, block_weights(net), (x,), {"src_key_padding_mask": ~MASK})
    return compare([ours], [theirs * MASK[..., None]], [x, *net.parameters()])


def decoder_layer_agrees(norm: str) -> Gaps:
    net, x, source = block(norm, "relu", decoder=True), leaf(2, 4, SIZE), leaf(2, 5, SIZE)
    ours, _ = net(x, net.initial_state(2, Memory(source, MASK, source[:, 0], ())))
    peer = nn.TransformerDecoderLayer(SIZE, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=norm == "pre")
    hidden = {"tgt_mask": torch.ones(4, 4).triu(1).bool(), "memory_key_padding_mask": ~MASK}
    theirs = functional_call(peer, block_weights(net), (x, source), hidden)
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
