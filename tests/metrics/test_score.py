"""The resampling itself, and what a score tells."""

import numpy as np
import pytest
import scipy.stats

from seqloom.metrics import Score, accuracy, measure_lead
from seqloom.metrics import score as score_module
from seqloom.metrics.score import BOOTSTRAP_SEED, RESAMPLES, Draws, limits, ratio, resample, score_sums


@pytest.mark.parametrize("count", [1, 7, 3000])
def test_every_resample_draws_as_many_examples_as_there_are(count):
    drawn = resample(count, lambda times: times.sum(axis=1))
    assert drawn.tolist() == [count] * RESAMPLES


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "drawn again"])
def test_the_resamples_are_those_of_one_generator_however_they_are_blocked(kept, monkeypatch):
    count = 3000
    monkeypatch.setattr(score_module, "KEPT", count if kept else 0)
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    expected = [np.sum(generator.integers(count, size=count)) for _ in range(RESAMPLES)]
    assert resample(count, lambda times: times @ np.arange(count)).tolist() == expected


def test_the_interval_of_a_mean_is_about_as_wide_as_the_closed_form():
    values = np.random.default_rng(1).normal(5, 2, 2000)
    score = score_sums(np.stack([values, np.ones(2000)], 1), ratio, "lower", "", intervals=True)
    half = 1.96 * values.std() / np.sqrt(2000)
    assert score.interval == pytest.approx((score.value - half, score.value + half), abs=half / 5)


@pytest.mark.parametrize("count", [6, 10, 25, 400])
def test_the_lead_of_one_system_over_another_is_that_of_a_paired_t_test(count):
    chance = np.random.default_rng(count)
    right = chance.random((2, count)) < [[0.8], [0.5]]
    one, other = (accuracy([bool(hit) for hit in hits], [True] * count) for hits in right)
    low, high = measure_lead(one, other)
    differences = right[0].astype(float) - right[1]
    reference = scipy.stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (low + high) / 2 == pytest.approx(differences.mean())
    assert high - low == pytest.approx(reference.high - reference.low, rel=0.08)  # a thousand draws
    assert measure_lead(other, one) == pytest.approx((-high, -low))


def test_hardly_any_examples_tell_no_systems_apart():
    none, all_right = (accuracy([hit] * 5, [True] * 5) for hit in (False, True))
    assert measure_lead(all_right, none) is None
    few = [accuracy(hits, [True] * 6) for hits in ([True] * 3 + [False] * 3, [False] * 6)]
    low, high = measure_lead(*few)  # three against none: a sign test gives p = 0.25
    assert low < 0 < high


def test_draws_without_a_defined_score_do_not_count():
    assert limits(Draws(np.array([np.nan, 1.0, np.nan, 1.0]), 9)) == (1.0, 1.0)
    assert limits(Draws(np.array([np.nan]), 9)) is None


def test_a_score_tells_a_program_all_it_knows():
    whole = Score(0.5, (0.4, 0.6), "higher", "0 to 1", "v:1", 3)
    bare = {"value": 0.5, "better": "higher", "scale": "0 to 1"}
    assert whole.to_json() == {**bare, "interval": [0.4, 0.6], "signature": "v:1", "missing": 3}
    assert Score(0.5, None, "higher", "0 to 1").to_json() == bare
