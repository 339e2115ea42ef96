"""Every certificate holds, every cell has one, and an equation that is broken on purpose loses its own."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from seqloom.architectures.base import ATTENTIONS
from seqloom.certify import Certificate, list_checks, measure_certificates
from seqloom.certify.certificate import EXACT, compare, compare_with_differences, use_reproducible_float64
from seqloom.certify.reference_maths import softmax
from seqloom.layers import attention, cells, crf, positions, recurrent, residual
from seqloom.layers import windowed_attention as local
from seqloom.layers.fast import kernels as plain_kernels
from seqloom.layers.fast import native_kernels
from seqloom.layers.padding import gather_steps, last_step
from seqloom.layers.transformer import SwiGLU

CHECKS = {check.name: check for check in list_checks()}
transformer = sys.modules["seqloom.layers.transformer"]  # the package gives its name to the function


@pytest.mark.parametrize("name", CHECKS)
def test_the_certificate_holds(name):
    found = CHECKS[name].certify()
    assert found.holds, found


def test_no_two_certificates_have_the_same_name():
    assert len(CHECKS) == len(list_checks())


@pytest.mark.parametrize("claim", ["the written equations", "finite differences"])
def test_every_cell_has_a_certificate(claim):
    certified = {check.subject for check in CHECKS.values() if check.family == "cells" and check.claim == claim}
    assert set(cells.CELLS) - certified == set(), "type its equations into certify/reference_cells.py"
    assert {"gru-d", "lstm, projected"} <= certified


def test_every_cell_with_a_fast_path_is_certified_on_both():
    fast = {name for name, make in cells.CELLS.items() if make(3, 4).kernel()}
    assert fast <= {check.subject for check in CHECKS.values() if check.claim == "fast path = slow path"} and fast


def test_every_attention_and_every_norm_has_a_certificate():
    certified = {check.subject for check in CHECKS.values() if check.claim == "the written equations"}
    assert {name.replace("scaled", "scaled dot") for name in ATTENTIONS} <= certified
    assert {f"{side}, {norm}" for side in ("encoder", "decoder") for norm in residual.RESIDUALS} <= certified


def test_certificates_come_in_the_same_order_with_the_same_numbers(monkeypatch):
    some = [check for check in list_checks() if check.subject in ("lstm", "CRF", "windowed")]
    monkeypatch.setattr("seqloom.certify.checks.list_checks", lambda: some)
    assert (
        list(measure_certificates())
        == list(measure_certificates())
        == [check.certify() for check in reversed(some)][::-1]
    )


def test_certifying_leaves_no_trace():
    torch.manual_seed(3)
    expected = torch.randn(2)
    torch.manual_seed(3)
    CHECKS["transformer: sinusoidal positions in float32: sin and cos of i / 10000^(2j/d)"].certify()
    assert torch.equal(torch.randn(2), expected) and torch.get_default_dtype() == torch.float32


def test_certificates_know_the_layers_and_nothing_else():
    program = "import json, sys, seqloom.certify; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = {name.split(".")[1] for name in json.loads(answer.stdout) if name.startswith("seqloom.")}
    assert ours - {"errors", "certify", "layers"} == set()


# --- what a certificate says ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "gradient", "holds"),
    [
        (0.0, None, True),
        (EXACT, EXACT, True),
        (2 * EXACT, 0.0, False),
        (0.0, 2 * EXACT, False),
        (None, 0.0, True),
        (None, None, False),  # nothing was measured
        (float("nan"), 0.0, False),
        (0.0, float("nan"), False),
    ],
)
def test_a_certificate_holds_if_every_gap_does(value, gradient, holds):
    assert Certificate("cells", "one", "is", value, gradient, EXACT).holds == holds


def test_one_nan_among_many_numbers_is_seen():
    x = torch.ones(3, requires_grad=True)
    broken = torch.tensor([1.0, float("nan"), 1.0])
    assert not Certificate("cells", "x", "y", *compare([x * broken], [x * 1], [x]), EXACT).holds


def test_a_wrong_gradient_of_a_right_value_is_seen():
    with use_reproducible_float64():
        x = torch.randn(3, requires_grad=True)
        value, gradient = compare([x.detach() * 2 + x - x.detach()], [2 * x], [x])
        assert value < EXACT and gradient > 0.01
        assert compare_with_differences(lambda: [x.detach() * 2 + x - x.detach()], [x]).gradient > 0.01
        assert compare_with_differences(lambda: [x.sin()], [x]).gradient < 1e-9


def test_a_reference_that_forgets_a_weight_is_a_mistake():
    x, forgotten = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        compare([x * forgotten], [x * 1], [x, forgotten])


def test_the_written_softmax_is_that_of_torch():
    scores = torch.randn(5, dtype=torch.double)
    torch.testing.assert_close(torch.stack(softmax(list(scores))), scores.softmax(0))


# --- broken on purpose ------------------------------------------------------------------------------------------


def lstm_with_i_and_f_swapped(self, x, entries):
    h, c = entries
    f, i, g, o = (x + self.U(h)).chunk(4, -1)
    c = self.gate("f", f) * c + self.gate("i", i) * g.tanh()
    return self.gate("o", o) * c.tanh(), c


def gru_with_u_and_its_rest_swapped(self, x, entries):
    (h,) = entries
    (x_r, x_u, x_n), (h_r, h_u) = x.chunk(3, -1), self.U(h).chunk(2, -1)
    n = torch.tanh(x_n + self.U_n(self.gate("r", x_r + h_r) * h))
    u = self.gate("u", x_u + h_u)
    return ((1 - u) * h + u * n,)


def coupled_with_both_gates_alike(self, x, entries):
    h, c = entries
    f, g, o = (x + self.U(h)).chunk(3, -1)
    f = self.gate("f", f)
    c = f * c + f * g.tanh()
    return self.gate("o", o) * c.tanh(), c


def coupled_that_keeps_the_rest(self, x, entries):
    h, c = entries
    f, g, o = (x + self.U(h)).chunk(3, -1)
    f = self.gate("f", f)
    c = (1 - f) * c + f * g.tanh()
    return self.gate("o", o) * c.tanh(), c


def rnn_that_forgets_where_it_started(kernel):
    right = kernel.backward

    def backward(ctx, d_steps):
        *others, d_h = right(ctx, d_steps)
        return *others, 0 * d_h

    return staticmethod(backward)


def rnn_without_its_last_squash(kernel):
    right = kernel.forward
    return staticmethod(lambda ctx, x, counts, U, h: right(ctx, x, counts, U, h) * 1.0000001)


def divided_by_d(self, query, keys):
    """A slip that is often printed."""
    return query @ keys.mT / query.shape[-1]


def additive_without_the_query(self, query, keys):
    scores = self.judge(torch.tanh(keys[:, None] + 0 * self.shift(query)[:, :, None]))
    return scores.squeeze(-1)


near = local.attend_window


def one_too_near(attend, query, keys, values, before, after, mask):
    return near(attend, query, keys, values, before - 1, after, mask)


weigh = attention.weigh


def weights_that_see_padding(scores, mask):
    return weigh(scores, torch.ones_like(mask))


def residual_around_the_norm_too(self, x, state, mask=None):
    """Another slip that is often printed: the way around carries what was normalized."""
    x = self.before(residual.zero_padding(x, mask))
    change, state = self.layer(x, state, mask)
    return residual.zero_padding(x + change, mask), state


def cosine_first(self, x, state, mask=None):
    places, state = positions.count_positions(x, state, mask)
    angle = places[..., None] * self.rate
    return positions.zero_padding(
        x + torch.stack([angle.cos(), angle.sin()], -1).flatten(2)[..., : x.shape[2]], mask
    ), state


def turned_the_wrong_way(self, x, places):
    """Of the queries and the keys alike: scores depend on distances, but not on the right ones."""
    angle = places[:, None, :, None] * self.rate * 2
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1).flatten(-2)


rezero = residual.ReZero.__init__


def rezero_that_starts_open(self, *arguments):
    rezero(self, *arguments)
    self.share.data.fill_(0.5)


def gate_and_value_swapped(self, x):
    value, gate = x.chunk(2, -1)
    return nn.functional.silu(gate) * value


def path_without_its_end(self, scores, tags, mask):
    tags = tags.masked_fill(~mask, 0)
    own = (scores.gather(2, tags[..., None]).squeeze(2) * mask).sum(1)
    between = (self.pairs[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]).sum(1)
    return own + between + self.first[tags[:, 0]] + 0 * self.last[gather_steps(tags, last_step(mask))]


def both_backwards(self, x, state, mask=None):
    there, end = self.ways[0](x, state[0], mask)
    back, begin = self.ways[1](x, state[1], mask)
    return self.merge(there, back), (end, begin)


BROKEN = [
    ("cells: lstm: the written equations", cells.LSTMCell, "forward", lstm_with_i_and_f_swapped),
    ("cells: lstm: fast path = slow path", cells.LSTMCell, "forward", lstm_with_i_and_f_swapped),
    ("cells: gru-before: the written equations", cells.ResetBeforeGRUCell, "forward", gru_with_u_and_its_rest_swapped),
    ("cells: coupled: the written equations", cells.CoupledLSTMCell, "forward", coupled_with_both_gates_alike),
    ("cells: coupled: ∂c_T/∂c_0 = ∏ f_t (U = 0)", cells.CoupledLSTMCell, "forward", coupled_that_keeps_the_rest),
    ("cells: bidirectional, sum: the written equations", recurrent.Bidirectional, "forward", both_backwards),
    ("cells: bidirectional: sees everything", recurrent.Bidirectional, "forward", both_backwards),
    ("attention: scaled dot: the written equations", attention.ScaledDotAttention, "scores", divided_by_d),
    ("attention: scaled dot: a worked example", attention.ScaledDotAttention, "scores", divided_by_d),
    ("attention: additive: the written equations", attention.AdditiveAttention, "scores", additive_without_the_query),
    ("attention: multi-head: fast path = slow path", attention, "weigh", weights_that_see_padding),
    ("attention: dot: equal scores: equal weights", attention, "weigh", weights_that_see_padding),
    ("attention: windowed: the written equations", transformer, "attend_window", one_too_near),
    ("transformer: encoder, window 2, 3 layers: sees 3 × 2 on each side", transformer, "attend_window", one_too_near),
    ("transformer: encoder, pre: the written equations", residual.PreNorm, "forward", residual_around_the_norm_too),
    (
        "transformer: nn.TransformerEncoderLayer: PyTorch's numbers, pre, gelu",
        residual.PreNorm,
        "forward",
        residual_around_the_norm_too,
    ),
    (
        "transformer: sinusoidal positions, d = 6: sin and cos of i / 10000^(2j/d)",
        positions.SinusoidalPositions,
        "forward",
        cosine_first,
    ),
    ("transformer: encoder, rotary: the written equations", positions.Rotary, "forward", turned_the_wrong_way),
    (
        "transformer: encoder, rezero: starts as the identity",
        residual.ReZero,
        "__init__",
        rezero_that_starts_open,
    ),
    ("transformer: encoder, SwiGLU: the written equations", SwiGLU, "forward", gate_and_value_swapped),
    ("heads: CRF: the sum over all paths", crf.CRF, "score", path_without_its_end),
    ("heads: CRF: the best of all paths", crf, "best", lambda logits: logits.argmin(-1)),
]


@pytest.mark.parametrize(("name", "place", "attribute", "wrong"), BROKEN, ids=[name for name, *_ in BROKEN])
def test_a_broken_equation_loses_its_certificate(name, place, attribute, wrong, monkeypatch):
    monkeypatch.setattr(place, attribute, wrong)
    cell = isinstance(place, type) and issubclass(place, cells.Cell) and attribute == "forward"
    if cell and "fast path" not in name:
        monkeypatch.setattr(place, "kernel", lambda self: None)  # which would go on computing what is right
    assert not CHECKS[name].certify().holds


BROKEN_KERNELS = [
    ("cells: rnn: fast path = slow path", "backward", rnn_that_forgets_where_it_started),
    ("cells: rnn: finite differences", "backward", rnn_that_forgets_where_it_started),
    ("cells: rnn: the written equations", "forward", rnn_without_its_last_squash),
    ("cells: nn.RNN, tanh: PyTorch's numbers", "forward", rnn_without_its_last_squash),
]


@pytest.mark.parametrize(("name", "attribute", "spoil"), BROKEN_KERNELS, ids=[name for name, *_ in BROKEN_KERNELS])
def test_a_broken_kernel_loses_its_certificate(name, attribute, spoil, kernels, monkeypatch):
    kernel = native_kernels.RNN if kernels == "native" else plain_kernels.RNN
    monkeypatch.setattr(kernel, attribute, spoil(kernel))
    assert not CHECKS[name].certify().holds


def test_something_is_broken_in_every_family():
    assert {name.split(":")[0] for name, *_ in BROKEN} == {check.family for check in CHECKS.values()}
