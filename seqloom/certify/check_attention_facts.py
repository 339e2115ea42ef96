"""What is known about attention, positions and blocks, with a worked example, held against the layers."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from ..layers import Memory, MultiHeadAttention, NonLocal, ScaledDotAttention, TransformerConfig, recording, transformer
from ..layers.attention import AdditiveAttention, Attention, DotAttention, ProjectedAttention
from ..layers.positions import NoRotation, Rotary, SinusoidalPositions
from ..layers.transformer import SelfAttention
from .certificate import EXACT, Check, Gaps, compare, draw_leaf, measure_gap, stir
from .reference_transformer import wave

ATTENTIONS: dict[str, type[Attention]] = {
    "dot": DotAttention,
    "scaled": ScaledDotAttention,
    "additive": AdditiveAttention,
    "projected": ProjectedAttention,
}
SIZE, SHOWN = 4, torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1]]).bool()


def make_memory(values: Tensor) -> Memory:
    return Memory(values, SHOWN[: len(values), : values.shape[1]], values[:, 0], ())


def watch_attention(attention: Attention, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """The attention weights and the context vectors."""
    with recording(attention) as tape:
        context = attention.prepare(memory).ask(attention, query)
    return tape["weights"][0], context


# --- weights -----------------------------------------------------------------------------------------------------


def means(values: Tensor) -> Tensor:
    """The mean over the unmasked elements of each row."""
    return torch.stack([row[shown].mean(0) for row, shown in zip(values, SHOWN, strict=True)])


def equal_scores_give_equal_weights(name: str) -> Gaps:
    """Equal keys give equal scores."""
    attention, values = stir(ATTENTIONS[name](SIZE, SIZE)), torch.randn(2, 5, SIZE)
    with torch.no_grad():
        attention.key.weight.zero_()
    weights, context = watch_attention(attention, torch.randn(2, 3, SIZE), make_memory(values))
    values = attention.prepare(make_memory(values)).tensors[1]  # perhaps projected
    uniform = (SHOWN / SHOWN.sum(1, keepdim=True))[:, None].expand(-1, 3, -1)
    return Gaps(measure_gap([weights, context], [uniform, means(values)[:, None].expand(-1, 3, -1)]))


def equal_scores_in_all_heads() -> Gaps:
    """Zero queries give equal scores."""
    layer, x = stir(SelfAttention(SIZE, MultiHeadAttention(SIZE, 2), NoRotation())), torch.randn(2, 5, SIZE)
    with torch.no_grad():
        layer.project.weight[:SIZE], layer.project.bias[:SIZE] = 0, 0
    y, _ = layer(x, layer.initial_state(2), SHOWN)
    value = layer.project(means(x))[:, 2 * SIZE :]  # the mean of the values is the value of the mean
    expected = layer.attend.out(value)[:, None] * SHOWN[..., None]
    return Gaps(measure_gap([y], [expected]))


def sharper_and_sharper_is_hard(name: str) -> Gaps:
    """The queries of a dot product times 10⁶: all weight moves to the best score, as hard attention has it at once."""
    soft, values, query = stir(ATTENTIONS[name](SIZE, SIZE)), torch.randn(2, 5, SIZE), torch.randn(2, 3, SIZE)
    hard = ATTENTIONS[name](SIZE, SIZE, hard=True)
    hard.load_state_dict(soft.state_dict())
    sharp = watch_attention(soft, 1e6 * query, make_memory(values))
    return Gaps(measure_gap(sharp, watch_attention(hard, query, make_memory(values))))


# --- a worked example ---------------------------------------------------------------------------------

KEYS = [[10, 0, 0], [0, 10, 0], [0, 0, 10], [0, 0, 10]]
VALUES = [[1, 0, 0], [10, 0, 0], [100, 5, 0], [1000, 6, 0]]
QUERY = [[0, 10, 0]]
PRINTED_WEIGHTS = ["3.7266e-06", "9.9999e-01", "3.7266e-06", "3.7266e-06"]
PRINTED_OUTPUT = ["1.0004e+01", "4.0993e-05", "0.0000e+00"]
HEAD_WIDTH = 64  # the notebook's net has 512 features in 8 heads and divides by √64, whatever it is asked


def worked_example() -> Gaps:
    """How many of the printed numbers come out otherwise. Three features, filled up with zeros to a head's width."""
    attention = ScaledDotAttention(HEAD_WIDTH, HEAD_WIDTH)
    keys, query = torch.zeros(1, 4, HEAD_WIDTH), torch.zeros(1, 1, HEAD_WIDTH)
    keys[0, :, :3], query[0, :, :3] = torch.tensor(KEYS), torch.tensor(QUERY)
    with recording(attention) as tape:
        context = attention(query, keys, torch.tensor([VALUES]).to(keys), torch.ones(1, 4).bool())
    computed = [*tape["weights"][0].flatten().tolist(), *context.flatten().tolist()]
    printed = [*PRINTED_WEIGHTS, *PRINTED_OUTPUT]
    return Gaps(float(sum(f"{number:.4e}" != text for number, text in zip(computed, printed, strict=True))))


# --- positions ---------------------------------------------------------------------------------------------------


def waves_table(size: int, dtype: torch.dtype) -> Gaps:
    torch.set_default_dtype(dtype)  # the check that runs this puts it back
    layer, time = SinusoidalPositions(size), 50
    table, _ = layer(torch.zeros(1, time, size), layer.initial_state(1))
    return Gaps(measure_gap([table[0].double()], [torch.stack([wave(i, size) for i in range(time)])]))


def only_distances_count() -> Gaps:
    """Scores of turned queries and keys, here and 37 positions further on."""
    turn, query, keys = Rotary(6), torch.randn(1, 1, 5, 6), torch.randn(1, 1, 5, 6)
    here = torch.arange(5)[None]
    scores = [turn(query, place) @ turn(keys, place).mT for place in (here, here + 37)]
    return Gaps(measure_gap(scores[:1], scores[1:]))


# --- blocks that start as the identity ---------------------------------------------------------------------------


def rezero_starts_as_the_identity(causal: bool, memory: int) -> Gaps:
    net = transformer(
        SIZE, TransformerConfig(SIZE, 3, 2, norm="rezero", positions="none"), causal=causal, memory=memory
    )
    x = draw_leaf(2, 5, SIZE)
    y, _ = net(x, net.initial_state(2, make_memory(torch.randn(2, 5, SIZE))))
    return compare([y], [x.clone()], [x])


def non_local_starts_as_the_identity() -> Gaps:
    x = draw_leaf(2, 4, 3, 3)
    return compare([NonLocal(4)(x)], [x.clone()], [x])


def checks() -> Iterator[Check]:
    for name in ATTENTIONS:
        subject = {"scaled": "scaled dot"}.get(name, name)
        equal = partial(equal_scores_give_equal_weights, name)
        yield Check("attention", subject, "equal scores: equal weights", EXACT, equal)
        if name != "additive":  # a tanh keeps its scores from growing with the query
            limit = partial(sharper_and_sharper_is_hard, name)
            yield Check("attention", subject, "scores × ∞: hard attention", EXACT, limit)
    yield Check("attention", "multi-head", "equal scores: equal weights", EXACT, equal_scores_in_all_heads)
    yield Check("attention", "scaled dot", "a worked example", 0.0, worked_example)
    yield Check("attention", "non-local", "starts as the identity", 0.0, non_local_starts_as_the_identity)
    for subject, causal, memory in (("encoder, rezero", False, 0), ("decoder, rezero", True, SIZE)):
        identity = partial(rezero_starts_as_the_identity, causal, memory)
        yield Check("transformer", subject, "starts as the identity", 0.0, identity)
    table = "sin and cos of i / 10000^(2j/d)"
    for size in (6, 5):
        exact = partial(waves_table, size, torch.float64)
        yield Check("transformer", f"sinusoidal positions, d = {size}", table, EXACT, exact)
    rounded = partial(waves_table, 6, torch.float32)
    yield Check("transformer", "sinusoidal positions in float32", table, 1e-5, rounded)
    yield Check("transformer", "rotary positions", "only distances count", EXACT, only_distances_count)
