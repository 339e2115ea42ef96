"""A whole decoder as one native call a step, against the spelled-out steps: the same likeliest tokens, whichever rows
go on from which."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqloom.layers.base import Encoder, mean_pool
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.fast.native import library
from seqloom.layers.heads import Categorical
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.state import SharedLeaf
from seqloom.layers.tap import recording
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.models import Generator, Source
from seqloom.search import BannedTokens, BeamOptions, beam, greedy
from seqloom.search.choosing import PlainRows, prepare_rows

from .zoo import CELLS, stirred

WORDS, SIZE = 70, 12
# What is known in one call; each says how it differs from the first.
SHAPES = {
    "post": {},
    "pre": {"norm": "pre"},
    "rezero": {"norm": "rezero"},
    "root mean square": {"norm": "pre", "norm_type": "rms", "activation": "swiglu", "bias": False},
    "learned": {"positions": "learned", "activation": "relu"},
    "rotary": {"positions": "rotary", "norm": "pre"},
    "no positions": {"positions": "none"},
    "window": {"window": 3},
    "more heads than look together": {"size": 36, "heads": 18},
}


def build(shape: dict, memory: bool = True, dtype: torch.dtype = torch.double) -> Generator:
    config = TransformerConfig(**{"size": SIZE, "depth": 2, "heads": 2, "norm": "post", **shape})
    size, source = config.size, None
    if memory:
        reader = transformer(size, replace(config, window=0), causal=False)
        source = Source(TokenEmbedding(WORDS, size), Encoder(reader, mean_pool))
    writer = transformer(size, config, causal=True, memory=size if memory else 0)
    head = Categorical(size, WORDS, impossible=[5, 6])
    return stirred(Generator(TokenEmbedding(WORDS, size), writer, head, source)).to(dtype).eval()


def build_recurrent(kind: str, dtype: torch.dtype = torch.double) -> Generator:
    """Levels of unequal widths."""
    body = recurrent_encoder(CELLS[kind], SIZE, [8, 10], merge="none")
    head = Categorical(10, WORDS, impossible=[5, 6])
    return stirred(Generator(TokenEmbedding(WORDS, SIZE), body, head)).to(dtype).eval()


def start(model: Generator, rows: int = 3) -> tuple[torch.Tensor, object]:
    """A state that has read sources and beginnings of unequal lengths; with a window, which is left to the plain steps
    where anything is padded, no beginnings."""
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])[:rows]
    source = (torch.randint(WORDS, (rows, 6)), mask) if model.source else ()
    with torch.no_grad():
        state = model.initial_state(rows, *source)
        if any(getattr(part, "window", 0) for part in model.decoder.modules()):
            return torch.randint(WORDS, (rows, 1)), state
        return model.prompt(torch.randint(WORDS, (rows, 6)), mask, state)


def both(model: Generator, last: torch.Tensor, state: object, width: int, wanted: int, banned: list[int]) -> tuple:
    with torch.no_grad():
        quick = prepare_rows(model.stepper(), last, state, width, wanted, banned)
    return quick, PlainRows(model.stepper(), last, state, wanted, banned)


@pytest.mark.parametrize("dtype", [torch.double, torch.float])
@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("name", [*SHAPES, "lstm", "gru"])
def test_a_decoder_in_one_call_is_the_decoder(name, memory, dtype, native):
    model = build(SHAPES[name], memory, dtype) if name in SHAPES else build_recurrent(name, dtype)
    last, state = start(model)
    quick, plain = both(model, last, state, 2, 4, [9, 60])
    assert not isinstance(quick, PlainRows)
    tokens = last[:, 0].numpy()
    # As a beam moves: each row becomes two, they go on crosswise within their sources, a source leaves; then for longer
    # than there was room at first.
    moves = [np.arange(3).repeat(2), *map(np.array, ([1, 0, 2, 2, 5, 4], [4, 4, 1, 0], [2, 0, 1, 3], [0, 3]))]
    for number, rows in enumerate([*moves, *[np.array([1, 0])] * 70]):
        found = quick.advance(tokens)
        with library.use_native(False):
            other = plain.advance(tokens)
        np.testing.assert_allclose(found[0], other[0], atol=1e-5 if dtype == torch.float else 1e-11)
        assert (found[1] == other[1]).all()
        assert not np.isin(found[1], [5, 6, 9, 60]).any()
        tokens = found[1][rows, np.arange(len(rows)) % 4]
        for search in (quick, plain):
            if number:
                search.select(rows)
            else:
                search.repeat(2)


@pytest.mark.parametrize("eight", [False, True], ids=["numbers", "bytes"])
@pytest.mark.parametrize("name", ["post", "rotary", "lstm", "gru"])
def test_searches_find_the_same_with_native_steps_and_without(name, eight, native):
    model = build(SHAPES[name]) if name in SHAPES else build_recurrent(name)
    if eight:
        model.quantize_weights()
    last, state = start(model)

    def search() -> list:
        rules = {"steps": 12, "end": 3, "constraints": [BannedTokens([8])]}
        one = greedy(model.stepper(), last, state, **rules)
        many = beam(model.stepper(), last, state, BeamOptions(beam_size=4, **rules))
        return [one, *many, *beam(model.stepper(), last, state, BeamOptions(beam_size=4, best=1, **rules))]

    found = search()
    with library.use_native(False):
        plain = search()
    assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in plain]
    for row, other in zip(found, plain, strict=True):
        np.testing.assert_allclose([one.score for one in row], [one.score for one in other], atol=1e-6)


@pytest.mark.parametrize("name", ["post", "pre", "rotary", "root mean square"])
def test_a_source_is_read_in_bytes_with_native_kernels_and_without(name, native):
    model = build(SHAPES[name])
    exact = memories_of(model)
    model.quantize_weights()
    found = memories_of(model)
    with library.use_native(False):
        plain = memories_of(model)
    for one, other, before in zip(found, plain, exact, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
        assert 1e-4 < (one - before).abs().max() < 0.3 * before.abs().max()


def memories_of(model: Generator) -> list[torch.Tensor]:
    """The keys and values of each layer that looks at a source."""
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    torch.manual_seed(1)
    with torch.no_grad():
        state = model.initial_state(3, torch.randint(WORDS, (3, 6)), mask)
    return [one.tensors[0][mask] for one in shared_in(state)]


def shared_in(state: object) -> list[SharedLeaf]:
    if isinstance(state, SharedLeaf):
        return [state]
    return [one for part in state for one in shared_in(part)] if isinstance(state, tuple) else []


@pytest.mark.parametrize("build", [lambda: build({}), lambda: build_recurrent("lstm")], ids=["transformer", "lstm"])
def test_rows_that_end_leave_the_others_as_they_are(build, native):
    model = build()
    last, state = start(model)
    whole = greedy(model.stepper(), last, state, steps=9, end=None)
    for end in {token for one in whole for token in one.tokens}:  # each ends a row somewhere, and others elsewhere
        found = greedy(model.stepper(), last, state, steps=9, end=end)
        for one, all_of_it in zip(found, whole, strict=True):
            ends = end in all_of_it.tokens
            assert one.tokens == (all_of_it.tokens[: all_of_it.tokens.index(end)] if ends else all_of_it.tokens)
            assert (one.finish, len(one.logs)) == ("end" if ends else "length", len(one.tokens) + ends)
            np.testing.assert_allclose(one.logs, all_of_it.logs[: len(one.logs)], atol=1e-11)


def test_what_is_changed_or_watched_is_seen(native):
    model = build({})
    last, state = start(model)

    def first() -> np.ndarray:
        quick, plain = both(model, last, state, 1, 3, [])
        found = quick.advance(last[:, 0].numpy())[0].copy()
        np.testing.assert_allclose(found, plain.advance(last[:, 0].numpy())[0], atol=1e-11)
        return found

    before = first()
    with torch.no_grad():
        model.head.project.bias.add_(torch.randn(WORDS).double())
    assert (first() != before).any()
    model.head = stirred(Categorical(SIZE, WORDS)).double()
    first()
    with recording(model) as tape:
        quick, _ = both(model, last, state, 1, 3, [])
        assert isinstance(quick, PlainRows)
        quick.advance(last[:, 0].numpy())
    assert tape


def test_learned_positions_end_with_the_sentence_of_the_layer(native):
    model = build({"positions": "learned", "max_positions": 9})
    last, state = start(model)
    for kind in (True, False):
        with library.use_native(kind), pytest.raises(ValueError, match="more than the 9 positions learned"):
            greedy(model.stepper(), last, state, steps=8, end=None)
