"""The CRF, which is a head, against the sum over every path there is."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ..layers import CRF
from .certificate import EXACT, Case, Check, Gaps, check_case, draw_leaf, measure_gap, stir
from .check_layers import MASK
from .reference_crf import best, surprise
from .reference_maths import Parameters

TAGS = 3


def make_crf_case() -> Case:
    head, features = stir(CRF(TAGS, TAGS)), draw_leaf(*MASK.shape, TAGS)
    target = torch.randint(0, TAGS, MASK.shape)

    def equations() -> list[Tensor]:
        p, rows = Parameters.of(head), range(len(MASK))
        paths = [tuple(target[n, MASK[n]].tolist()) for n in rows]
        return [torch.stack([surprise(p, features[n, MASK[n]], paths[n]) for n in rows]).sum()]

    return Case(head, [features], lambda: [head.loss(features, target, MASK)[0]], equations)


def crf_finds_the_best_path() -> Gaps:
    """How many tags differ from those of the best of all paths."""
    head, features = stir(CRF(TAGS, TAGS)), torch.randn(*MASK.shape, TAGS)
    p, paths = Parameters.of(head), head.sample(head(features), 0.0, MASK)
    expected = [torch.tensor(best(p, features[n, MASK[n]])) for n in range(len(MASK))]
    return Gaps(float(sum((paths[n, MASK[n]] != path).sum() for n, path in enumerate(expected))))


def crf_without_preferences() -> Gaps:
    """All scores zero: every path is as likely, so that each element costs log(tags)."""
    head = CRF(3, 4)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
    total, count = head.loss(torch.randn(2, 6, 3), torch.randint(0, 4, (2, 6)))
    return Gaps(measure_gap([total / count], [torch.log(torch.tensor(4.0))]))


def checks() -> Iterator[Check]:
    yield from check_case("heads", "CRF", make_crf_case, claim="the sum over all paths")
    yield Check("heads", "CRF", "the best of all paths", 0.0, crf_finds_the_best_path)
    yield Check("heads", "CRF", "equal scores: log(tags) an element", EXACT, crf_without_preferences)
