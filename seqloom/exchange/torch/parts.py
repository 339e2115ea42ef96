"""Parts of a model as modules of torch.nn: the line that makes each, and its weights by that module's names.

What torch.nn does not have is refused with its name.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...errors import RunError
from ...layers.base import (
    Layer,
    Pointwise,
    Stack,
    first_pool,
    flatten_pool,
    last_bidirectional_pool,
    last_pool,
    max_pool,
    mean_pool,
    sqrtn_pool,
)
from ...layers.cells import Cell, GRUCell, LSTMCell, RNNCell
from ...layers.character_embeddings import SpelledVocabulary
from ...layers.embeddings import NoteEmbedding, NumberEmbedding, TokenEmbedding
from ...layers.positions import LearnedPositions, NoRotation, SinusoidalPositions
from ...layers.recurrent import Bidirectional, Concatenate, Recurrent, VariationalDropout, ZeroState
from ...layers.residual import PostNorm, PreNorm, Residual
from ...layers.torch_transformer import missing_in_torch, to_torch
from ...layers.transformer import CausalAttention, CrossAttention, MultiHeadLayer, SelfAttention

Weights = dict[str, Tensor]
POOLS = {
    mean_pool: "mean",
    sqrtn_pool: "sqrtn",
    max_pool: "max",
    last_pool: "last",
    first_pool: "first",
    last_bidirectional_pool: "ends",
    flatten_pool: "flatten",
}


class Part(NamedTuple):
    """An expression that makes a module, and the module's weights."""

    code: str
    weights: Weights


class Body(NamedTuple):
    """What reads a sequence: its modules by name, and what its vectors go through first."""

    parts: dict[str, Part]
    before: tuple[str, ...]  # lines that change x, of (batch, time, features)
    transformer: bool
    causal: bool


def refuse(part: object, where: str) -> RunError:
    name = getattr(part, "__name__", type(part).__name__)
    return RunError(
        f"{where}: {name} is not made of modules of torch.nn, so it cannot be exported to it; --to onnx can"
    )


def weights_of(module: nn.Module) -> Weights:
    return {name: value.detach() for name, value in module.state_dict().items()}


def product_part(weight: Tensor, bias: Tensor | None) -> Part:
    (outputs, inputs), more = weight.shape, "" if bias is not None else ", bias=False"
    weights = {"weight": weight.detach()} | ({} if bias is None else {"bias": bias.detach()})
    return Part(f"nn.Linear({inputs}, {outputs}{more})", weights)


def linear_part(module: nn.Linear) -> Part:
    return product_part(module.weight, module.bias)


def embedding_part(embed: nn.Module) -> tuple[Part | None, str]:
    """The first layer, and how it is applied to `inputs`."""
    match embed:
        case TokenEmbedding(weight=weight, scale=scale):
            times = f" * {scale!r}" if scale != 1 else ""
            rows, size = weight.shape
            return Part(f"nn.Embedding({rows}, {size})", {"weight": weight.detach()}), f"self.NAME(inputs){times}"
        case SpelledVocabulary():
            table = embed.table()
            return Part(f"nn.Embedding({len(table)}, {table.shape[1]})", {"weight": table}), "self.NAME(inputs)"
        case NumberEmbedding(product=product) | NoteEmbedding(product=product):
            return linear_part(product), "self.NAME(inputs)"
        case nn.Identity():
            return None, "inputs"
    raise refuse(embed, "the first layer")


# --- recurrences --------------------------------------------------------------------------------------------------


def recurrent_part(cells: Sequence[Cell]) -> Part:
    """One level: a cell, or two that read in both directions."""
    first = cells[0]
    options = ["batch_first=True"]
    match first:
        case RNNCell(activation="tanh" | "relu" as activation):
            kind = "RNN"
            options += [] if activation == "tanh" else [f"nonlinearity={activation!r}"]
        case LSTMCell(candidate="tanh"):
            kind = "LSTM"
        case GRUCell():
            kind = "GRU"
        case _:
            raise refuse(first, "a recurrence")
    if type(first) not in (RNNCell, LSTMCell, GRUCell):
        raise refuse(first, "a recurrence")
    biased = first.W.bias is not None
    options += ["bidirectional=True"] * (len(cells) > 1) + ["bias=False"] * (not biased)
    weights: Weights = {}
    for cell, suffix in zip(cells, ("_l0", "_l0_reverse"), strict=False):
        weights |= {f"weight_ih{suffix}": cell.W.weight.detach(), f"weight_hh{suffix}": cell.U.weight.detach()}
        if biased:
            second = torch.zeros_like(cell.W.bias) if cell.U.bias is None else cell.U.bias
            weights |= {f"bias_ih{suffix}": cell.W.bias.detach(), f"bias_hh{suffix}": second.detach()}
    return Part(f"nn.{kind}({first.inputs}, {first.size}, {', '.join(options)})", weights)


def level_part(layer: Layer, starts: bool) -> Part:
    """A level of a stack; one that has to start by itself starts from zeros, as torch.nn does."""
    match layer:
        case Bidirectional(ways=ways, merge=merge):
            if not isinstance(merge, Concatenate):
                raise refuse(merge, "the join of two directions")
            levels = list(ways)
        case Recurrent():
            levels = [layer]
        case _:
            raise refuse(layer, "a layer")
    for way in levels:
        if starts and not isinstance(way.begin, ZeroState):
            raise refuse(way.begin, "the start of a recurrence")
    return recurrent_part([way.cell for way in levels])


def is_dropout(layer: Layer) -> bool:
    """Whether a layer does something in training only."""
    if isinstance(layer, VariationalDropout):
        return True
    return isinstance(layer, Pointwise) and all(isinstance(part, nn.Dropout) for part in layer.module)


def recurrent_levels(layer: Layer) -> list[Layer]:
    """The recurrences of a stack; nothing else may be in it."""
    if not isinstance(layer, Stack):
        return [layer]
    return [level for part in layer.layers if not is_dropout(part) for level in recurrent_levels(part)]


def recurrent_body(name: str, layer: Layer, starts: bool = True) -> Body:
    levels = [level_part(level, starts) for level in recurrent_levels(layer)]
    weights = {f"{number}.{key}": value for number, part in enumerate(levels) for key, value in part.weights.items()}
    code = f"nn.ModuleList([{', '.join(part.code for part in levels)}])"
    return Body({name: Part(code, weights)} if levels else {}, (), False, layer.causal)


# --- Transformers -------------------------------------------------------------------------------------------------


def is_transformer(layer: Layer) -> bool:
    return isinstance(layer, Stack) and any(isinstance(part, Residual) for part in layer.layers)


def transformer_body(name: str, stack: Any) -> Body:
    parts: dict[str, Part] = {}
    before: list[str] = []
    blocks: list[Layer] = []
    for layer in stack.layers:
        match layer:
            case PostNorm() | PreNorm():
                check_residual(layer)
                blocks.append(layer)
            case SinusoidalPositions():
                before.append("x = x + sinusoids(x.shape[1], x.shape[2])")
            case LearnedPositions(table=table, offset=0):
                parts[f"{name}_positions"] = Part(
                    f"nn.Embedding({len(table)}, {table.shape[1]})", {"weight": table.detach()}
                )
                before.append(f"x = x + self.{name}_positions.weight[: x.shape[1]]")
            case Pointwise() if is_dropout(layer):
                pass
            case Pointwise(module=module) if len(module) == 1 and isinstance(module[0], nn.Linear) and not blocks:
                parts[f"{name}_project"] = linear_part(module[0])
                before.append(f"x = self.{name}_project(x)")
            case Pointwise(module=module) if len(module) == 1 and isinstance(module[0], nn.LayerNorm):
                if not blocks:
                    raise RunError("nn.Transformer has no norm of embeddings, so it cannot be exported; --to onnx can")
                blocks.append(layer)
            case _:
                raise refuse(layer, "a layer")
    twin = to_torch(Stack(*blocks))
    parts[name] = Part(transformer_code(twin), weights_of(twin))
    return Body(parts, tuple(before), True, stack.causal)


def check_residual(layer: Any) -> None:
    """Refuse what PyTorch's blocks cannot be made of."""
    if not isinstance(layer.norm, nn.LayerNorm):
        raise refuse(layer.norm, "a Transformer block")
    inner = layer.layer
    if isinstance(inner, MultiHeadLayer) and (lacking := missing_in_torch(inner)):
        raise RunError(f"attention: torch.nn has no {lacking}, so it cannot be exported; --to onnx can")
    match inner:
        case SelfAttention() | CausalAttention():
            if not isinstance(inner.turn, NoRotation) or inner.window:
                raise (
                    refuse(inner.turn, "attention")
                    if not inner.window
                    else RunError("attention: torch.nn has no window, so it cannot be exported; --to onnx can")
                )
        case CrossAttention():
            if inner.key_value.in_features != inner.query.in_features:
                raise RunError(
                    "source attention: torch.nn needs a source as wide as the target, not of "
                    f"{inner.key_value.in_features} and {inner.query.in_features} features; --to onnx does not"
                )
        case Pointwise(module=module):
            bend = module[1]
            if not isinstance(bend, nn.GELU | nn.ReLU) or getattr(bend, "approximate", "none") != "none":
                raise refuse(bend, "a feed-forward net")
        case _:
            raise refuse(inner, "a Transformer block")


def transformer_code(module: Any) -> str:
    block = module.layers[0]
    kind = "Decoder" if isinstance(module, nn.TransformerDecoder) else "Encoder"
    activation = "relu" if block.activation in (torch.relu, nn.functional.relu) else "gelu"
    sizes = f"{block.self_attn.embed_dim}, {block.self_attn.num_heads}, {block.linear1.out_features}"
    options = [f"activation={activation!r}", "batch_first=True"]
    options += ["norm_first=True"] * block.norm_first + ["bias=False"] * (block.linear1.bias is None)
    epsilon = f"eps={block.norm1.eps}" if block.norm1.eps != 1e-5 else ""
    options += [f"layer_norm_{epsilon}"] if epsilon else []
    layer = f"nn.Transformer{kind}Layer({sizes}, {', '.join(options)})"
    norm = "None"
    if module.norm is not None:
        more = [
            str(block.self_attn.embed_dim),
            *([epsilon] if epsilon else []),
            *["bias=False"] * (module.norm.bias is None),
        ]
        norm = f"nn.LayerNorm({', '.join(more)})"
    nested = "" if kind == "Decoder" else ", enable_nested_tensor=False"
    return f"nn.Transformer{kind}({layer}, {len(module.layers)}, {norm}{nested})"


def body_of(name: str, layer: Layer, starts: bool = True) -> Body:
    return transformer_body(name, layer) if is_transformer(layer) else recurrent_body(name, layer, starts)


def pool_code(pool: Any) -> str:
    from .code import POOLS as CODE

    if pool not in POOLS:
        raise refuse(pool, "the summary of a sequence")
    return CODE[POOLS[pool]]
