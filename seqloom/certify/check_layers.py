"""Layers of recurrence: both ways under every merge, and the sliding window; against their equations."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from ..layers import CELLS, Layer, recurrent_encoder
from ..layers.convolution import Convolution
from .certificate import EXACT, Check, Gaps, compare, leaf, stirred
from .check_attention import MASK, spread
from .reference_cells import bidirectional, convolution, gru_after
from .reference_maths import Parameters

INPUTS, SIZE, WINDOW = 3, 4, 3
MERGES = ("concatenate", "mean", "sum", "project")


def product(layer: Layer, x: Tensor) -> list[Tensor]:
    y, _ = layer(x, layer.initial_state(len(x)), MASK)
    return [y]


def merged(p: Parameters, merge: str, x: Tensor) -> Tensor:
    """L2: the two states of each element, joined."""
    there, back = p.under("ways.0.cell"), p.under("ways.1.cell")
    size = len(there["U.weight"]) // 3
    forwards, backwards = bidirectional(gru_after, there, back, x, (torch.zeros(size),))
    if merge == "mean":
        return (forwards + backwards) / 2
    if merge == "sum":
        return forwards + backwards
    side_by_side = torch.cat([forwards, backwards], 1)
    if merge == "concatenate":
        return side_by_side
    return torch.stack([p.affine("merge.linear", element) for element in side_by_side])


def both_ways_follow_their_equations(merge: str) -> Gaps:
    layer, x = stirred(recurrent_encoder(CELLS["gru"], INPUTS, [SIZE], merge=merge)), leaf(3, 5, INPUTS)
    p = Parameters.of(layer).under("layers.0")
    rows = [merged(p, merge, x[row, MASK[row]]) for row in range(3)]
    return compare(product(layer, x), [spread(rows, MASK)], [x, *layer.parameters()])


def convolution_follows_its_equation(causal: bool) -> Gaps:
    layer, x = stirred(Convolution(INPUTS, SIZE, WINDOW, causal)), leaf(3, 5, INPUTS)
    p, ahead = Parameters.of(layer), 0 if causal else WINDOW // 2
    rows = [convolution(p, x[row, MASK[row]], WINDOW, ahead) for row in range(3)]
    return compare(product(layer, x), [spread(rows, MASK)], [x, *layer.parameters()])


def checks() -> Iterator[Check]:
    claim = "the written equations"
    for merge in MERGES:
        yield Check("cells", f"both ways, {merge}", claim, EXACT, partial(both_ways_follow_their_equations, merge))
    for subject, causal in (("convolution, causal", True), ("convolution, around", False)):
        yield Check("cells", subject, claim, EXACT, partial(convolution_follows_its_equation, causal))
