"""From a recipe's settings to a model: the only place where names become classes."""

from collections.abc import Callable
from functools import partial

from .layers.attending import bahdanau_decoder, luong_decoder
from .layers.base import Encoder, Layer, ends, final, mean
from .layers.cells import CoupledLSTMCell, GRUCell, LSTMCell, MakeCell, PeepholeLSTMCell, ResetBeforeGRUCell, RNNCell
from .layers.embeddings import Tokens
from .layers.heads import Categorical
from .layers.recurrent import Hands, recurrent_decoder, recurrent_encoder
from .layers.transformer import transformer
from .models import Generator, Source
from .recipe import Body, Model

DECODERS: dict[str, Callable[[MakeCell, int, int, int, int, Hands, float], Layer]] = {
    "none": recurrent_decoder,
    "dot": luong_decoder,
    "additive": bahdanau_decoder,
}


def cell(body: Body) -> MakeCell:
    cells: dict[str, MakeCell] = {
        "rnn": RNNCell,
        "lstm": LSTMCell,
        "peephole": partial(PeepholeLSTMCell, full=body.peephole == "full"),
        "coupled": CoupledLSTMCell,
        "gru": GRUCell if body.reset == "after" else ResetBeforeGRUCell,
    }
    return cells[body.kind]


def encoder(body: Body, inputs: int) -> Encoder:
    if body.kind == "transformer":
        return Encoder(attentive(body, inputs, causal=False), mean)
    layer = recurrent_encoder(cell(body), inputs, body.size, body.depth, body.both_ways, body.dropout)
    return Encoder(layer, ends if body.both_ways else final)


def decoder(body: Body, attention: str, inputs: int, memory: int = 0, hands: Hands = ()) -> Layer:
    if body.kind == "transformer":
        return attentive(body, inputs, causal=True, memory=memory)
    return DECODERS[attention](cell(body), inputs, body.size, body.depth, memory, hands, body.dropout)


def attentive(body: Body, inputs: int, causal: bool, memory: int = 0) -> Layer:
    return transformer(
        inputs,
        body.size,
        body.depth,
        body.heads,
        causal=causal,
        memory=memory,
        feed_forward=body.feed_forward,
        norm=body.norm,
        dropout=body.dropout,
    )


def generator(model: Model, symbols: int, about: int, smoothing: float = 0.0) -> Generator:
    """Writes `symbols` about a sequence of `about` symbols."""
    reads, writes = model.side("encoder"), model.side("decoder")
    source = Source(Tokens(about, model.embedding, reads.dropout), encoder(reads, model.embedding))
    layer = decoder(writes, model.attention, model.embedding, reads.size, source.encoder.layer.hands)
    head = Categorical(writes.size, symbols, smoothing=smoothing)
    return Generator(Tokens(symbols, model.embedding, writes.dropout), layer, head, source)
