"""PyTorch's Transformer encoders and decoders: weights in and out, the same numbers.

Theirs know no positions, so these are bodies without them; put a layer of positions in front as theirs needs one, too.
"""

from copy import deepcopy
from typing import Any

import torch
from torch import nn

from .attention import MultiHeadAttention
from .base import Layer, Pointwise, Stack
from .positions import NoRotation
from .residual import RESIDUALS, Residual
from .transformer import ACTIVATIONS, CausalAttention, CrossAttention, SelfAttention, position_wise

Blocks = nn.TransformerEncoder | nn.TransformerDecoder


def from_torch(module: Blocks) -> Stack:
    """The layers that compute what the module computes: an encoder, or a causal decoder that looks at a memory."""
    made: list[Layer] = []
    with torch.no_grad():
        for block in module.layers:
            made += parts_of(block)
        if module.norm is not None:
            made.append(Pointwise(deepcopy(module.norm)))
    return Stack(*made)


def parts_of(block: Any) -> list[Layer]:
    """Attention to itself, in a decoder to the memory, and the small net on every element."""
    decodes = isinstance(block, nn.TransformerDecoderLayer)
    size, heads, bias = block.self_attn.embed_dim, block.self_attn.num_heads, block.self_attn.in_proj_bias is not None
    activation = "relu" if block.activation in (torch.relu, nn.functional.relu) else "gelu"
    residual = RESIDUALS["pre" if block.norm_first else "post"]
    attention = (CausalAttention if decodes else SelfAttention)(
        size, MultiHeadAttention(size, heads, bias=bias), NoRotation(), 0, bias
    )
    read(block.self_attn, [attention.project], attention.attend)
    inner: list[Layer] = [attention]
    if decodes:
        other = CrossAttention(size, size, MultiHeadAttention(size, heads, bias=bias), bias)
        read(block.multihead_attn, [other.query, other.key_value], other.attend)
        inner.append(other)
    net: Any = position_wise(size, block.linear1.out_features, activation, 0.0, bias)
    for ours, theirs in zip((net.module[0], net.module[-1]), (block.linear1, block.linear2), strict=True):
        copied(ours, theirs)
    norms = [block.norm1, block.norm2, *([block.norm3] if decodes else [])]
    parts = [residual(size, part, block.dropout1.p) for part in (*inner, net)]
    for part, norm in zip(parts, norms, strict=True):
        part.norm = deepcopy(norm)  # theirs may have no bias
    return list(parts)


def read(theirs: nn.MultiheadAttention, products: list[nn.Linear], attend: MultiHeadAttention) -> None:
    """Theirs is one matrix of query, key and value, one below the other; ours is cut where inputs differ."""
    rows = [product.out_features for product in products]
    for product, weight in zip(products, theirs.in_proj_weight.split(rows), strict=True):
        product.weight.copy_(weight)
    if theirs.in_proj_bias is not None:
        for product, bias in zip(products, theirs.in_proj_bias.split(rows), strict=True):
            product.bias.copy_(bias)
    copied(attend.out, theirs.out_proj)


def copied(ours: Any, theirs: nn.Module) -> Any:
    ours.load_state_dict(theirs.state_dict())
    return ours


def to_torch(stack: Stack) -> Blocks:
    """The module of PyTorch's that computes what these layers compute, batch first; only what `from_torch` can make."""
    parts = [layer for layer in stack.layers if isinstance(layer, Residual)]
    decodes = any(isinstance(part.layer, CrossAttention) for part in parts)
    each = 3 if decodes else 2
    groups = [parts[start : start + each] for start in range(0, len(parts), each)]
    block = block_like(groups[0], decodes)
    final = [layer for layer in stack.layers if isinstance(layer, Pointwise)]
    norm = deepcopy(final[0].module[0]) if final else None
    if decodes:
        module: Any = nn.TransformerDecoder(block, len(groups), norm)
    else:
        module = nn.TransformerEncoder(block, len(groups), norm, enable_nested_tensor=False)
    with torch.no_grad():
        for group, made in zip(groups, module.layers, strict=True):
            write(group, made, decodes)
    return module


def block_like(group: list[Any], decodes: bool) -> Any:
    """An empty block of their kind and of this shape."""
    attend, net = group[0].layer.attend, group[-1].layer.module
    [activation] = [name for name, kind in ACTIVATIONS.items() if isinstance(net[1], kind)]
    if activation == "swiglu" or any(not hasattr(part, "norm") for part in group):
        raise ValueError("PyTorch's Transformer has neither SwiGLU nor ReZero, so these layers cannot become one")
    kind = nn.TransformerDecoderLayer if decodes else nn.TransformerEncoderLayer
    return kind(
        group[0].layer.project.in_features,
        attend.heads,
        net[0].out_features,
        group[0].dropout.p,
        activation,
        batch_first=True,
        norm_first=isinstance(group[0], RESIDUALS["pre"]),
        bias=net[0].bias is not None,
    )


def write(group: list[Any], block: Any, decodes: bool) -> None:
    own, net = group[0].layer, group[-1].layer.module
    join([own.project], own.attend, block.self_attn)
    if decodes:
        other = group[1].layer
        join([other.query, other.key_value], other.attend, block.multihead_attn)
    copied(block.linear1, net[0])
    copied(block.linear2, net[-1])
    for number, part in enumerate(group, 1):
        setattr(block, f"norm{number}", deepcopy(part.norm))


def join(products: list[nn.Linear], attend: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(torch.cat([product.weight for product in products]))
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.copy_(torch.cat([product.bias for product in products]))
    copied(theirs.out_proj, attend.out)
