"""PyTorch's Transformer encoders and decoders: weights in and out, the same numbers.

Theirs know no positions, so these are bodies without them; put a layer of positions in front as theirs needs one, too.
"""

from copy import deepcopy
from typing import Any, overload

import torch
from torch import Tensor, nn

from .attention import MultiHeadAttention
from .base import Layer, Pointwise, Stack
from .fast.dropout import Dropout
from .positions import NoRotation
from .residual import RESIDUALS, Residual
from .transformer import CausalAttention, CrossAttention, MultiHeadLayer, SelfAttention, position_wise

Blocks = nn.TransformerEncoder | nn.TransformerDecoder


@overload
def from_torch(module: Blocks) -> Stack: ...


@overload
def from_torch(module: nn.Transformer) -> tuple[Stack, Stack]: ...


def from_torch(module: Blocks | nn.Transformer) -> Stack | tuple[Stack, Stack]:
    """The layers that compute what the module computes: an encoder, or a causal decoder that looks at a memory; of a
    whole `nn.Transformer`, both."""
    if isinstance(module, nn.Transformer):
        return from_torch(module.encoder), from_torch(module.decoder)
    layers: list[Layer] = []
    with torch.no_grad():
        for block in module.layers:
            layers += parts_of(block)
        if module.norm is not None:
            layers.append(Pointwise(deepcopy(module.norm)))
    return Stack(*layers)


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
        ours.load_state_dict(theirs.state_dict())
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
    attend.out.load_state_dict(theirs.out_proj.state_dict())


@overload
def to_torch(stack: Stack) -> Blocks: ...


@overload
def to_torch(stack: Stack, decoder: Stack) -> nn.Transformer: ...


def to_torch(stack: Stack, decoder: Stack | None = None) -> Blocks | nn.Transformer:
    """The module of PyTorch's that computes what these layers compute, batch first; only what `from_torch` can make.
    An encoder and its decoder become one `nn.Transformer`."""
    if decoder is None:
        return copy_weights(torch_twin(stack), stack)
    (size, heads), reads, writes = read_sizes(stack), torch_twin(stack), torch_twin(decoder)
    whole = nn.Transformer(size, heads, custom_encoder=reads, custom_decoder=writes, batch_first=True)
    # Which has drawn the weights of both anew.
    for part, ours in ((whole.encoder, stack), (whole.decoder, decoder)):
        copy_weights(part, ours)
    return whole


def copy_weights(module: Any, stack: Stack) -> Any:
    """The module of PyTorch's with the weights of these layers."""
    with torch.no_grad():
        for name, weight in torch_weights(stack).items():
            module.get_parameter(name).copy_(weight)
    return module


def torch_twin(stack: Stack) -> Blocks:
    """A module of PyTorch's of this shape, with weights of its own."""
    groups, final = split_blocks(stack)
    attend, net = groups[0][0].layer.attend, groups[0][-1].layer.module
    bend = net[1]
    known = isinstance(bend, nn.ReLU) or (isinstance(bend, nn.GELU) and bend.approximate == "none")
    lacking = missing_in_torch(groups[0][0].layer)
    if not known or lacking or any(not hasattr(part, "norm") for part in groups[0]):
        without = lacking or "SwiGLU, no SiLU, no gelu_tanh and no ReZero"
        raise ValueError(f"PyTorch's Transformer has no {without}, so these layers cannot become one")
    decodes = len(groups[0]) == 3
    block: Any = (nn.TransformerDecoderLayer if decodes else nn.TransformerEncoderLayer)(
        groups[0][0].layer.project.in_features,
        attend.heads,
        net[0].out_features,
        groups[0][0].dropout.p,
        "relu" if isinstance(bend, nn.ReLU) else "gelu",
        layer_norm_eps=groups[0][0].norm.eps,
        batch_first=True,
        norm_first=isinstance(groups[0][0], RESIDUALS["pre"]),
        bias=net[0].bias is not None,
    )
    norm = deepcopy(final[0].module[0]) if final else None
    if decodes:
        return nn.TransformerDecoder(block, len(groups), norm)
    return nn.TransformerEncoder(block, len(groups), norm, enable_nested_tensor=False)


def read_sizes(stack: Stack) -> tuple[int, int]:
    """Features of an element, and heads."""
    attend = split_blocks(stack)[0][0][0].layer.attend
    return attend.out.out_features, attend.heads


def missing_in_torch(layer: MultiHeadLayer) -> str:
    """What of an attention PyTorch's own does not have, if anything."""
    attend, size = layer.attend, layer.attend.out.out_features
    if attend.hard:
        return "hard attention"
    return "" if attend.heads * attend.width == attend.heads * attend.value_width == size else "free widths of heads"


def split_blocks(stack: Stack) -> tuple[list[list[Any]], list[Any]]:
    """The residuals of each block, and the norm behind all of them, if there is one."""
    parts = [layer for layer in stack.layers if isinstance(layer, Residual)]
    each = 3 if any(isinstance(part.layer, CrossAttention) for part in parts) else 2
    others: list[Any] = [layer for layer in stack.layers if layer not in parts]
    final = [layer for layer in others if isinstance(layer, Pointwise) and isinstance(layer.module[0], nn.LayerNorm)]
    if parts and final and list(stack.layers).index(final[0]) < list(stack.layers).index(parts[0]):
        raise ValueError("PyTorch's Transformer has no norm of embeddings: give the blocks alone")
    for layer in others:
        if layer not in final and not (isinstance(layer, Pointwise) and isinstance(layer.module[0], Dropout)):
            raise ValueError(f"PyTorch's Transformer has no {layer.describe().name}: give the blocks alone")
    return [parts[start : start + each] for start in range(0, len(parts), each)], final


def torch_weights(stack: Stack) -> dict[str, Tensor]:
    """The weights by PyTorch's names."""
    groups, final = split_blocks(stack)
    weights: dict[str, Tensor] = {}
    for number, group in enumerate(groups):
        *attentions, net = [part.layer for part in group]
        named = dict(zip(("self_attn", "multihead_attn"), map(attention_weights, attentions), strict=False))
        named |= {"linear1": named_weights(net.module[0]), "linear2": named_weights(net.module[-1])}
        named |= {f"norm{place}": named_weights(part.norm) for place, part in enumerate(group, 1)}
        weights |= {f"layers.{number}.{part}.{name}": w for part, some in named.items() for name, w in some.items()}
    return weights | {f"norm.{name}": w for one in final for name, w in named_weights(one.module[0]).items()}


def attention_weights(layer: MultiHeadLayer) -> dict[str, Tensor]:
    """By the names of `nn.MultiheadAttention`, which has queries, keys and values in one matrix."""
    products = [layer.get_submodule(name.removesuffix(".weight")) for name in layer.projections]
    joined = {
        f"in_proj_{kind}": torch.cat([product.get_parameter(kind) for product in products])
        for kind in named_weights(products[0])
    }
    return joined | {f"out_proj.{name}": weight for name, weight in named_weights(layer.attend.out).items()}


def named_weights(module: nn.Module) -> dict[str, Tensor]:
    return dict(module.named_parameters())
