"""Whole models from the settings of a recipe; each side is built by its own settings."""

from collections.abc import Callable

from torch import nn

from ..config.model import Model
from ..data.vocabulary import NEVER_WRITTEN
from ..layers.base import Encoder, Stack, flatten_pool
from ..layers.cells import MakeCell
from ..layers.embeddings import TokenEmbedding
from ..layers.heads import Categorical, Head, MLPHead
from ..layers.sampled_softmax import SampledSoftmax
from ..models import Generator, Labeler, Source

LARGE = 1 << 13  # symbols from which on the loss is taken in pieces
LOGITS = 1 << 25  # numbers in such a piece


def build_categorical(inputs: int, symbols: int, smoothing: float) -> Categorical:
    """The next of the `symbols` of a vocabulary; where there are many, their logits are never held all at once."""
    chunk = LOGITS // symbols if symbols > LARGE else 0
    return Categorical(inputs, symbols, chunk, smoothing, impossible=NEVER_WRITTEN)


def build_seq2seq(
    model: Model, symbols: int, first: nn.Module, smoothing: float = 0.0, own: MakeCell | None = None
) -> Generator:
    """Writes `symbols` about whatever the `first` layer makes vectors of; with a cell of one's `own` if given."""
    reads, writes = model.side("encoder"), model.side("decoder")
    source = Source(first, reads.build_encoder(model.embedding, own=own))
    decoder = writes.build_decoder(model.embedding, reads.width, source.encoder.layer.final_state_sizes, own)
    embed = TokenEmbedding(symbols, model.embedding, writes.dropout)
    head = build_categorical(writes.width, symbols, smoothing)
    if model.tied:
        head.project.weight = embed.weight
    return Generator(embed, decoder, head, source, writes.dropout)


def build_generator(
    model: Model, embed: nn.Module, make: Callable[[int], Head], own: MakeCell | None = None
) -> Generator:
    """Writes about nothing, with the head that `make` gives for so many features."""
    writes = model.side("decoder")
    return Generator(embed, writes.build_decoder(model.embedding, own=own), make(writes.width), dropout=writes.dropout)


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
    reader = reads.build_encoder(inputs or model.embedding, pool=model.pool, own=own)
    return Labeler(embed, reader, build_head(model, reads.width, make), each, reads.dropout)


def build_forecaster(
    model: Model, inputs: int, steps: int, make: Callable[[int], Head], own: MakeCell | None = None
) -> Labeler:
    """Answers once a window of `steps` elements, from where its reading ends; if linear, from all of it at once."""
    reads = model.side("encoder")
    if reads.kind == "linear":
        reader, features = Encoder(Stack(), flatten_pool), steps * inputs
    else:
        reader = reads.build_encoder(inputs, ahead=False, pool=model.pool or "last", own=own)
        features = reads.width
    head = build_head(model, features, make)
    return Labeler(nn.Identity(), reader, head, per_element=False, dropout=reads.dropout)


def build_head(model: Model, features: int, make: Callable[[int], Head]) -> Head:
    """The head that `make` gives, behind a hidden layer if the settings have one."""
    if not model.hidden:
        return make(features)
    return MLPHead(features, model.hidden, make(model.hidden), model.side("encoder").dropout)
