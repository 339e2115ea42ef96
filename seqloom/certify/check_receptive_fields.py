"""Receptive fields: which inputs an output depends on, found by differentiating the product and nothing else."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from ..layers import CELLS, Layer, TransformerConfig, recurrent_encoder, transformer
from .certificate import Check, Gaps, draw_leaf, stir
from .reference_attention import Sees, see_everything, see_past

INPUTS, SIZE, TIME = 4, 4, 9


def find_dependence(y: Tensor, x: Tensor) -> Tensor:
    """Whether output i moves with input j: (T, T), from (1, T, …) both."""
    rows = []
    for output in y[0]:
        (slope,) = torch.autograd.grad((output * torch.randn_like(output)).sum(), x, retain_graph=True)
        rows.append(slope[0].abs().sum(1) > 0)
    return torch.stack(rows)


def count_wrong_places(y: Tensor, x: Tensor, sees: Sees) -> Gaps:
    """How many pairs depend on each other and should not, or the other way round."""
    expected = torch.tensor([[sees(i, j) for j in range(TIME)] for i in range(TIME)])
    return Gaps(float((find_dependence(y, x) != expected).sum()))


def cell_sees(name: str) -> Gaps:
    cell, x = stir(CELLS[name](INPUTS, SIZE)), draw_leaf(1, TIME, INPUTS)
    y, _ = cell.scan(x, tuple(torch.zeros(1, size) for size in cell.sizes))
    return count_wrong_places(y, x, see_past)


def layer_sees(make: Callable[[], Layer], sees: Sees) -> Gaps:
    net, x = stir(make()), draw_leaf(1, TIME, INPUTS)
    y, _ = net(x, net.initial_state(1))
    return count_wrong_places(y, x, sees)


def windows(depth: int, window: int, causal: bool) -> Layer:
    return transformer(SIZE, TransformerConfig(SIZE, depth, 2, window=window, positions="rotary"), causal=causal)


def reach(back: int, ahead: int) -> Sees:
    return lambda i, j: i - back <= j <= i + ahead


FIELDS: dict[str, tuple[str, Callable[[], Layer], Sees]] = {
    "bidirectional": ("sees everything", partial(recurrent_encoder, CELLS["gru"], INPUTS, [SIZE]), see_everything),
    "encoder": ("sees everything", partial(windows, 1, 0, False), see_everything),
    "decoder": ("sees the past, all of it", partial(windows, 1, 0, True), see_past),
    "encoder, window 2": ("sees 2 on each side", partial(windows, 1, 2, False), reach(2, 2)),
    "encoder, window 2, 3 layers": ("sees 3 × 2 on each side", partial(windows, 3, 2, False), reach(6, 6)),
    "decoder, window 3": ("sees itself and 2 before", partial(windows, 1, 3, True), reach(2, 0)),
    "decoder, window 3, 2 layers": ("sees itself and 2 × 2 before", partial(windows, 2, 3, True), reach(4, 0)),
}


def checks() -> Iterator[Check]:
    for name in CELLS:
        if name not in ("rnn-relu", "gru-d"):  # a unit at rest or a missing value lets nothing through
            yield Check("cells", name, "sees the past, all of it", 0.0, partial(cell_sees, name))
    for subject, (claim, make, sees) in FIELDS.items():
        family = "cells" if subject == "bidirectional" else "transformer"
        yield Check(family, subject, claim, 0.0, partial(layer_sees, make, sees))
