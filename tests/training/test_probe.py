"""A time budget becomes steps, and measuring leaves no trace."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from seqloom.config.recipe import Train
from seqloom.errors import DataError
from seqloom.models import Batch
from seqloom.training import probe
from seqloom.training.probe import TRIALS, count_steps, fit_steps_to_time, pick_trial_batches
from seqloom.training.tensors import copy_weights

from .tiny import Guesser, Rows, same, settings, validation


def unresolved(**given: Any) -> Train:
    return Train(**{"time": "5m", "learning_rate": 0.1, **given})


@pytest.mark.parametrize("training", [True, False])
def test_probing_leaves_no_trace(training: bool) -> None:
    objective, feed = Guesser(), Rows()
    objective.train(training)
    weights, random = copy_weights(objective), torch.get_rng_state()
    calm = validation(objective, feed)

    def validate(likely: Train) -> dict[str, float]:
        assert likely.steps > 1 and likely.validation_tokens > 0
        torch.rand(3)
        assert not same(copy_weights(objective), weights), "the steps of the trial are real ones"
        return calm()

    assert fit_steps_to_time(5.0, objective, feed, unresolved(), validate)[0] > 1
    assert same(copy_weights(objective), weights)
    assert torch.equal(torch.get_rng_state(), random)
    assert objective.training is training
    assert all(each.grad is None for each in objective.parameters())


class Clock:
    """Time passes only where it is said to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Timed(Rows):
    """A batch takes a second a row, the very first one a minute more, as set-up does."""

    def __init__(self, clock: Clock, sizes: list[int]) -> None:
        super().__init__(rows=sum(sizes))
        self.clock, self.sizes, self.first = clock, sizes, True

    def order(self, epoch: int) -> list[np.ndarray[Any, Any]]:
        return np.split(np.arange(sum(self.sizes)), np.cumsum(self.sizes)[:-1])

    def batch(self, rows: Any) -> Batch:
        self.clock.now += len(rows) + (60 if self.first else 0)
        self.first = False
        return super().batch(rows)


def test_the_budget_is_divided_by_the_mean_step_and_validations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(probe, "perf_counter", clock)
    objective, feed = Guesser(), Timed(clock, [8, 1, 7, 2, 6, 3, 5, 4] * 2)

    def validate(likely: Train) -> dict[str, float]:
        clock.now += 9.0
        return {"loss": 1.0}

    # 4.5 seconds a step and 9 seconds for every tenth: 54 seconds for 10 steps
    given = unresolved(validate_every=10)
    assert fit_steps_to_time(5400.0, objective, feed, given, validate) == (1000, 10)
    assert fit_steps_to_time(5400.0 + 9 + 4.4, objective, feed, given, validate) == (1000, 10)
    assert fit_steps_to_time(5400.0 + 9 + 4.6, objective, feed, given, validate) == (1001, 10)


def test_a_small_budget_is_not_spent_on_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(probe, "perf_counter", clock)
    feed = Timed(clock, [4] * 20)
    fit_steps_to_time(20.0, Guesser(), feed, unresolved(), lambda likely: {"loss": 1.0})
    assert len(feed.asked) == 1 + probe.TRIALS_AT_LEAST


@given(st.floats(0.01, 200), st.floats(1e-2, 2), st.floats(0, 3), st.integers(0, 40))
def test_what_is_found_fits_in_and_one_step_is_the_least(
    seconds: float, step: float, validation: float, every: int
) -> None:
    given = unresolved(validate_every=every)
    steps, found = count_steps(seconds, step, validation, given)

    def duration(steps: int) -> float:
        return float(steps * step + np.ceil(steps / found) * validation)

    assert steps == 1 or duration(steps) <= seconds
    assume(every)  # then time grows with every step, and what is found is the most
    assert found == every and duration(steps + 1) > seconds


@given(st.floats(100, 2000), st.floats(1e-2, 0.2), st.floats(0, 300))
def test_validations_take_a_tenth_of_the_budget_unless_two_take_more(
    seconds: float, step: float, validation: float
) -> None:
    steps, every = count_steps(seconds, step, validation, unresolved())
    looks = np.ceil(steps / every)
    usual = Train(steps=steps).resolved().validate_every
    assert every % usual == 0 and (looks <= 2 or looks * validation <= seconds / 10 or every == usual)
    assert Train(steps=steps, validate_every=every).resolved().checkpoint_every == usual
    if every > usual:  # rarer by no more than it must be
        assert np.ceil(steps / (every - usual)) > max(2, int(seconds / 10 / max(validation, 1e-9)))


@given(st.integers(1, 10**5), st.integers(1, 10**5))
def test_a_checkpoint_precedes_every_validation_unless_another_interval_is_given(steps: int, every: int) -> None:
    settled = Train(steps=steps, validate_every=every).resolved()
    usual = min(500, max(1, steps // 20))
    assert every % settled.checkpoint_every == 0
    assert settled.checkpoint_every == every or usual / 2 < settled.checkpoint_every <= usual


def test_rare_validations_do_not_make_checkpoints_rare() -> None:
    assert Train(steps=40_000, validate_every=20_000).resolved().checkpoint_every == 500
    assert Train(steps=400, validate_every=200).resolved().checkpoint_every == 20
    assert Train(steps=400, validate_every=10).resolved().checkpoint_every == 10
    assert Train(steps=400, validate_every=200, checkpoint_every=300).resolved().checkpoint_every == 300


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_the_trial_batches_are_of_all_lengths(sizes: list[int]) -> None:
    chosen = [len(rows) for rows in pick_trial_batches([np.arange(size) for size in sizes])]
    assert len(chosen) == TRIALS and set(chosen) <= set(sizes)
    # as many below as above the middle, and the mean near that of all, up to one part's width
    ranks = sorted(sizes)
    parts = [ranks[part * len(ranks) // TRIALS] for part in range(TRIALS)]
    uppers = [ranks[min(len(ranks) - 1, (part + 1) * len(ranks) // TRIALS)] for part in range(TRIALS)]
    assert all(low <= size <= high for low, size, high in zip(parts, sorted(chosen), uppers, strict=True))


def test_no_data_is_one_sentence() -> None:
    with pytest.raises(DataError, match="no examples to train on"):
        fit_steps_to_time(5.0, Guesser(), Rows(rows=0), settings(), lambda likely: {"loss": 0.0})
