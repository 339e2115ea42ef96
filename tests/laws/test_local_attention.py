"""Local attention over a source against its formulas (Luong et al., 2015), element by element."""

import math

import pytest
import torch

from seqloom.layers.attention import DotAttention
from seqloom.layers.attention_decoders import Luong
from seqloom.layers.base import Memory
from seqloom.layers.local_attention import MonotonicAttention, PredictiveAttention

from .zoo import stirred

Q, D, S, T = 4, 3, 7, 9


def expected(scores, values, center, window, gaussian):
    """Softmax over the elements at most `window` from the center, by a Gaussian of half its width or none."""
    near = [place for place in range(len(values)) if abs(place - center) <= window]
    total = sum(math.exp(scores[place]) for place in near)
    seen = torch.zeros(D)
    for place in near:
        weight = math.exp(scores[place]) / total
        if gaussian:
            weight *= math.exp(-((place - center) ** 2) / (2 * (window / 2) ** 2))
        seen += weight * values[place]
    return seen


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("predicts", [False, True])
@pytest.mark.parametrize("begin", [0, 2])
def test_a_step_sees_what_the_formula_says(window, predicts, begin):
    """Also where the source is padded in front, and where a step lies behind the end of the source."""
    torch.manual_seed(window)
    score = DotAttention(Q, D)
    attention = PredictiveAttention(score, window, Q) if predicts else MonotonicAttention(score, window)
    layer = stirred(Luong(Q, D, attention)).eval()
    values, query = torch.randn(1, S, D), 0.5 * torch.randn(1, T, Q)
    mask = torch.arange(S)[None] >= begin
    state = layer.initial_state(1, Memory(values, mask, values[:, 0], ()))
    context, _ = attention.look(query, state)
    shown = values[0, begin:]
    for step in range(T):
        scores = (query[0, step] @ score.key(shown).T).tolist()
        if predicts:
            center = len(shown) / (1 + math.exp(-attention.v(attention.W(query[0, step]).tanh()).item()))
        wanted = expected(scores, shown, center if predicts else step, window, predicts)
        torch.testing.assert_close(context[0, step], wanted, rtol=1e-5, atol=1e-5)
