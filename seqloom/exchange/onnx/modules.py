"""What acts on each element by itself: products, norms, activations, embeddings, and the heads."""

import math
from collections.abc import Callable
from typing import Any

import torch
from onnx import TensorProto
from torch import Tensor, nn

from ...errors import RunError
from ...layers.character_embeddings import CharacterCNN, CharacterRNN, CharacterWordEmbedding, SpelledVocabulary
from ...layers.embeddings import (
    NoteEmbedding,
    NumberEmbedding,
    PatchEmbedding,
    SegmentEmbedding,
    TokenEmbedding,
)
from ...layers.fast.dropout import Dropout
from ...layers.heads import Head, Readout
from ...layers.lexicon import LexiconEmbedding
from ...layers.transformer import SwiGLU
from .graph import Graph, Value


def refuse(part: object, where: str) -> RunError:
    """The error for a part that has no line in the table."""
    return RunError(f"{where}: there is no ONNX form of {type(part).__name__}, so this run cannot be exported")


# --- modules ----------------------------------------------------------------------------------------------------


def write_linear(graph: Graph, module: nn.Linear, x: Value) -> Value:
    y = x @ graph.transpose(module.weight)
    return y if module.bias is None else y + graph.weight(module.bias)


def write_layer_norm(graph: Graph, module: nn.LayerNorm, x: Value) -> Value:
    [size] = module.normalized_shape
    scale = graph.weight(torch.ones(size) if module.weight is None else module.weight)
    shift = None if module.bias is None else graph.weight(module.bias)
    return graph.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=module.eps)


def write_rms_norm(graph: Graph, module: nn.RMSNorm, x: Value) -> Value:
    least = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    mean = graph.add("ReduceMean", x * x, axes=[-1], keepdims=1)
    normal = x / graph.add("Sqrt", mean + least)
    return normal if module.weight is None else normal * graph.weight(module.weight)


def write_gelu(graph: Graph, module: nn.GELU, x: Value) -> Value:
    if module.approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + inner.tanh())
    return 0.5 * x * (1.0 + graph.add("Erf", x / math.sqrt(2)))


def write_swiglu(graph: Graph, module: SwiGLU, x: Value) -> Value:
    gate, value = graph.add_many("Split", 2, x, axis=-1)
    return gate * gate.sigmoid() * value


def write_sequence(graph: Graph, module: nn.Sequential, x: Value) -> Value:
    for part in module:
        x = write_module(graph, part, x)
    return x


def keep(graph: Graph, module: nn.Module, x: Value) -> Value:
    return x


WriteModule = Callable[[Graph, Any, Value], Value]
MODULES: dict[type[nn.Module], WriteModule] = {
    nn.Linear: write_linear,
    nn.LayerNorm: write_layer_norm,
    nn.RMSNorm: write_rms_norm,
    nn.GELU: write_gelu,
    SwiGLU: write_swiglu,
    nn.SiLU: lambda graph, module, x: x * x.sigmoid(),
    nn.ReLU: lambda graph, module, x: x.relu(),
    nn.Tanh: lambda graph, module, x: x.tanh(),
    nn.Sequential: write_sequence,
    nn.Dropout: keep,
    Dropout: keep,
    nn.Identity: keep,
}


def write_module(graph: Graph, module: nn.Module, x: Value) -> Value:
    write = MODULES.get(type(module))
    if write is None:
        raise refuse(module, "a layer")
    return write(graph, module, x)


# --- embeddings -------------------------------------------------------------------------------------------------


def write_tokens(graph: Graph, embed: TokenEmbedding, x: Value) -> Value:
    vectors = graph.add("Gather", graph.weight(embed.weight), x)
    return vectors if embed.scale == 1 else vectors * embed.scale


def write_segments(graph: Graph, embed: SegmentEmbedding, x: Value) -> Value:
    """A text by itself: all of segment 0."""
    return write_tokens(graph, embed.tokens, x) + graph.weight(embed.weight[0])


def write_patches(graph: Graph, embed: PatchEmbedding, image: Value) -> Value:
    """A convolution whose steps are as long as its window is what a product of squares is."""
    side, product = embed.side, embed.product
    kernel = product.weight.view(product.out_features, -1, side, side)
    filled = fill_up(graph, image, side)
    squares = graph.add(
        "Conv", filled, graph.weight(kernel), graph.weight(product.bias), strides=[side, side], kernel_shape=[side] * 2
    )
    across = squares.length(3).squeeze(0)
    vectors = squares.reshape(0, product.out_features, -1).transpose(0, 2, 1)
    number, size = graph.arange(vectors.length(1)), product.out_features
    rows, columns = number / across, graph.add("Mod", number, across)  # of whole numbers: rounded down
    places = [
        write_sinusoids(graph, place, rate, features)
        for place, rate, features in ((rows, embed.down, size - size // 2), (columns, embed.right, size // 2))
    ]
    return vectors + graph.concat(*places)


def fill_up(graph: Graph, image: Value, side: int) -> Value:
    """With zeros to whole squares."""
    step = graph.integers((side,))
    rest = [graph.add("Mod", step - graph.add("Mod", image.length(axis), step), step) for axis in (2, 3)]
    nothing = graph.integers((0,))
    return graph.add("Pad", image, graph.concat(*[nothing] * 6, *rest, axis=0))


def write_sinusoids(graph: Graph, positions: Value, rate: Tensor, size: int) -> Value:
    """Sines and cosines of positions (…) of whole numbers: (…, size)."""
    angle = positions.cast(TensorProto.FLOAT).unsqueeze(-1) * graph.weight(rate)
    waves = [graph.add("Sin", angle), graph.add("Cos", angle)]
    pairs = graph.concat(*[wave.unsqueeze(-1) for wave in waves])
    # Whatever stands in front, the last two axes become one.
    front = graph.add("Shape", positions)
    flat = graph.add("Reshape", pairs, graph.concat(front, graph.integers((-1,)), axis=0))
    return flat.slice(-1, 0, size)


def write_spelled(graph: Graph, embed: CharacterWordEmbedding, x: Value) -> Value:
    word, letters = x.slice(-1, 0, 1).squeeze(-1), x.slice(-1, 1)
    flat = graph.add("Reshape", letters, graph.concat(graph.integers((-1,)), letters.length(2), axis=0))
    write = LETTERS.get(type(embed.letters))
    if write is None:
        raise refuse(embed.letters, "the spelling")
    spelled = write(graph, embed.letters, flat)
    front = graph.add("Shape", word)
    spelled = graph.add("Reshape", spelled, graph.concat(front, graph.integers((-1,)), axis=0))
    return write_linear(graph, embed.join, graph.concat(write_tokens(graph, embed.words, word), spelled))


def write_letter_windows(graph: Graph, letters: CharacterCNN, x: Value) -> Value:
    there = graph.add("Greater", x, graph.integer(0))
    vectors = write_tokens(graph, letters.embed, x) * there.cast(TensorProto.FLOAT).unsqueeze(-1)
    edge = graph.fill(0.0, vectors.length(0), 1, letters.embed.weight.shape[1])
    wide, length = graph.concat(edge, vectors, edge, axis=1), vectors.length(1)
    windows = [wide.slice(1, start, length + graph.integers((start,))) for start in range(3)]
    slid = write_linear(graph, letters.slide, graph.concat(*windows))
    least = graph.where(there.unsqueeze(-1), slid, torch.finfo(torch.float32).min)
    largest = graph.add("ReduceMax", least, axes=[1], keepdims=0)
    there_any = graph.add("ReduceMax", there.cast(TensorProto.FLOAT), axes=[1], keepdims=1)
    return largest * there_any


def write_letter_recurrence(graph: Graph, letters: CharacterRNN, x: Value) -> Value:
    from .layers import write_layer  # which are made of what stands here
    from .pools import pool_ends
    from .state import Reading

    lengths = graph.add("Greater", x, graph.integer(0)).cast(TensorProto.INT64).sum(1)
    reading = Reading.of(graph, lengths, x.length(1))
    values, _ = write_layer(graph, letters.read, write_tokens(graph, letters.embed, x), None, reading)
    return pool_ends(graph, values, reading)


def write_lexicon(graph: Graph, embed: LexiconEmbedding, x: Value) -> Value:
    word = x.slice(-1, 0, 1).squeeze(-1) if embed.inputs().letters else x
    return graph.concat(write_embedding(graph, embed.tokens, x), graph.add("Gather", graph.weight(embed.table), word))


LETTERS: dict[type[nn.Module], WriteModule] = {
    CharacterCNN: write_letter_windows,
    CharacterRNN: write_letter_recurrence,
}


def write_plain_table(graph: Graph, embed: nn.Embedding, x: Value) -> Value:
    return graph.add("Gather", graph.weight(embed.weight), x)


EMBEDDINGS: dict[type[nn.Module], WriteModule] = {
    TokenEmbedding: write_tokens,
    SegmentEmbedding: write_segments,
    NoteEmbedding: lambda graph, embed, x: write_linear(graph, embed.product, x),
    NumberEmbedding: lambda graph, embed, x: write_linear(graph, embed.product, x),
    PatchEmbedding: write_patches,
    CharacterWordEmbedding: write_spelled,
    LexiconEmbedding: write_lexicon,
    SpelledVocabulary: lambda graph, embed, x: graph.add("Gather", graph.weight(embed.table()), x),
    nn.Embedding: write_plain_table,
    nn.Identity: keep,
}


def write_embedding(graph: Graph, embed: nn.Module, x: Value) -> Value:
    write = EMBEDDINGS.get(type(embed))
    if write is None:
        raise refuse(embed, "the first layer")
    return write(graph, embed, x)


# --- heads ------------------------------------------------------------------------------------------------------

Outputs = dict[str, tuple[Value, tuple[int, ...]]]  # by name, each with the sizes of its last axes


def write_normal(graph: Graph, readout: Readout, y: Value) -> Outputs:
    [channels] = readout.shape
    mean, spread = y.split(channels, channels)
    return {"mean": (mean, (channels,)), "spread": (spread.softplus() + 1e-4, (channels,))}


def write_quantiles(graph: Graph, readout: Readout, y: Value) -> Outputs:
    quantiles, count = y.reshape(0, *readout.shape), graph.integers((readout.shape[-1],))
    increasing, _ = graph.add_many("TopK", 2, quantiles, count, largest=0, sorted=1)
    return {"quantiles": (increasing, readout.shape)}


FORMS: dict[str, Callable[[Graph, Readout, Value], Outputs]] = {
    "logits": lambda graph, readout, y: {"logits": (y, readout.shape)},
    "values": lambda graph, readout, y: {"values": (y.reshape(0, *readout.shape), readout.shape)},
    "normal": write_normal,
    "quantiles": write_quantiles,
}


def write_head(graph: Graph, head: Head, x: Value) -> Outputs:
    readout = head.readout()
    if readout is None:
        raise refuse(head, "the head")
    for module in readout.hidden:
        x = write_module(graph, module, x)
    y = x @ graph.transpose(readout.weight)
    return FORMS[readout.form](graph, readout, y if readout.bias is None else y + graph.weight(readout.bias))
