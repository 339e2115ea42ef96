"""Watching belongs to who watches: to a block of one thread, and to nobody and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from seqloom.layers import CELLS, Categorical, recording, recurrent_decoder
from seqloom.layers.cell_weights import constrain_weights
from seqloom.layers.cells import RNNCell
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.fast import kernels
from seqloom.layers.tap import is_watched
from seqloom.models import Generator
from seqloom.search import choose_likeliest, stream

from .zoo import D, writer


def elsewhere(act):
    """What another thread gets, which is waited for."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


def speaker():
    torch.manual_seed(0)
    return Generator(TokenEmbedding(9, D), recurrent_decoder(CELLS["lstm"], D, [6, 6]), Categorical(6, 9)).eval()


@pytest.mark.parametrize("name", ["lstm", "transformer-pre"])
def test_while_one_thread_records_another_goes_the_fast_way_and_is_not_recorded(name, monkeypatch):
    torch.manual_seed(0)
    model, taken = writer(name, "gru-both").eval(), []
    for module, way in ((kernels, "scan"), (F, "scaled_dot_product_attention")):
        real = getattr(module, way)
        monkeypatch.setattr(module, way, lambda *a, real=real, way=way, **k: taken.append(way) or real(*a, **k))
    source, y = torch.randint(3, 12, (2, 5)), torch.randint(3, 12, (2, 4))

    def read():
        taken.clear()
        told, _ = model(y, model.initial_state(2, source, torch.ones_like(source).bool()))
        return told, list(taken)

    alone, fast = read()
    with recording(model) as tape:
        found, ways = elsewhere(read)
        assert not tape and ways == fast and fast
        assert not elsewhere(lambda: is_watched(model)) and is_watched(model)
        assert torch.equal(found, alone)
        _, ways = read()
        assert tape and len(ways) < len(fast)
    assert read()[1] == fast


def test_blocks_inside_of_blocks_and_of_two_models_each_see_their_own():
    one, two, x = CELLS["gru"](D, 3), CELLS["gru"](D, 3), torch.randn(2, 4, D)
    first = (torch.zeros(2, 3),)
    with recording(one, "taps.h") as outer, recording(two) as other:
        one.scan(x, first)
        with recording(one) as inner:
            one.scan(x, first)
            two.scan(x, first)
            elsewhere(lambda: (one.scan(x, first), two.scan(x, first)))
        one.scan(x, first)
    one.scan(x, first)
    assert {name: len(seen) for name, seen in outer.items()} == {"taps.h": 12}
    assert {name: len(seen) for name, seen in inner.items()} == {f"taps.{name}": 4 for name in ("h", "r", "u")}
    assert {name: len(seen) for name, seen in other.items()} == {f"taps.{name}": 4 for name in ("h", "r", "u")}
    for mine, same in zip(inner["taps.h"], outer["taps.h"][4:8], strict=True):
        assert mine is same
    sum(step.sum() for step in outer["taps.h"]).backward()
    assert all(step.grad is not None for step in outer["taps.h"])


def test_blocks_that_generators_hold_open_end_in_any_order_and_in_any_thread():
    cell, x, first = CELLS["lstm"](D, 3), torch.randn(1, 4, D), (torch.zeros(1, 3), torch.zeros(1, 3))

    def steps():
        with recording(cell, "taps.h") as tape:
            while True:
                cell.scan(x, first)
                yield len(tape["taps.h"])

    one, two, three = steps(), steps(), steps()
    assert [next(one), next(two), next(three)] == [4, 4, 4]
    assert next(one) == 16  # what the others did in between went through the same context
    one.close()
    assert is_watched(cell) and not elsewhere(lambda: is_watched(cell))
    elsewhere(two.close)
    three.close()
    assert not is_watched(cell)
    with recording(cell) as tape:
        cell.scan(x, first)
    assert len(tape["taps.h"]) == 4 and not is_watched(cell)


def test_a_stream_writes_the_same_wherever_it_is_opened_and_read():
    model = speaker()

    def opened():
        return stream(model.stepper(), choose_likeliest, torch.tensor([[1]]), model.initial_state(1), steps=9, end=None)

    def tokens(picks):
        return [pick.token for [pick] in picks]

    whole = tokens(opened())
    outside, inside = opened(), None
    start = tokens([next(outside)])
    with recording(model, "*taps.h") as tape:
        start += tokens([next(outside), next(outside)])
        assert not tape  # it was prepared before anyone watched
        inside = opened()
        begin = tokens([next(inside), next(inside)])
        begin += elsewhere(lambda: tokens([next(inside)]))
        assert [len(seen) for seen in tape.values()] == [2, 2]
    assert start + tokens(outside) == whole and begin + tokens(inside) == whole
    assert [len(seen) for seen in tape.values()] == [2, 2]


def test_a_weight_that_is_computed_is_so_once_a_walk_and_in_the_graph_of_who_walks(monkeypatch):
    """A thread without gradient stands in the middle of its walk; one with gradient walks from end to end meanwhile."""
    within, go = threading.Event(), threading.Event()

    class Halting(RNNCell):
        def forward(self, x, entries):
            after = super().forward(x, entries)
            if not torch.is_grad_enabled():
                within.set()
                assert go.wait(60)
            return after

    torch.manual_seed(0)
    cell = constrain_weights(Halting(D, 3, activation="relu"), nn.utils.parametrizations.orthogonal)
    x, first, computed = torch.randn(2, 4, D), (torch.zeros(2, 3),), []
    how = type(cell.U.parametrizations.weight[0])
    compute = how.forward
    monkeypatch.setattr(how, "forward", lambda *given: computed.append(threading.get_ident()) or compute(*given))

    def slope():
        computed.clear()
        y, _ = cell.scan(x, first)
        assert computed == [threading.get_ident()]
        return torch.autograd.grad(y.sum(), list(cell.parameters()))

    alone = slope()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(torch.no_grad()(cell.scan), x, first)
        assert within.wait(60)
        try:
            meanwhile = slope()
        finally:
            go.set()
        assert torch.equal(other.result()[0], cell.scan(x, first)[0])
    assert all(map(torch.equal, meanwhile, alone))
