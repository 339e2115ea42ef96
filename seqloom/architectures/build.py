"""Whole models from the settings of a recipe; each side is built by its own settings."""

from collections.abc import Callable

import torch
from torch import nn

from ..config.model import Model
from ..errors import RecipeError
from ..layers.base import Encoder, Layer
from ..layers.cells import MakeCell
from ..layers.embeddings import find_token_table
from ..layers.fast.dropout import Dropout
from ..layers.heads import Head, MLPHead
from ..layers.lexicon import SkipConcatenation
from ..layers.mixing import MixedLayers
from ..layers.non_local import put_non_local
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
    encoder = put_non_local(reads.build_encoder(model.embedding, own=own), model.embedding, model.non_local)
    source = reads.drop_biases(Source(first, encoder))
    decoder = writes.build_decoder(model.embedding, reads.width, source.encoder.layer.final_state_sizes, own)
    embed = make_embed()
    if model.shared_embedding:
        source.embed = embed
    written = Generator(embed, decoder, tie(model, embed, make_head(writes.width)), dropout=writes.dropout)
    writes.drop_biases(written).source = source
    return written


def build_generator(
    model: Model, embed: nn.Module, make_head: Callable[[int], Head], own: MakeCell | None = None
) -> Generator:
    """Writes about nothing, with the head that is made for so many features."""
    writes = model.side("decoder")
    decoder = writes.build_decoder(model.embedding, own=own)
    head = tie(model, embed, make_head(writes.width))
    return writes.drop_biases(Generator(embed, decoder, head, dropout=writes.dropout))


def tie(model: Model, embed: nn.Module, head: Head) -> Head:
    """The head, with the weights of the embedding if the settings say so."""
    if model.tied:
        head.tie(find_token_table(embed))
    return head


def build_labeler(
    model: Model,
    embed: nn.Module,
    make: Callable[[int], Head],
    each: bool,
    own: MakeCell | None = None,
    inputs: int = 0,
    lexicon: int = 0,
) -> Labeler:
    """Answers once a sequence, or to `each` of its elements, with the head that `make` gives for so many features.

    `inputs` are the features that come out of the first layer, if they are not those of an embedding; behind them are
    those of a `lexicon`, which the head sees too.
    """
    reads = model.side("encoder")
    ahead = not model.causal
    features = (inputs or model.embedding) + lexicon
    reader = reads.build_encoder(features, ahead=ahead, pool=model.pool, queries=model.queries, own=own)
    if model.mix_layers:
        reader.layer = mix_layers(reader.layer, features)
    reader, dropout = put_non_local(reader, features, model.non_local), reads.dropout
    if lexicon:
        reader, dropout = Encoder(SkipConcatenation(reader.layer, lexicon, dropout), reader.pool), 0.0
    return reads.drop_biases(Labeler(embed, reader, build_head(model, reads.width + lexicon, make), each, dropout))


def mix_layers(layer: Layer, inputs: int) -> MixedLayers:
    """The layer with a mix over all that it is made of."""
    states = layer.read_states(torch.zeros(1, 1, inputs), torch.ones(1, 1, dtype=torch.bool))[1:]
    if len(states) < 2 or len({state.shape[-1] for state in states}) > 1:
        raise RecipeError("model.mix_layers mixes layers of the same size, but here there are not several of one size")
    return MixedLayers(layer, len(states))


def build_forecaster(
    model: Model, inputs: int, steps: int, make: Callable[[int], Head], own: MakeCell | None = None
) -> Labeler:
    """Answers once a window of `steps` elements, from where its reading ends; if linear, from all of it at once."""
    reads = model.side("encoder")
    reader = reads.build_encoder(inputs, ahead=False, pool=model.pool or "last", queries=model.queries, own=own)
    head = build_head(model, reads.width or steps * inputs, make)
    return reads.drop_biases(Labeler(nn.Identity(), reader, head, per_element=False, dropout=reads.dropout))


def build_head(model: Model, features: int, make: Callable[[int], Head]) -> Head:
    """The head that `make` gives, behind hidden layers if the settings have some."""
    size, dropout = model.hidden, model.side("encoder").dropout
    if not size:
        return make(features)
    bend = {"relu": nn.ReLU, "tanh": nn.Tanh}[model.hidden_activation]
    after: list[nn.Module] = [bend(), Dropout(dropout)]
    for _ in range(model.hidden_layers - 1):
        after += [nn.Linear(size, size), bend(), Dropout(dropout)]
    return MLPHead(features, size, make(size), after=after)
