"""Where else the same units behave so: against all spans one by one, and on units whose behavior is known."""

import numpy as np
import pytest

from seqloom.look.measures.gates import record_traces
from seqloom.look.measures.reading import number_positions, take_row
from seqloom.look.measures.spans import Match, SpanScale, choose_units, compute_shares, find_matches, record_levels

from .models import MODELS, SIDES, batch_for


def planted():
    """Unit 2 is high at steps 3 to 5 of every example, unit 4 low there and at step 6; unit 0 never moves."""
    chance = np.random.default_rng(0)
    examples = [chance.uniform(-0.5, 0.5, (20, 6)) for _ in range(9)]
    for one in examples:
        one[:, 0] = 3
        one[3:6, 2] += 9
        one[3:7, 4] -= 9
    return examples


def test_units_are_those_that_were_planted_and_their_spans_are_found_in_every_example():
    examples = planted()
    scale = SpanScale.fit(examples)
    units = choose_units(examples[0], 3, 6, scale, 8)
    assert [(unit.number, unit.side, unit.bounded) for unit in units] == [(2, 1, True), (4, -1, False)]
    assert choose_units(examples[0], 3, 6, scale, 1) == units[:1]
    assert choose_units(examples[0], 2, 6, scale, 8) == []  # at step 2 they are off
    assert not compute_shares(examples[0], [], scale).any()
    found = find_matches([compute_shares(one, units, scale) for one in examples], 3, 9)
    assert sorted((match.example, match.start) for match in found) == [(number, 3) for number in range(9)]
    assert all(match.share == 1 for match in found)


def test_matches_are_the_best_of_all_spans_and_never_overlap():
    """By brute force: span by span, the best that overlaps none of those before."""
    chance = np.random.default_rng(1)
    shares = [np.round(chance.random(length) * 4) / 4 for length in (1, 7, 12, 0, 3)]
    spans = [(number, start) for number, one in enumerate(shares) for start in range(len(one) - 2)]
    spans.sort(key=lambda span: (-shares[span[0]][span[1] : span[1] + 3].mean(), span))
    expected: list[Match] = []
    for number, start in spans:
        value = shares[number][start : start + 3]
        if value.any() and not any(one.example == number and abs(one.start - start) < 3 for one in expected):
            expected.append(Match(number, start, value.tolist()))
    assert find_matches(shares, 3, 100) == expected and len(expected) > 3
    assert find_matches(shares, 3, 2) == expected[:2]


@pytest.mark.parametrize("name", MODELS)
def test_every_level_has_a_row_for_each_step_and_of_a_recurrence_its_state(name):
    model = MODELS[name]().eval()
    batch = batch_for(model, SIDES["left"])
    names = number_positions(take_row(batch))
    found = record_levels(model, batch, names)
    traces = {trace.name: trace for trace in record_traces(model, batch, names)}
    assert found and set(traces) <= {one.level for one in found}
    for one in found:
        assert len(one.steps) == len(one.values) > 0
        states = traces[one.level].entries.values() if one.level in traces else [one.values]
        assert any(np.allclose(one.values, state) for state in states)
