"""Attention: scores, hard and soft, many heads of any width, pooling, non-local, windows; against their equations."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from ..layers import Bahdanau, Luong, Memory, MultiHeadAttention, NonLocal, Pooling, recording
from ..layers.attention import SCORES as PRODUCT_SCORES
from ..layers.attention import Attention
from ..layers.base import Layer
from ..layers.cells import LSTMCell
from ..layers.positions import NoRotation, Rotary
from ..layers.recurrent import ZeroState
from ..layers.transformer import CausalAttention, CrossAttention, SelfAttention
from .certificate import EXACT, STENCIL, Check, Gaps, compare, differences, leaf, stirred
from .reference_attention import (
    SCORES,
    Sees,
    Turn,
    bahdanau,
    cross_attention,
    everything,
    hard,
    luong,
    non_local,
    over_memory,
    pooled,
    rotary,
    self_attention,
    soft,
    still,
    the_past,
)
from .reference_cells import lstm
from .reference_maths import Parameters

SIZE, SOURCE, INPUTS, HEADS = 6, 5, 3, 2
SHOWN = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]]).bool()  # of the memory: all, some, nothing
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1]]).bool()


def memory_of(values: Tensor) -> Memory:
    return Memory(values, SHOWN, values.new_zeros(len(values), 1), ())


# --- one head over a memory -------------------------------------------------------------------------------------


def score_case(name: str, is_hard: bool) -> tuple[Attention, Tensor, Tensor]:
    return stirred(PRODUCT_SCORES[name](SIZE, SOURCE, is_hard)), leaf(3, 4, SIZE), leaf(3, 4, SOURCE)


def look(attention: Attention, query: Tensor, values: Tensor) -> list[Tensor]:
    return [attention.prepare(memory_of(values)).ask(attention, query)]


def score_follows_its_equation(name: str, is_hard: bool) -> Gaps:
    attention, query, values = score_case(name, is_hard)
    p, how = Parameters.of(attention), hard if is_hard else soft
    expected = [over_memory(p, SCORES[name], how, query[row], values[row], SHOWN[row]) for row in range(3)]
    return compare(look(attention, query, values), [torch.stack(expected)], [query, values, *attention.parameters()])


def score_has_the_measured_slopes(name: str) -> Gaps:
    attention, query, values = score_case(name, False)
    return differences(partial(look, attention, query, values), [query, values, *attention.parameters()])


def luong_follows_its_equation(name: str) -> Gaps:
    layer = stirred(Luong(SIZE, SOURCE, PRODUCT_SCORES[name](SIZE, SOURCE)))
    x, values = leaf(3, 4, SIZE), leaf(3, 4, SOURCE)
    ours, _ = layer(x, layer.initial_state(3, memory_of(values)))
    p = Parameters.of(layer)
    theirs = torch.stack([luong(p, SCORES[name], x[row], values[row], SHOWN[row]) for row in range(3)])
    return compare([ours], [theirs], [x, values, *layer.parameters()])


def bahdanau_follows_its_equation(name: str) -> Gaps:
    cell = LSTMCell(INPUTS + SOURCE, SIZE)
    layer = stirred(Bahdanau(cell, ZeroState(), PRODUCT_SCORES[name](SIZE, SOURCE)))
    x, values = leaf(3, 4, INPUTS), leaf(3, 4, SOURCE)
    ours, _ = layer(x, layer.initial_state(3, memory_of(values)))
    p, start = Parameters.of(layer), (torch.zeros(SIZE), torch.zeros(SIZE))
    rows = [bahdanau(p, SCORES[name], lstm, x[row], values[row], SHOWN[row], start) for row in range(3)]
    return compare([ours], [torch.stack(rows)], [x, values, *layer.parameters()])


# --- many heads over the sequence itself, or over a memory ------------------------------------------------------


def spread(rows: list[Tensor], mask: Tensor) -> Tensor:
    """Rows without padding (their length, D) put back to where the mask says; zeros elsewhere."""
    whole = rows[0].new_zeros(*mask.shape, rows[0].shape[1])
    for number, row in enumerate(rows):
        whole[number, mask[number]] = row
    return whole


def one_layer(layer: Layer, x: Tensor, mask: Tensor, watched: bool) -> list[Tensor]:
    with recording(layer, "*" if watched else "nothing"):
        y, _ = layer(x, layer.initial_state(len(x)), mask)
    return [y]


# The layer, the widths of a head's queries and of its values (0: as they come), whether it turns, and the window.
SELF: dict[str, tuple[type[SelfAttention] | type[CausalAttention], tuple[int, int], bool, int, Sees]] = {
    "multi-head": (SelfAttention, (0, 0), False, 0, everything),
    "multi-head, free widths": (SelfAttention, (4, 5), False, 0, everything),
    "multi-head, full width": (SelfAttention, (SIZE, SIZE), False, 0, everything),
    "multi-head, rotary": (SelfAttention, (4, 0), True, 0, everything),
    "multi-head, causal": (CausalAttention, (0, 0), False, 0, the_past),
    "multi-head, causal, rotary": (CausalAttention, (4, 5), True, 0, the_past),
    "windowed": (SelfAttention, (0, 0), False, 1, lambda i, j: abs(i - j) <= 1),
    "windowed, causal": (CausalAttention, (0, 0), False, 2, lambda i, j: i - 2 < j <= i),
}


def self_case(name: str) -> tuple[Layer, Tensor]:
    kind, widths, turns, window, _ = SELF[name]
    attend = MultiHeadAttention(SIZE, HEADS, *widths)
    return stirred(kind(SIZE, attend, Rotary(attend.width) if turns else NoRotation(), window)), leaf(3, 5, SIZE)


def self_follows_its_equation(name: str) -> Gaps:
    layer, x = self_case(name)
    _, widths, turns, _, sees = SELF[name]
    turn: Turn = rotary if turns else still
    p, width = Parameters.of(layer), widths[0] or SIZE // HEADS
    rows = [self_attention(p, x[row, MASK[row]], HEADS, width, sees, turn) for row in range(3)]
    return compare(one_layer(layer, x, MASK, False), [spread(rows, MASK)], [x, *layer.parameters()])


def self_is_fast_and_the_same(name: str) -> Gaps:
    layer, x = self_case(name)
    ours, spelled_out = (one_layer(layer, x, MASK, watched) for watched in (False, True))
    return compare(ours, spelled_out, [x, *layer.parameters()])


def self_has_the_measured_slopes(name: str) -> Gaps:
    layer, x = self_case(name)
    return differences(partial(one_layer, layer, x, MASK, False), [x, *layer.parameters()])


def cross_follows_its_equation(width: int, values: int) -> Gaps:
    layer = stirred(CrossAttention(SIZE, SOURCE, MultiHeadAttention(SIZE, HEADS, width, values)))
    x, source = leaf(3, 2, SIZE), leaf(3, 4, SOURCE)
    ours, _ = layer(x, layer.initial_state(3, memory_of(source)))
    p = Parameters.of(layer)
    theirs = [cross_attention(p, x[row], source[row, SHOWN[row]], HEADS) for row in range(3)]
    return compare([ours], [torch.stack(theirs)], [x, source, *layer.parameters()])


# --- pooling and non-local --------------------------------------------------------------------------------------


def pooling_follows_its_equation() -> Gaps:
    pooling, values = stirred(Pooling(SIZE, 3)), leaf(3, 5, SIZE)
    p = Parameters.of(pooling)
    theirs = torch.stack([pooled(p, values[row, MASK[row]]) for row in range(3)])
    return compare([pooling(values, MASK)], [theirs], [values, *pooling.parameters()])


def non_local_case() -> tuple[NonLocal, Tensor]:
    return stirred(NonLocal(4, 3)), leaf(2, 4, 2, 3)


def non_local_follows_its_equation() -> Gaps:
    block, x = non_local_case()
    p = Parameters.of(block)
    rows = [non_local(p, torch.stack([x[row, :, i, j] for i in range(2) for j in range(3)])) for row in range(2)]
    theirs = torch.stack([row.T.reshape(4, 2, 3) for row in rows])
    return compare([block(x)], [theirs], [x, *block.parameters()])


def non_local_is_fast_and_the_same() -> Gaps:
    block, x = non_local_case()
    with recording(block):
        spelled_out = block(x)
    return compare([block(x)], [spelled_out], [x, *block.parameters()])


def checks() -> Iterator[Check]:
    equations, fast, slopes = "the written equations", "fast path = slow path", "finite differences"
    for name in SCORES:
        subject = {"scaled": "scaled dot"}.get(name, name)
        yield Check("attention", subject, equations, EXACT, partial(score_follows_its_equation, name, False))
        yield Check("attention", f"{subject}, hard", equations, EXACT, partial(score_follows_its_equation, name, True))
        yield Check("attention", subject, slopes, STENCIL, partial(score_has_the_measured_slopes, name))
        joined, fed = partial(luong_follows_its_equation, name), partial(bahdanau_follows_its_equation, name)
        yield Check("attention", f"{subject}, joined (Luong)", equations, EXACT, joined)
        yield Check("attention", f"{subject}, fed in (Bahdanau)", equations, EXACT, fed)
    for name in SELF:
        yield Check("attention", name, equations, EXACT, partial(self_follows_its_equation, name))
        yield Check("attention", name, fast, EXACT, partial(self_is_fast_and_the_same, name))
        yield Check("attention", name, slopes, STENCIL, partial(self_has_the_measured_slopes, name))
    yield Check("attention", "cross", equations, EXACT, partial(cross_follows_its_equation, 0, 0))
    yield Check("attention", "cross, free widths", equations, EXACT, partial(cross_follows_its_equation, 4, 5))
    yield Check("attention", "learned-query pooling", equations, EXACT, pooling_follows_its_equation)
    yield Check("attention", "non-local", equations, EXACT, non_local_follows_its_equation)
    yield Check("attention", "non-local", fast, EXACT, non_local_is_fast_and_the_same)
