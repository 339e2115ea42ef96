"""From a recipe's settings to a model: the only place where names become classes."""

from collections.abc import Callable
from functools import partial

from torch import nn
from torch.nn.utils.parametrizations import orthogonal, spectral_norm

from ..config.recipe import Body, Model
from ..data.vocabulary import NEVER_WRITTEN
from ..layers.attention import SCORES, Attention, Pooling
from ..layers.attention_decoders import Luong, bahdanau_decoder, luong_decoder
from ..layers.base import (
    Encoder,
    Layer,
    Pool,
    Stack,
    flatten_pool,
    last_bidirectional_pool,
    last_pool,
    max_pool,
    mean_pool,
)
from ..layers.cells import (
    Cell,
    CoupledLSTMCell,
    DecayGRUCell,
    GRUCell,
    LSTMCell,
    MakeCell,
    MinGRUCell,
    MinLSTMCell,
    NormedGRUCell,
    NormedLSTMCell,
    PeepholeLSTMCell,
    ProjectedLSTMCell,
    ResetBeforeGRUCell,
    RNNCell,
    Zoneout,
    constrain_weights,
    drop_weights,
    initialize,
)
from ..layers.convolution import convolution
from ..layers.embeddings import TokenEmbedding
from ..layers.heads import Categorical, Head, MLPHead
from ..layers.recurrent import FinalStateSizes, recurrent_decoder, recurrent_encoder, stack_levels
from ..layers.sampled_softmax import SampledSoftmax
from ..layers.transformer import transformer
from ..models import Generator, Labeler, Source

LARGE = 1 << 13  # symbols from which on the loss is taken in pieces
LOGITS = 1 << 25  # numbers in such a piece


def select_cell(body: Body) -> MakeCell:
    """The equations that the settings name, before anything is done to their weights."""
    bias = body.bias
    match body.kind:
        case "rnn" | "orthogonal":
            return partial(RNNCell, activation=body.activation or "tanh", bias=bias)
        case "lstm" if body.layer_norm:
            return partial(NormedLSTMCell, bias=bias)
        case "lstm" if body.memory_size:
            return partial(ProjectedLSTMCell, memory=body.memory_size, bias=bias)
        case "lstm":
            return partial(LSTMCell, candidate=body.candidate_activation, bias=bias)
        case "peephole":
            late = body.peephole_output == "new"
            full = body.peephole == "full"
            return partial(PeepholeLSTMCell, full=full, sees=body.peephole_gates, late=late, bias=bias)
        case "coupled":
            return partial(CoupledLSTMCell, bias=bias)
        case "gru" if body.layer_norm:
            return partial(NormedGRUCell, bias=bias)
        case "gru":
            return partial(GRUCell if body.reset_gate == "after" else ResetBeforeGRUCell, bias=bias)
        case "gru-d":
            return partial(DecayGRUCell, bias=bias)
        case "mingru":
            return partial(MinGRUCell, bias=bias)
        case "minlstm":
            return partial(MinLSTMCell, bias=bias)
    raise AssertionError(f"no cell is called {body.kind}")


def build_cell(body: Body, own: MakeCell | None) -> MakeCell:
    """The cell with its weights started, held and dropped out as the settings say; a person's own as it is."""
    if own is not None:
        return own
    make = select_cell(body)
    recurrence = "orthogonal" if body.kind == "orthogonal" else body.weight_constraint

    def prepared(inputs: int, size: int) -> Cell:
        made = initialize(make(inputs, size), body.init, body.forget_bias, body.init_gain)
        if recurrence != "none":
            made = constrain_weights(made, orthogonal if recurrence == "orthogonal" else spectral_norm)
        if body.recurrent_weight_dropout:
            made = drop_weights(made, body.recurrent_weight_dropout)
        return Zoneout(made, body.zoneout) if body.zoneout else made

    return prepared


def build_encoder(body: Body, inputs: int, own: MakeCell | None = None, pool: str = "") -> Encoder:
    if body.kind == "transformer":
        return Encoder(
            build_transformer(body, inputs, causal=not body.bidirectional), build_pooling(pool or "mean", body)
        )
    if body.kind == "gru-d":
        return Encoder(build_gru_d(body, inputs, own), build_pooling(pool or "last", body))
    if body.kind in ("convolution", "linear"):
        return Encoder(
            build_convolution(body, inputs, causal=not body.bidirectional), build_pooling(pool or "mean", body)
        )
    merge = body.merge if body.bidirectional else "none"
    layer = recurrent_encoder(
        build_cell(body, own),
        inputs,
        body.sizes,
        merge=merge,
        initial_state=body.initial_state,
        dropout=body.dropout,
        variational_dropout=body.variational_dropout,
    )
    arrives = "last" if merge in ("concatenate", "none") else "mean"
    return Encoder(layer, build_pooling(pool or arrives, body))


def build_gru_d(body: Body, inputs: int, own: MakeCell | None) -> Layer:
    """What was missing is a matter of the lowest level; those above it are plain GRUs, which read states."""
    sizes = body.sizes
    lowest = recurrent_encoder(build_cell(body, own), inputs, sizes[:1], merge="none", initial_state=body.initial_state)
    if len(sizes) == 1:
        return lowest
    plain = build_cell(body.model_copy(update={"kind": "gru"}), own)
    above = recurrent_encoder(
        plain,
        sizes[0],
        sizes[1:],
        merge="none",
        initial_state=body.initial_state,
        dropout=body.dropout,
        variational_dropout=body.variational_dropout,
    )
    return stack_levels([lowest, above], body.dropout, body.variational_dropout)


def build_pooling(name: str, body: Body) -> Pool:
    """What sums up a sequence."""
    match name:
        case "last":  # of what reads both ways and keeps them apart, the last of either
            recurrent = body.kind not in ("transformer", "convolution", "linear")
            return (
                last_bidirectional_pool
                if recurrent and body.bidirectional and body.merge == "concatenate"
                else last_pool
            )
        case "attention":
            return Pooling(body.width, queries=4)
    return max_pool if name == "max" else mean_pool


def build_decoder(
    body: Body, model: Model, inputs: int, memory: int = 0, hands: FinalStateSizes = (), own: MakeCell | None = None
) -> Layer:
    if body.kind == "transformer":
        return build_transformer(body, inputs, causal=True, memory=memory)
    if body.kind in ("convolution", "linear"):
        layer = build_convolution(body, inputs, causal=True)
        return Stack(layer, Luong(body.width, memory, build_attention(model, body.width, memory))) if memory else layer
    make, sizes = build_cell(body, own), body.sizes
    if not memory or model.attention == "none":
        plain = recurrent_decoder
        return plain(
            make,
            inputs,
            sizes,
            memory,
            hands,
            initial_state=body.initial_state,
            dropout=body.dropout,
            variational_dropout=body.variational_dropout,
        )
    looks, size = (bahdanau_decoder, sizes[0]) if model.attention_style == "bahdanau" else (luong_decoder, sizes[-1])
    score = build_attention(model, size, memory)
    return looks(
        make, inputs, sizes, memory, score, hands, dropout=body.dropout, variational_dropout=body.variational_dropout
    )


def build_attention(model: Model, query: int, memory: int) -> Attention:
    return SCORES[model.attention](query, memory, model.hard_attention)


def build_convolution(body: Body, inputs: int, causal: bool) -> Layer:
    return convolution(
        inputs,
        body.width,
        body.depth,
        body.window or 5,
        causal=causal,
        dropout=body.dropout,
        act=body.kind == "convolution",
    )


def build_transformer(body: Body, inputs: int, causal: bool, memory: int = 0) -> Layer:
    return transformer(
        inputs,
        body.width,
        body.depth,
        body.heads,
        causal=causal,
        memory=memory,
        feed_forward=body.feed_forward,
        norm=body.norm,
        norm_type=body.norm_type,
        activation=body.activation or "gelu",
        positions=body.positions,
        max_positions=body.max_positions,
        window=body.window,
        dropout=body.dropout,
        attention_dropout=body.attention_dropout,
        bias=body.bias,
    )


def build_categorical(inputs: int, symbols: int, smoothing: float) -> Categorical:
    """The next of the `symbols` of a vocabulary; where there are many, their logits are never held all at once."""
    chunk = LOGITS // symbols if symbols > LARGE else 0
    return Categorical(inputs, symbols, chunk, smoothing, impossible=NEVER_WRITTEN)


def build_seq2seq(
    model: Model, symbols: int, first: nn.Module, smoothing: float = 0.0, own: MakeCell | None = None
) -> Generator:
    """Writes `symbols` about whatever the `first` layer makes vectors of."""
    reads, writes = model.side("encoder"), model.side("decoder")
    source = Source(first, build_encoder(reads, model.embedding, own))
    layer = build_decoder(writes, model, model.embedding, reads.width, source.encoder.layer.final_state_sizes, own)
    embed, head = (
        TokenEmbedding(symbols, model.embedding, writes.dropout),
        build_categorical(writes.width, symbols, smoothing),
    )
    if model.tied:
        head.project.weight = embed.weight
    return Generator(embed, layer, head, source, writes.dropout)


def build_generator(
    model: Model, embed: nn.Module, make: Callable[[int], Head], own: MakeCell | None = None
) -> Generator:
    """Writes about nothing, with the head that `make` gives for so many features."""
    writes = model.side("decoder")
    layer = build_decoder(writes, model, model.embedding, own=own)
    return Generator(embed, layer, make(writes.width), dropout=writes.dropout)


def build_language_model(
    model: Model, symbols: int, smoothing: float = 0.0, own: MakeCell | None = None, sampled: int = 0
) -> Generator:
    """Writes `symbols` about nothing; learns from so many draws of them, or from all."""
    embed = TokenEmbedding(symbols, model.embedding, model.side("decoder").dropout)

    def head(inputs: int) -> Head:
        made = build_categorical(inputs, symbols, smoothing)
        if model.tied:
            made.project.weight = embed.weight
        return SampledSoftmax(made, sampled) if sampled else made

    return build_generator(model, embed, head, own)


def build_labeler(
    model: Model,
    embed: nn.Module,
    make: Callable[[int], Head],
    each: bool,
    own: MakeCell | None = None,
    inputs: int = 0,
) -> Labeler:
    """Answers once a sequence, or to `each` of its elements, with the head that `make` gives for so many features.

    `inputs` are the features that come out of the first layer, if they are not those of an embedding.
    """
    reads = model.side("encoder")
    reader = build_encoder(reads, inputs or model.embedding, own, model.pool)
    head = MLPHead(reads.width, model.hidden, make(model.hidden), reads.dropout) if model.hidden else make(reads.width)
    return Labeler(embed, reader, head, each, reads.dropout)


def build_forecaster(
    model: Model, inputs: int, steps: int, make: Callable[[int], Head], own: MakeCell | None = None
) -> Labeler:
    """Answers once a window of `steps` elements, from where its reading ends; if linear, from all of it at once."""
    reads = model.side("encoder")
    if reads.kind == "linear":
        reader, features = Encoder(Stack(), flatten_pool), steps * inputs
    else:
        reader, features = build_encoder(reads, inputs, own, model.pool or "last"), reads.width
    head = MLPHead(features, model.hidden, make(model.hidden), reads.dropout) if model.hidden else make(features)
    return Labeler(nn.Identity(), reader, head, per_element=False, dropout=reads.dropout)
