"""Layers against their equations: bidirectional recurrences, convolutions, attention of every kind, Transformers."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from ..layers import (
    CELLS,
    Bahdanau,
    Layer,
    Luong,
    Memory,
    MultiHeadAttention,
    NonLocal,
    Pooling,
    TransformerConfig,
    recurrent_encoder,
    transformer,
)
from ..layers.cells import LSTMCell
from ..layers.convolution import Convolution
from ..layers.positions import NoRotation, Rotary
from ..layers.recurrent import ZeroState
from ..layers.residual import RESIDUALS
from ..layers.transformer import CausalAttention, CrossAttention, SelfAttention
from .certificate import EXACT, Case, Check, Gaps, check_case, compare, draw_leaf, stir
from .check_attention_facts import ATTENTIONS
from .reference_attention import (
    SCORES,
    Sees,
    apply_non_local,
    attend_memory,
    attend_self,
    bahdanau,
    cross_attention,
    keep_still,
    luong,
    pick_best,
    pool,
    rotary,
    see_everything,
    see_past,
    weigh_softly,
)
from .reference_cells import bidirectional, convolution, gru_after, lstm
from .reference_maths import Parameters
from .reference_transformer import transformer as written_transformer

INPUTS, SIZE, SOURCE, HEADS, WINDOW = 3, 6, 5, 2, 3
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1]]).bool()
SHOWN = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]]).bool()  # of the memory: all, some, nothing

# One sequence (T, D) and, where there is one, its memory (S, M), both without padding, to all outputs.
Equations = Callable[[Parameters, Tensor, Tensor], Tensor]
MakeLayer = Callable[[], Layer]


def make_layer_case(make: MakeLayer, equations: Equations, inputs: int, source: int = 0) -> Case:
    """A batch with padding anywhere beside its rows one by one without any."""
    layer, x = stir(make()), draw_leaf(*MASK.shape, inputs)
    values = draw_leaf(*SHOWN.shape, source) if source else torch.zeros(*SHOWN.shape, 0)

    def product() -> list[Tensor]:
        y, _ = layer(x, start(layer, values if source else None), MASK)
        return [y]

    def rows() -> list[Tensor]:
        p = Parameters.of(layer)
        return [spread([equations(p, x[n, MASK[n]], values[n, SHOWN[n]]) for n in range(len(MASK))])]

    return Case(layer, [x, values] if source else [x], product, rows)


def start(layer: Layer, values: Tensor | None) -> object:
    memory = None if values is None else Memory(values, SHOWN, values.new_zeros(len(values), 1), ())
    return layer.initial_state(len(MASK), memory)


def spread(rows: list[Tensor]) -> Tensor:
    """Rows without padding (their length, D) put back to where the mask says; zeros elsewhere."""
    whole = rows[0].new_zeros(*MASK.shape, rows[0].shape[1])
    for number, row in enumerate(rows):
        whole[number, MASK[number]] = row
    return whole


# --- recurrences and convolutions -------------------------------------------------------------------------------

MERGES = ("concatenate", "mean", "sum", "project")


def merge_directions(merge: str, p: Parameters, x: Tensor, memory: Tensor) -> Tensor:
    """The two states of each element, joined."""
    p = p.select_part("layers.0")
    there, back = p.select_part("ways.0.cell"), p.select_part("ways.1.cell")
    first = torch.zeros(len(there["U.weight"]) // 3)
    forwards, backwards = bidirectional(gru_after, there, back, x, (first,))
    if merge in ("mean", "sum"):
        return (forwards + backwards) / (2 if merge == "mean" else 1)
    plan_streams = torch.cat([forwards, backwards], 1)
    if merge == "concatenate":
        return plan_streams
    return torch.stack([p.affine("merge.linear", element) for element in plan_streams])


def recurrent_checks() -> Iterator[Check]:
    make: MakeLayer
    for merge in MERGES:
        make = partial(recurrent_encoder, CELLS["gru"], INPUTS, [SIZE], merge=merge)
        yield from check_case(
            "cells",
            f"bidirectional, {merge}",
            partial(make_layer_case, make, partial(merge_directions, merge), INPUTS),
            fast=True,
        )
    for subject, causal, ahead in (("convolution, causal", True, 0), ("convolution, centered", False, WINDOW // 2)):
        make = partial(Convolution, INPUTS, SIZE, WINDOW, causal)
        written = partial(lambda ahead, p, x, memory: convolution(p, x, WINDOW, ahead), ahead)
        yield from check_case("cells", subject, partial(make_layer_case, make, written, INPUTS))


# --- attention --------------------------------------------------------------------------------------------------


def score_case(name: str, is_hard: bool) -> Case:
    """Queries over a memory, in one head."""
    attention, query, values = (
        stir(ATTENTIONS[name](SIZE, SOURCE, is_hard)),
        draw_leaf(3, 4, SIZE),
        draw_leaf(3, 4, SOURCE),
    )

    def product() -> list[Tensor]:
        memory = Memory(values, SHOWN, values.new_zeros(3, 1), ())
        return [attention.prepare(memory).ask(attention, query)]

    def equations() -> list[Tensor]:
        p, look = Parameters.of(attention), pick_best if is_hard else weigh_softly
        return [torch.stack([attend_memory(p, SCORES[name], look, query[n], values[n, SHOWN[n]]) for n in range(3)])]

    return Case(attention, [query, values], product, equations)


def make_luong_case(name: str) -> Case:
    def equations(p: Parameters, x: Tensor, memory: Tensor) -> Tensor:
        return luong(p, SCORES[name], x, memory)

    return make_layer_case(lambda: Luong(SIZE, SOURCE, ATTENTIONS[name](SIZE, SOURCE)), equations, SIZE, SOURCE)


def make_bahdanau_case(name: str) -> Case:
    def make() -> Layer:
        return Bahdanau(LSTMCell(INPUTS + SOURCE, SIZE), ZeroState(), ATTENTIONS[name](SIZE, SOURCE))

    def equations(p: Parameters, x: Tensor, memory: Tensor) -> Tensor:
        return bahdanau(p, SCORES[name], lstm, x, memory, (torch.zeros(SIZE), torch.zeros(SIZE)))

    return make_layer_case(make, equations, INPUTS, SOURCE)


# The layer, the widths of a head's queries and of its values (0: as they come), whether it turns, and the window.
SELF: dict[str, tuple[type[SelfAttention] | type[CausalAttention], tuple[int, int], bool, int, Sees]] = {
    "multi-head": (SelfAttention, (0, 0), False, 0, see_everything),
    "multi-head, free widths": (SelfAttention, (4, 5), False, 0, see_everything),
    "multi-head, full width": (SelfAttention, (SIZE, SIZE), False, 0, see_everything),
    "multi-head, rotary": (SelfAttention, (4, 0), True, 0, see_everything),
    "multi-head, causal": (CausalAttention, (0, 0), False, 0, see_past),
    "multi-head, causal, rotary": (CausalAttention, (4, 5), True, 0, see_past),
    "windowed": (SelfAttention, (0, 0), False, 1, lambda i, j: abs(i - j) <= 1),
    "windowed, causal": (CausalAttention, (0, 0), False, 2, lambda i, j: i - 2 < j <= i),
}


def make_self_case(name: str) -> Case:
    kind, widths, turns, window, sees = SELF[name]

    def make() -> Layer:
        attend = MultiHeadAttention(SIZE, HEADS, *widths)
        return kind(SIZE, attend, Rotary(attend.width) if turns else NoRotation(), window)

    def equations(p: Parameters, x: Tensor, memory: Tensor) -> Tensor:
        return attend_self(p, x, HEADS, widths[0] or SIZE // HEADS, sees, rotary if turns else keep_still)

    return make_layer_case(make, equations, SIZE)


def make_cross_case(width: int, values: int) -> Case:
    def make() -> Layer:
        return CrossAttention(SIZE, SOURCE, MultiHeadAttention(SIZE, HEADS, width, values))

    return make_layer_case(make, lambda p, x, memory: cross_attention(p, x, memory, HEADS), SIZE, SOURCE)


def make_pooling_case() -> Case:
    pooling, values = stir(Pooling(SIZE, 3)), draw_leaf(3, 5, SIZE)

    def equations() -> list[Tensor]:
        p = Parameters.of(pooling)
        return [torch.stack([pool(p, values[n, MASK[n]]) for n in range(3)])]

    return Case(pooling, [values], lambda: [pooling(values, MASK)], equations)


def make_non_local_case() -> Case:
    block, x = stir(NonLocal(4, 3)), draw_leaf(2, 4, 2, 3)

    def equations() -> list[Tensor]:
        p = Parameters.of(block)
        return [torch.stack([apply_non_local(p, image.flatten(1).T).T.reshape(4, 2, 3) for image in x])]

    return Case(block, [x], lambda: [block(x)], equations)


def attention_checks() -> Iterator[Check]:
    for name in SCORES:
        subject = {"scaled": "scaled dot"}.get(name, name)
        yield from check_case("attention", subject, partial(score_case, name, False))
        yield from check_case("attention", f"{subject}, hard", partial(score_case, name, True), smooth=False)
        yield from check_case("attention", f"{subject}, Luong", partial(make_luong_case, name))
        yield from check_case("attention", f"{subject}, Bahdanau", partial(make_bahdanau_case, name))
    for name in SELF:
        yield from check_case("attention", name, partial(make_self_case, name), fast=True)
    for subject, widths in (("cross", (0, 0)), ("cross, free widths", (4, 5))):
        yield from check_case("attention", subject, partial(make_cross_case, *widths), fast=True)
    yield from check_case("attention", "learned-query pooling", make_pooling_case)
    yield from check_case("attention", "non-local", make_non_local_case, fast=True)


# --- Transformers -----------------------------------------------------------------------------------------------

WIDTH = 4
config = partial(TransformerConfig, WIDTH, depth=1, heads=HEADS, feed_forward=5, max_positions=7)
windowed = partial(config, positions="rotary", window=1)
BLOCKS: dict[str, tuple[TransformerConfig, bool, int]] = {  # settings, whether causal, size of the memory
    **{f"encoder, {norm}": (config(norm=norm), False, 0) for norm in RESIDUALS},
    **{f"decoder, {norm}": (config(norm=norm), True, SOURCE) for norm in RESIDUALS},
    "encoder, two layers": (config(depth=2), False, 0),
    "decoder, two layers": (config(depth=2), True, SOURCE),
    "encoder, ReLU": (config(norm="post", activation="relu"), False, 0),
    "encoder, SwiGLU": (config(activation="swiglu"), False, 0),
    **{f"encoder, RMSNorm, {norm}": (config(norm=norm, norm_type="rms"), False, 0) for norm in ("post", "pre")},
    "encoder, rotary": (config(positions="rotary"), False, 0),
    "encoder, learned positions": (config(positions="learned"), False, 0),
    "encoder, no positions": (config(positions="none"), False, 0),
    "encoder, windowed": (windowed(), False, 0),
    "decoder alone": (config(), True, 0),
    "encoder, full-width heads": (config(key_size=WIDTH, value_size=WIDTH, positions="rotary"), False, 0),
    "decoder, free widths": (config(heads=3, key_size=2, value_size=5, activation="silu"), True, SOURCE),
    **{f"encoder, no biases, {norm}": (config(norm=norm, bias=False), False, 0) for norm in ("post", "pre")},
    "encoder, hard": (config(hard_attention=True), False, 0),
    "decoder, hard": (config(hard_attention=True, window=2), True, SOURCE),
    "decoder, windowed": (windowed(norm_type="rms", activation="swiglu", window=2, bias=False), True, SOURCE),
}


def make_block_case(name: str) -> Case:
    settings, causal, memory = BLOCKS[name]
    make = partial(transformer, WIDTH, settings, causal=causal, memory=memory)
    return make_layer_case(
        make, lambda p, x, source: written_transformer(p, settings, causal, x, source), WIDTH, memory
    )


def reading_by_pieces_is_reading_at_once(name: str) -> Gaps:
    """One element at a time on the cache, against the whole at once."""
    case = make_block_case(name)
    layer, [x, *source] = case.module, case.inputs
    assert isinstance(layer, Layer)
    state, pieces = start(layer, source[0] if source else None), []
    for time in range(x.shape[1]):
        piece, state = layer(x[:, time : time + 1], state, MASK[:, time : time + 1])
        pieces.append(piece)
    return compare(case.product(), [torch.cat(pieces, 1)], case.leaves)


def transformer_checks() -> Iterator[Check]:
    for name in BLOCKS:
        smooth = not BLOCKS[name][0].hard_attention
        yield from check_case("transformer", name, partial(make_block_case, name), fast=True, smooth=smooth)
        if name.startswith("decoder"):
            pieces = partial(reading_by_pieces_is_reading_at_once, name)
            yield Check("transformer", name, "one by one = at once", EXACT, pieces)


def checks() -> Iterator[Check]:
    yield from recurrent_checks()
    yield from attention_checks()
    yield from transformer_checks()
