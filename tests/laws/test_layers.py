"""Laws every layer must keep: what is read, in which pieces, beside which padding, watched or not."""

import itertools
from contextlib import suppress
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.certify.certificate import EXACT, follows_its_equations, has_equal_paths, use_reproducible_float64
from seqloom.certify.check_cells import SUBJECTS as CELL_SUBJECTS
from seqloom.certify.check_cells import make_cell_case
from seqloom.certify.laws import READING, NotClaimed, Subject
from seqloom.layers import GRU, LSTM, RNN
from seqloom.layers.attention import MultiHeadAttention
from seqloom.layers.base import Encoder, Stack, mean_pool
from seqloom.layers.cache import Cache
from seqloom.layers.cells import CELLS
from seqloom.layers.padding import full_mask, lengths_to_mask
from seqloom.layers.positions import NoRotation, SinusoidalPositions
from seqloom.layers.recurrent import recurrent_decoder, recurrent_encoder
from seqloom.layers.residual import ReZero
from seqloom.layers.state import SharedLeaf, detach, repeat, select
from seqloom.layers.tap import recording
from seqloom.layers.transformer import CausalAttention, CrossAttention, SelfAttention

from .zoo import (
    DECODERS,
    ENCODERS,
    MASKS,
    PIECES,
    PLAIN,
    SIZE,
    SOME,
    D,
    decoder,
    encoder,
    memory,
    poisoned,
    stirred,
)

NEAR = 3e-5  # what two orders of summation in float32 may differ by
SUBJECTS = {
    **{name: Subject(name, partial(make, *SOME), D, memory) for name, make in {**PLAIN, **DECODERS}.items()},
    **{f"piece-{name}": Subject(name, make, SIZE, memory) for name, make in PIECES.items()},
}
each_decoder = pytest.mark.parametrize("name", DECODERS)
each_encoder = pytest.mark.parametrize("name", ENCODERS)
each_padding = pytest.mark.parametrize("side", MASKS)
close = torch.testing.assert_close


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def read(net, pieces, state, masks=None):
    """Piece after piece: all outputs, and the last state."""
    outputs = []
    for number, piece in enumerate(pieces):
        y, state = net(piece, state, masks[number] if masks else None)
        outputs.append(y)
    return torch.cat(outputs, 1), state


@pytest.mark.parametrize("law", READING, ids=lambda law: law.name)
@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("gradient", [True, False])
def test_the_law_holds(name, law, gradient):
    """In float32, on the way that training takes and on the one that answering takes; `seqloom check` tries float64."""
    with torch.set_grad_enabled(gradient), suppress(NotClaimed):
        for words, measure in law.cases(SUBJECTS[name]):
            assert measure() <= NEAR, words


@each_padding
@each_encoder
def test_padding_changes_nothing_in_encoders(name, side):
    net, mask, x = encoder(name).eval(), MASKS[side], torch.randn(3, 6, D)
    found = net(poisoned(x, mask), mask)
    assert not found.values[~mask].any()
    for row in range(3):
        if mask[row].any():
            alone = net(x[row : row + 1, mask[row]])
            close(found.values[row, mask[row]], alone.values[0])
            close(found.summary[row], alone.summary[0])
            close(
                [e[row] for level in found.final_states for e in level],
                [e[0] for level in alone.final_states for e in level],
            )
    (found.values.sum() + found.summary.sum()).backward()
    assert all(p.grad.isfinite().all() for p in net.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", ["transformer-pre", "gru-luong-additive", "lstm-bahdanau-additive"])
def test_an_empty_source_shows_nothing(name):
    net, x = decoder(name, *SOME), torch.randn(3, 4, D)
    seen = memory()._replace(mask=MASKS["empty"][:, :5])
    other = seen._replace(values=seen.values + ~seen.mask[..., None])
    y, _ = net(x, net.initial_state(3, seen))
    with recording(net):
        close(net(x, net.initial_state(3, other))[0], y)
    close(net(x, net.initial_state(3, other))[0], y)
    y.sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters() if p.grad is not None)


@each_decoder
@pytest.mark.parametrize("gradient", [True, False])
def test_a_snapshot_can_be_continued_twice(name, gradient):
    net, x, y, z = decoder(name, *SOME).eval(), torch.randn(3, 4, D), torch.randn(3, 2, D), torch.randn(3, 2, D)
    with torch.set_grad_enabled(gradient):
        _, snapshot = read(net, x.split(1, 1), net.initial_state(3, memory()))
        twin = detach(snapshot)
        first, after = read(net, y.split(1, 1), snapshot)
        other, _ = read(net, z.split(1, 1), snapshot)
        third, _ = read(net, z.split(1, 1), twin)
        go_on, _ = net(z, after)
        again, _ = read(net, y.split(1, 1), snapshot)
        close(torch.cat([again, go_on], 1), net(torch.cat([y, z], 1), snapshot)[0])
        close((again, other), (first, third))
        close(other, net(z, snapshot)[0])


@torch.no_grad()
def test_the_newest_cache_grows_in_place_and_an_older_one_is_copied():
    cache = Cache.of(torch.zeros(1, 0, 2), torch.zeros(1, 0, dtype=torch.bool))
    old = cache.append(torch.randn(1, 3, 2), None)
    new = old.append(torch.randn(1, 1, 2), None)
    branch = old.append(torch.randn(1, 1, 2), None)
    assert new.store is old.store and branch.store is not old.store


def test_beams_of_one_source_share_what_belongs_to_it():
    shared = SharedLeaf((torch.randn(2, 5), torch.ones(2, 5, dtype=torch.bool)))
    wide = repeat(shared, 3)
    moved = select(wide, torch.tensor([2, 0, 0, 3, 5, 4]))
    assert moved.width == 3 and all(a is b for a, b in zip(moved.tensors, shared.tensors, strict=True))
    fewer = select(wide, torch.tensor([5, 4, 3]))
    assert fewer.width == 3 and torch.equal(fewer.tensors[0], shared.tensors[0][1:])
    mixed = select(wide, torch.tensor([0, 4]))
    assert mixed.width == 1 and torch.equal(mixed.tensors[0], shared.tensors[0])


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_rows_that_leave_unevenly_keep_to_their_sources(width):
    """Beside a plain tensor that repeats each source for every one of its rows: any few rows, and any six in order."""
    shared = repeat(SharedLeaf((torch.arange(6 // width), 10 + torch.arange(6 // width))), width)
    plain = torch.arange(6 // width).repeat_interleave(width)
    uneven = itertools.combinations_with_replacement(range(6), 6)
    for rows in itertools.chain(*(itertools.product(range(6), repeat=count) for count in (1, 2, 3, 4)), uneven):
        found, expected = select((shared, plain), torch.tensor(rows))
        for offset, tensor in zip((0, 10), found.tensors, strict=True):
            assert torch.equal(tensor.repeat_interleave(found.width), offset + expected), rows


@pytest.mark.parametrize("side", ["between", "empty"])
@each_decoder
@pytest.mark.parametrize("gradient", [True, False])
def test_rows_take_their_padding_with_them(name, side, gradient):
    """Reordered, left out, doubled or side by side; what comes afterwards is padded again, and then not any more.
    Beside each row read by itself, at once and without its padding."""
    net, seen, mask, x, z = (
        decoder(name, *SOME).eval(),
        memory(),
        MASKS[side],
        torch.randn(3, 6, D),
        torch.randn(3, 3, D),
    )
    more = mask[:, :2].flip(0)
    shown = torch.cat([more, torch.ones(3, 1, dtype=torch.bool)], 1)

    def go_on(state, rows):
        pieces = poisoned(z[rows, :2], more[rows]), z[rows, 2:]
        return read(net, pieces, state, [more[rows], None])[0]

    with torch.set_grad_enabled(gradient):
        _, state = net(poisoned(x, mask), net.initial_state(3, seen), mask)
        expected = torch.zeros(3, 3, SIZE)
        for row in range(3):
            whole = torch.cat([x[row, mask[row]], z[row, shown[row]]])[None]
            y, _ = net(whole, select(net.initial_state(3, seen), torch.tensor([row])))
            expected[row, shown[row]] = y[0, int(mask[row].sum()) :]
        for rows in ([0, 1, 2], [2, 0, 1], [1], [2, 1, 0, 0]):
            close(go_on(select(state, torch.tensor(rows)), rows), expected[rows])
        close(go_on(repeat(state, 2), [0, 0, 1, 1, 2, 2]), expected[[0, 0, 1, 1, 2, 2]])


@pytest.mark.parametrize("name", ["transformer-window", "causal-wide"])
@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("pieces", [[1] * 30, [7, 1, 1, 1, 13, 1, 2, 4], [30]])
def test_a_window_sees_as_far_back_however_much_it_has_read(name, gradient, pieces):
    """What is forgotten is what no step sees any more, whatever of it was padding: beside a walk over all at once."""
    net = stirred(PIECES[name]()) if name in PIECES else decoder(name, *SOME)
    size, seen = SIZE if name in PIECES else D, memory()
    x, mask, more = torch.randn(3, 30, size), torch.rand(3, 30) < 0.6, torch.randn(3, 5, size)
    mask[0], net = True, net.eval()
    with torch.set_grad_enabled(gradient):
        parts, state = read(net, poisoned(x, mask).split(pieces, 1), net.initial_state(3, seen), mask.split(pieces, 1))
        after, _ = read(net, more.split(1, 1), state)
        for row in range(3):
            whole = torch.cat([x[row, mask[row]], more[row]])[None]
            expected, _ = net(whole, select(net.initial_state(3, seen), torch.tensor([row])))
            close(torch.cat([parts[row, mask[row]], after[row]]), expected[0])


@each_encoder
def test_watching_changes_nothing_in_encoders(name):
    net, x = encoder(name).eval(), torch.randn(3, 6, D)
    for mask in (None, *MASKS.values()):
        plain = net(x, mask)
        with recording(net) as tape:
            close(net(x, mask), plain)
        assert tape


@each_decoder
def test_watching_shows_gradients(name):
    net, seen, x = decoder(name, *SOME).eval(), memory(), torch.randn(3, 4, D)
    with recording(net) as tape:
        watched, _ = net(x, net.initial_state(3, seen))
        watched.sum().backward()
    # What the last step leaves behind need not matter to what was said: zoneout keeps c apart from h.
    shown = [value for values in tape.values() for value in values[:-1] or values]
    assert shown and all(value.grad is not None for value in shown), tape.keys()


@pytest.mark.parametrize("name", CELLS)
def test_every_entry_and_gate_can_be_watched(name):
    net = recurrent_decoder(CELLS[name], D, [SIZE])
    with recording(net, "*taps.*") as tape:
        net(torch.randn(2, 5, D), net.initial_state(2))
    cell = CELLS[name](D, SIZE)
    assert {path.rsplit(".", 1)[1] for path in tape} == {*cell.entries, *cell.gates}
    assert all(len(values) == 5 for values in tape.values())


FAST = [name for name in CELLS if CELLS[name](D, SIZE).kernel()]


@pytest.mark.parametrize("side", [None, *MASKS])
@pytest.mark.parametrize("name", FAST)
def test_the_fast_path_equals_the_equations(name, side):
    """In value and gradient: of the parameters, of the input and of where it starts, through all entries."""
    mask = full_mask(torch.zeros(3, 6, 1)) if side is None else MASKS[side]
    make = partial(make_cell_case, CELL_SUBJECTS[name], mask)
    with use_reproducible_float64():
        assert max(has_equal_paths(make)) < EXACT and max(follows_its_equations(make)) < EXACT


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_reading_both_ways_agrees_with_pytorch(name):
    """The reference: PyTorch's own bidirectional layer on packed sequences."""
    net = {"rnn": RNN, "lstm": LSTM, "gru": GRU}[name](D, SIZE // 2, bidirectional=True)
    x, lengths = torch.randn(3, 6, D), torch.tensor([6, 2, 4])
    ours, _ = net(x, net.initial_state(3), lengths_to_mask(lengths, 6))
    theirs, _ = pad_packed_sequence(net.to_torch()(pack_padded_sequence(x, lengths, True, False))[0], batch_first=True)
    close(ours, theirs)


def test_a_stack_is_causal_if_all_its_layers_are():
    assert all(decoder(name, *SOME).causal for name in DECODERS)
    assert all(encoder(name).layer.causal == name.endswith("-one") for name in ENCODERS)


def test_rezero_starts_as_the_identity():
    own, other = (
        CausalAttention(SIZE, MultiHeadAttention(SIZE, 3), NoRotation()),
        CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, 3)),
    )
    layers = [ReZero(SIZE, own), ReZero(SIZE, other)]
    net, x = Stack(*layers), torch.randn(3, 4, SIZE)
    assert torch.equal(net(x, net.initial_state(3, memory()))[0], x)


@pytest.mark.parametrize("name", ["lstm", "coupled", "gru"])
def test_a_decoder_starts_where_the_encoder_arrived(name):
    """As it is where the sizes agree, level by level, h and c; with an encoder of another kind, through a bridge."""
    x, mask = torch.randn(3, 6, D), MASKS["between"]
    for merge in ("concatenate", "none"):
        found = Encoder(recurrent_encoder(CELLS[name], D, [SIZE, SIZE], merge=merge), mean_pool)
        memory = found(x, mask)
        net = recurrent_decoder(CELLS[name], D, [SIZE, SIZE], SIZE, found.layer.final_state_sizes)
        close(net.initial_state(3, memory), memory.final_states)
        assert not [p for n, p in net.named_parameters() if "begin" in n]
    other = recurrent_decoder(
        CELLS["rnn" if name != "gru" else "lstm"], D, [SIZE, SIZE], SIZE, found.layer.final_state_sizes
    )
    assert [p for n, p in other.named_parameters() if "begin" in n]
    other.initial_state(3, memory)


def test_positions_do_not_end():
    net = SinusoidalPositions(SIZE)
    y, _ = net(torch.zeros(1, 2, SIZE), torch.tensor([1_000_000]))
    assert y.isfinite().all() and not torch.equal(y[:, 0], y[:, 1])


@pytest.mark.parametrize("layer", [SelfAttention, CausalAttention])
def test_no_mask_of_time_by_time_is_built(layer, monkeypatch):
    masks = []
    attend = nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        nn.functional,
        "scaled_dot_product_attention",
        lambda q, k, v, attn_mask, dropout_p, is_causal: (
            masks.append(attn_mask) or attend(q, k, v, attn_mask, is_causal=is_causal)
        ),
    )
    net = layer(SIZE, MultiHeadAttention(SIZE, 3), NoRotation())
    for mask in (None, *MASKS.values()):
        net(torch.randn(3, 6, SIZE), net.initial_state(3), mask)
    assert all(mask is None or mask.shape[-2] == 1 for mask in masks) and len(masks) == 5
