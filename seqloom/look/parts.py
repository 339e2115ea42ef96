"""The parts of a model from the bottom to the top, each with its shape and parameters: what a drawing shows."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..layers.attention_decoders import Bahdanau, Luong
from ..layers.base import Encoder, Layer, Stack
from ..layers.convolution import Convolution
from ..layers.positions import LearnedPositions, SinusoidalPositions
from ..layers.recurrent import Bidirectional, Recurrent
from ..layers.residual import Residual
from ..layers.tap import recording
from ..layers.transformer import CausalAttention, CrossAttention, SelfAttention
from ..models import Batch, Generator, Labeler
from .measures.reading import INPUTS, SOURCE, Model, bodies, features, quiet, single

EACH, FORWARDS, BOTH, AROUND, PAST, ONE = "each", "forwards", "both ways", "around", "past", "one"


@dataclass(frozen=True)
class Part:
    """One row of the drawing. `flow` says how steps are joined: not at all, in time, both ways, with all around, with
    the past, or into one."""

    side: str
    name: str
    flow: str
    size: int  # features a step
    parameters: int
    looks: bool = False  # at the memory


class _Count:
    """Parameters, each counted where it first occurs: a tied matrix is there once."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def of(self, part: nn.Module) -> int:
        new = [parameter for parameter in part.parameters() if id(parameter) not in self.seen]
        self.seen |= {id(parameter) for parameter in new}
        return sum(parameter.numel() for parameter in new)


def parts(model: Model, batch: Batch) -> list[Part]:
    """Of the model as it reads the first row of the batch; the sizes are those that really pass."""
    batch = single(batch)
    count = _Count()
    with quiet(model), torch.no_grad(), recording(model, "*") as tape:
        top = features(model, batch)
    found: list[Part] = []
    for side, (prefix, body) in bodies(model).items():
        embed = _embedding(model, side)
        size = batch.inputs.shape[-1] if embed is None else 0
        if embed is not None:
            with quiet(model), torch.no_grad():
                size = embed(batch.source[0] if side == SOURCE else batch.inputs).shape[-1]
            found.append(Part(side, "embedding", EACH, size, count.of(embed)))
        layer = body.layer if isinstance(body, Encoder) else body
        assert isinstance(layer, Layer)
        inner = f"{prefix}layer." if isinstance(body, Encoder) else prefix
        for part, name, flow, looks, tap in _rows(layer, inner, ""):
            size = int(tape[tap][0].shape[-1]) if tap in tape else size
            found.append(Part(side, name, flow, size, count.of(part), looks))
        if (
            isinstance(body, Encoder)
            and not (isinstance(model, Labeler) and model.per_element)
            and not isinstance(model, Encoder)
        ):
            pool = count.of(body.pool) if isinstance(body.pool, nn.Module) else 0
            found.append(Part(side, "summary", ONE, size, pool))
    if isinstance(model, Labeler | Generator):
        flow = EACH if top.dim() == 3 else ONE
        with quiet(model), torch.no_grad():
            said = model.head(top)
        width = said.shape[-1] if isinstance(said, Tensor) else said[0].shape[-1]
        found.append(Part(INPUTS, f"head ({type(model.head).__name__})", flow, int(width), count.of(model.head)))
    return found


def _embedding(model: Model, side: str) -> nn.Module | None:
    if isinstance(model, Generator) and side == SOURCE:
        return None if model.source is None else model.source.embed
    return model.embed if isinstance(model, Labeler | Generator) else None


Row = tuple[nn.Module, str, str, bool, str]  # part, name, flow, whether it looks at the memory, tap


def _rows(layer: Layer, prefix: str, tap: str) -> Iterator[Row]:
    if isinstance(layer, Stack):
        for number, one in enumerate(layer.layers):
            yield from _rows(one, f"{prefix}layers.{number}.", f"{prefix}out.{number}")
    elif isinstance(layer, Recurrent | Bahdanau):
        looks = isinstance(layer, Bahdanau)
        yield layer, _cell_name(layer) + (" with attention" if looks else ""), FORWARDS, looks, tap
    elif isinstance(layer, Bidirectional):
        yield layer, f"{_cell_name(layer.ways[0])} both ways", BOTH, False, tap
    elif isinstance(layer, Residual):
        name, flow = _inside(layer.layer)
        yield layer, name, flow, isinstance(layer.layer, CrossAttention), tap
    elif isinstance(layer, Convolution):
        yield layer, f"window of {layer.window}", PAST if layer.causal else AROUND, False, tap
    elif isinstance(layer, Luong):
        yield layer, "attention", EACH, True, tap
    elif isinstance(layer, SinusoidalPositions | LearnedPositions):
        yield layer, "positions", EACH, False, tap
    elif any(True for _ in layer.parameters()):  # a projection or a norm; dropout has nothing to show
        yield layer, _each_name(layer), EACH, False, tap


def _cell_name(layer: nn.Module) -> str:
    assert isinstance(layer, Recurrent | Bahdanau)
    return type(layer.cell).__name__.removesuffix("Cell")


def _inside(layer: Layer) -> tuple[str, str]:
    if isinstance(layer, SelfAttention | CausalAttention):
        window = f", window {layer.window}" if layer.window else ""
        return f"self-attention ({layer.attend.heads} heads{window})", PAST if layer.causal else AROUND
    if isinstance(layer, CrossAttention):
        return f"source attention ({layer.attend.heads} heads)", EACH
    if isinstance(layer, Stack):
        [name, *_] = [row for row in _rows(layer, "", "") if row[2] != EACH] or [(layer, "layer", EACH, False, "")]
        return name[1], name[2]
    return "feed-forward", EACH


def _each_name(layer: nn.Module) -> str:
    norm = any(isinstance(part, nn.LayerNorm | nn.RMSNorm) for part in layer.modules())
    return "norm" if norm else "projection"
