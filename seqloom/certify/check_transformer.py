"""Transformer blocks, encoder and decoder, under every norm; and the CRF, which is a head."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from ..layers import CRF, Layer, Memory, transformer
from ..layers.residual import RESIDUALS
from .certificate import EXACT, STENCIL, Check, Gaps, apart, compare, differences, leaf, stirred
from .check_attention import MASK, SHOWN, spread
from .reference_crf import best, surprise
from .reference_maths import Parameters
from .reference_transformer import Shape
from .reference_transformer import transformer as spelled_out

SIZE, SOURCE, HEADS = 4, 3, 2

BLOCKS: dict[str, tuple[Shape, int, bool]] = {  # shape, size of the memory, biases
    **{f"encoder, {norm}": (Shape(HEADS, False, norm), 0, True) for norm in RESIDUALS},
    **{f"decoder, {norm}": (Shape(HEADS, True, norm), SOURCE, True) for norm in RESIDUALS},
    "encoder, ReLU": (Shape(HEADS, False, "post", activation="relu"), 0, True),
    "encoder, SwiGLU": (Shape(HEADS, False, activation="swiglu"), 0, True),
    **{f"encoder, RMSNorm, {norm}": (Shape(HEADS, False, norm, "rms"), 0, True) for norm in ("post", "pre")},
    "encoder, rotary": (Shape(HEADS, False, positions="rotary"), 0, True),
    "encoder, learned positions": (Shape(HEADS, False, positions="learned"), 0, True),
    "encoder, no positions": (Shape(HEADS, False, positions="none"), 0, True),
    "encoder, windowed": (Shape(HEADS, False, positions="rotary", window=1), 0, True),
    "decoder alone": (Shape(HEADS, True), 0, True),
    "decoder, windowed": (Shape(HEADS, True, "pre", "rms", "swiglu", "rotary", 2), SOURCE, False),
}


class Case:
    def __init__(self, name: str, depth: int = 1) -> None:
        self.shape, memory, bias = BLOCKS[name]
        shape = self.shape
        self.net: Layer = stirred(
            transformer(
                SIZE,
                SIZE,
                depth,
                HEADS,
                causal=shape.causal,
                memory=memory,
                feed_forward=5,
                norm=shape.norm,
                norm_type=shape.normalize,
                activation=shape.activation,
                positions=shape.positions,
                max_positions=7,
                window=shape.window,
                bias=bias,
            )
        )
        self.x = leaf(2, 5, SIZE)
        self.source = [leaf(2, 4, SOURCE)] if memory else []
        self.leaves = [self.x, *self.source, *self.net.parameters()]
        self.mask = MASK[[0, 2]]

    def product(self) -> list[Tensor]:
        y, _ = self.net(self.x, self.net.initial_state(2, self.memory()), self.mask)
        return [y]

    def memory(self) -> Memory | None:
        return Memory(self.source[0], SHOWN[:2], self.x.new_zeros(2, 1), ()) if self.source else None

    def reference(self) -> list[Tensor]:
        p, rows = Parameters.of(self.net), []
        for row in range(2):
            memory = self.source[0][row, SHOWN[row]] if self.source else None
            rows.append(spelled_out(p, self.shape, self.x[row, self.mask[row]], memory))
        return [spread(rows, self.mask)]


def block_follows_its_equations(name: str) -> Gaps:
    case = Case(name, depth=2 if name in ("encoder, pre", "decoder, pre") else 1)
    return compare(case.product(), case.reference(), case.leaves)


def block_has_the_measured_slopes(name: str) -> Gaps:
    case = Case(name)
    return differences(case.product, case.leaves)


def reading_by_pieces_is_reading_at_once(name: str) -> Gaps:
    """T8: one element at a time on the cache, against the whole at once."""
    case = Case(name, depth=2)
    state, pieces = case.net.initial_state(2, case.memory()), []
    for time in range(case.x.shape[1]):
        piece, state = case.net(case.x[:, time : time + 1], state, case.mask[:, time : time + 1])
        pieces.append(piece)
    return compare(case.product(), [torch.cat(pieces, 1)], case.leaves)


# --- the CRF ----------------------------------------------------------------------------------------------------


class CRFCase:
    def __init__(self) -> None:
        self.head, self.features = stirred(CRF(3, 3)), leaf(3, 5, 3)
        self.target = torch.randint(0, 3, (3, 5))
        self.leaves = [self.features, *self.head.parameters()]

    def product(self) -> list[Tensor]:
        return [self.head.loss(self.features, self.target, MASK)[0]]

    def rows(self) -> Iterator[tuple[Tensor, tuple[int, ...]]]:
        for row in range(3):
            yield self.features[row, MASK[row]], tuple(self.target[row, MASK[row]].tolist())


def crf_surprise_is_the_sum_over_all_paths() -> Gaps:
    case = CRFCase()
    p = Parameters.of(case.head)
    expected = torch.stack([surprise(p, features, path) for features, path in case.rows()]).sum()
    return compare(case.product(), [expected], case.leaves)


def crf_has_the_measured_slopes() -> Gaps:
    case = CRFCase()
    return differences(case.product, case.leaves)


def crf_finds_the_best_path() -> Gaps:
    """How many tags differ from those of the best of all paths."""
    case = CRFCase()
    p, found = Parameters.of(case.head), case.head.sample(case.head(case.features), 0.0, MASK)
    wrong = 0
    for row, (features, _) in enumerate(case.rows()):
        wrong += sum(a != b for a, b in zip(found[row, MASK[row]].tolist(), best(p, features), strict=True))
    return Gaps(float(wrong))


def crf_that_knows_nothing() -> Gaps:
    """All scores zero: every path is as likely, so that each element costs log(tags)."""
    head = CRF(3, 4)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
    total, count = head.loss(torch.randn(2, 6, 3), torch.randint(0, 4, (2, 6)))
    return Gaps(apart([total / count], [torch.log(torch.tensor(4.0))]))


def checks() -> Iterator[Check]:
    equations, slopes = "the written equations", "finite differences"
    for name in BLOCKS:
        yield Check("transformer", name, equations, EXACT, partial(block_follows_its_equations, name))
        yield Check("transformer", name, slopes, STENCIL, partial(block_has_the_measured_slopes, name))
        if name.startswith("decoder"):
            yield Check(
                "transformer", name, "one by one = at once", EXACT, partial(reading_by_pieces_is_reading_at_once, name)
            )
    yield Check("heads", "CRF", "the sum over all paths", EXACT, crf_surprise_is_the_sum_over_all_paths)
    yield Check("heads", "CRF", slopes, STENCIL, crf_has_the_measured_slopes)
    yield Check("heads", "CRF", "the best of all paths", 0.0, crf_finds_the_best_path)
    yield Check("heads", "CRF", "equal scores: log(tags) an element", EXACT, crf_that_knows_nothing)
