"""Whole models from the settings of a recipe; each side is built by its own settings."""

from collections.abc import Callable

from torch import nn

from ..config.model import Model
from ..layers.base import Encoder, Stack, flatten_pool
from ..layers.cells import MakeCell
from ..layers.heads import Head, MLPHead
from ..models import Generator, Labeler, Source


def build_seq2seq(
    model: Model,
    first: nn.Module,
    make_embed: Callable[[], nn.Module],
    make_head: Callable[[int], Head],
    own: MakeCell | None = None,
) -> Generator:
    """Writes about whatever the `first` layer makes vectors of; with a cell of one's `own` if given."""
    reads, writes = model.side("encoder"), model.side("decoder")
    source = Source(first, reads.build_encoder(model.embedding, own=own))
    decoder = writes.build_decoder(model.embedding, reads.width, source.encoder.layer.final_state_sizes, own)
    embed = make_embed()
    return Generator(embed, decoder, tie(model, embed, make_head(writes.width)), source, writes.dropout)


def build_generator(
    model: Model, embed: nn.Module, make_head: Callable[[int], Head], own: MakeCell | None = None
) -> Generator:
    """Writes about nothing, with the head that is made for so many features."""
    writes = model.side("decoder")
    decoder = writes.build_decoder(model.embedding, own=own)
    return Generator(embed, decoder, tie(model, embed, make_head(writes.width)), dropout=writes.dropout)


def tie(model: Model, embed: nn.Module, head: Head) -> Head:
    """The head, with the weights of the embedding if the settings say so."""
    if model.tied:
        head.tie(embed.get_parameter("weight"))
    return head


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
