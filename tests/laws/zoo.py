"""Every architecture the laws are tried on. A new one is tested by adding a line."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from seqloom.architectures.base import ATTENTIONS
from seqloom.layers.attention import AdditiveAttention, Attention, DotAttention, MultiHeadAttention, Pooling
from seqloom.layers.attention_decoders import Luong, bahdanau_decoder, luong_decoder
from seqloom.layers.base import (
    Encoder,
    Layer,
    Memory,
    Pointwise,
    Stack,
    last_bidirectional_pool,
    last_pool,
    max_pool,
    mean_pool,
)
from seqloom.layers.cells import CELLS, DecayGRUCell, ProjectedLSTMCell
from seqloom.layers.convolution import convolution
from seqloom.layers.heads import Categorical
from seqloom.layers.lexicon import SkipConcatenation
from seqloom.layers.local_attention import MonotonicAttention, PredictiveAttention
from seqloom.layers.non_local import put_non_local
from seqloom.layers.positions import LearnedPositions, NoRotation, Rotary, SinusoidalPositions
from seqloom.layers.recurrent import FinalStateSizes, recurrent_decoder, recurrent_encoder
from seqloom.layers.residual import RESIDUALS
from seqloom.layers.transformer import CausalAttention, CrossAttention, SelfAttention, TransformerConfig, transformer
from seqloom.models import Generator, Source

M = TypeVar("M", bound=nn.Module)
D, SIZE = 8, 12
NOTHING = (0, ())  # no memory: its size, and what it hands over
SOME = (SIZE, ((SIZE,),))  # a memory with one state, as a GRU hands it over

config = partial(TransformerConfig, SIZE, depth=2, heads=3)
TRANSFORMERS: dict[str, TransformerConfig] = {
    **{f"transformer-{norm}": config(norm=norm) for norm in RESIDUALS},
    "transformer-learned": config(positions="learned", max_positions=40),
    "transformer-rotary": config(positions="rotary"),
    "transformer-none": config(positions="none", activation="relu"),
    "transformer-window": config(window=3, positions="rotary"),
    "transformer-widths": config(heads=5, key_size=4, value_size=3, positions="rotary"),
    "transformer-unbiased": config(norm="post", activation="silu", bias=False),
    "transformer-normed-embedding": config(embedding_norm=True, positions="learned", max_positions=40),
    "transformer-rezero-shared": config(norm="rezero", rezero_shared=True),
    "transformer-hard": config(hard_attention=True, window=4),
    "transformer-swiglu": config(activation="swiglu", norm_type="rms", bias=False),
}
SIZES = [SIZE, SIZE]


def fields() -> Layer:
    """Values, what was observed and gaps, three of each: what a GRU-D reads."""
    return Pointwise(nn.Linear(D, 9))


ENCODERS: dict[str, Callable[[], Encoder]] = {
    **{f"{c}-one": lambda c=c: Encoder(recurrent_encoder(CELLS[c], D, SIZES, merge="none"), last_pool) for c in CELLS},
    **{
        f"{c}-both": lambda c=c: Encoder(recurrent_encoder(CELLS[c], D, SIZES), last_bidirectional_pool)
        for c in ("lstm", "gru", "gru-before")
    },
    **{
        f"merge-{merge}": lambda m=merge: Encoder(
            recurrent_encoder(CELLS["coupled"], D, [10, SIZE], merge=m), mean_pool
        )
        for merge in ("mean", "sum", "project")
    },
    "separate": lambda: Encoder(
        recurrent_encoder(CELLS["lstm"], D, [10, SIZE], merge="separate"), last_bidirectional_pool
    ),
    "gru-d-one": lambda: Encoder(Stack(fields(), recurrent_encoder(DecayGRUCell, 9, SIZES, merge="none")), last_pool),
    "learned-start": lambda: Encoder(
        recurrent_encoder(CELLS["lstm"], D, [6, SIZE], initial_state="learned"), last_bidirectional_pool
    ),
    "non-local": lambda: put_non_local(
        Encoder(recurrent_encoder(CELLS["gru"], D, [SIZE]), last_bidirectional_pool), D, 2
    ),
    "handed-on": lambda: Encoder(SkipConcatenation(recurrent_encoder(CELLS["gru"], D, [SIZE - 4]), 4), mean_pool),
    "pooled": lambda: Encoder(recurrent_encoder(CELLS["gru"], D, [SIZE]), Pooling(SIZE, 3)),
    "convolution-both": lambda: Encoder(convolution(D, SIZE, 2, 3, causal=False), max_pool),
    **{
        name: lambda config=config: Encoder(transformer(D, config, causal=False), mean_pool)
        for name, config in TRANSFORMERS.items()
    },
}
PLAIN: dict[str, Callable[..., Layer]] = {  # may go without a memory
    **{c: lambda size, hands, c=c: recurrent_decoder(CELLS[c], D, SIZES, size, hands) for c in CELLS},
    "gru-d": lambda size, hands: Stack(fields(), recurrent_decoder(DecayGRUCell, 9, SIZES, size, hands)),
    "widths": lambda size, hands: recurrent_decoder(
        CELLS["lstm"], D, [6, 10, SIZE], size, hands, initial_state="learned"
    ),
    "projected": lambda size, hands: recurrent_decoder(partial(ProjectedLSTMCell, memory=15), D, SIZES, size, hands),
    "convolution": lambda size, _: convolution(D, SIZE, 2, 3, causal=True),
    "linear": lambda size, _: convolution(D, SIZE, 1, 4, causal=True, act=False),
    **{
        name: lambda size, _, config=config: transformer(D, config, causal=True, memory=size)
        for name, config in TRANSFORMERS.items()
    },
}
LOCAL: dict[str, Callable[[Attention], Attention]] = {
    "monotonic": lambda score: MonotonicAttention(score, 1),
    "predictive": lambda score: PredictiveAttention(score, 2, SIZE),
}
DECODERS: dict[str, Callable[..., Layer]] = {
    **{name: make for name, make in PLAIN.items() if name not in ("convolution", "linear")},  # they look at no memory
    **{
        f"{c}-luong-{s}": lambda size, hands, c=c, s=s: luong_decoder(
            CELLS[c], D, SIZES, size, ATTENTIONS[s](SIZE, size), hands
        )
        for c, s in (("lstm", "dot"), ("gru", "additive"), ("gru", "projected"))
    },
    **{
        f"{c}-bahdanau-{s}": lambda size, hands, c=c, s=s: bahdanau_decoder(
            CELLS[c], D, SIZES, size, ATTENTIONS[s](SIZE, size), hands
        )
        for c, s in (("lstm", "additive"), ("peephole", "scaled"))
    },
    "convolution-luong": lambda size, _: Stack(
        convolution(D, SIZE, 2, 3, causal=True), Luong(SIZE, size, AdditiveAttention(SIZE, size))
    ),
    **{
        f"local-{name}-luong": lambda size, hands, make=make: luong_decoder(
            CELLS["gru"], D, SIZES, size, make(DotAttention(SIZE, size)), hands
        )
        for name, make in LOCAL.items()
    },
    **{
        f"local-{name}-bahdanau": lambda size, hands, make=make: bahdanau_decoder(
            CELLS["lstm"], D, SIZES, size, make(AdditiveAttention(SIZE, size)), hands
        )
        for name, make in LOCAL.items()
    },
    "hard": lambda size, hands: bahdanau_decoder(CELLS["rnn"], D, [SIZE], size, DotAttention(SIZE, size, True), hands),
}
PIECES: dict[str, Callable[[], Layer]] = {  # what the others are made of, from SIZE to SIZE
    "each": lambda: Pointwise(nn.Linear(SIZE, SIZE)),
    "waves": lambda: SinusoidalPositions(SIZE),
    "learned": lambda: LearnedPositions(SIZE, 40),
    "learned-offset": lambda: LearnedPositions(SIZE, 40, offset=3),
    "self": lambda: SelfAttention(SIZE, MultiHeadAttention(SIZE, 3), NoRotation()),
    "self-wide": lambda: SelfAttention(SIZE, MultiHeadAttention(SIZE, 3, width=6, values=5), Rotary(6), window=2),
    "causal": lambda: CausalAttention(SIZE, MultiHeadAttention(SIZE, 3), NoRotation()),
    "causal-wide": lambda: CausalAttention(
        SIZE, MultiHeadAttention(SIZE, 2, width=SIZE, values=3), Rotary(SIZE), window=4
    ),
    "cross": lambda: CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, 3)),
    "convolution": lambda: convolution(SIZE, SIZE, 2, 3, causal=True),
    "around": lambda: convolution(SIZE, SIZE, 2, 3, causal=False),
    "luong": lambda: Luong(SIZE, SIZE, DotAttention(SIZE, SIZE)),
    **{n: lambda n=n: RESIDUALS[n](SIZE, Pointwise(nn.Linear(SIZE, SIZE))) for n in RESIDUALS},
}
MASKS = {
    "right": torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]).bool(),
    "left": torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]]).bool(),
    "between": torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 1]]).bool(),
    "empty": torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]]).bool(),
}


def stirred(net: M) -> M:
    """With no parameter at a special value: a norm's bias of zero or a ReZero share of zero would hide mistakes."""
    for parameter in net.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return net


def encoder(name: str) -> Encoder:
    return stirred(ENCODERS[name]())


def decoder(name: str, size: int, hands: FinalStateSizes) -> Layer:
    return stirred({**PLAIN, **DECODERS}[name](size, hands))


def memory(batch: int = 3) -> Memory:
    """From a both-ways GRU, so that some decoders take its state and others bridge it."""
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]).bool()[:batch]
    found: Memory = Encoder(recurrent_encoder(CELLS["gru"], D, [SIZE]), last_bidirectional_pool)(
        torch.randn(batch, 5, D), mask
    )
    return found


def writer(name: str, about: str, vocabulary: int = 12) -> Generator:
    source = Source(nn.Embedding(vocabulary, D), ENCODERS[about]())
    net = DECODERS[name](SIZE, source.encoder.layer.final_state_sizes)
    return stirred(Generator(nn.Embedding(vocabulary, D), net, Categorical(SIZE, vocabulary), source))


def talker(name: str, vocabulary: int = 12) -> Generator:
    """Writes about nothing."""
    return stirred(Generator(nn.Embedding(vocabulary, D), PLAIN[name](*NOTHING), Categorical(SIZE, vocabulary)))


def poisoned(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(~mask[..., None], torch.nan)
