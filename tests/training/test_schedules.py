"""The learning rate and the share of truth at each step, against torch's own schedules and closed formulas."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from seqloom.config.recipe import Recipe, Train
from seqloom.errors import RecipeError
from seqloom.training.schedules import learning_rate_at, teacher_forcing_at

from .tiny import settings


@given(st.integers(1, 3000), st.data())
def test_the_rate_is_a_line_and_then_half_a_cosine(steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, steps))
    given = Train(steps=steps, learning_rate=0.5).model_copy(update={"warmup": warmup})
    rates = [learning_rate_at(step, given) for step in range(1, steps + 1)]
    line = [0.5 * step / warmup for step in range(1, warmup + 1)]
    assert rates[:warmup] == pytest.approx(line)
    # torch's own schedule, which is defined from one step to the next
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps + 1 - warmup)
    for rate in rates[warmup:]:
        optimizer.step()
        schedule.step()
        assert rate == pytest.approx(schedule.get_last_lr()[0], rel=1e-6, abs=1e-9)


@given(st.integers(1, 3000), st.data())
def test_no_step_is_made_in_vain_and_the_rate_is_never_above_the_one_asked_for(steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, steps))
    given = Train(steps=steps, learning_rate=0.5).model_copy(update={"warmup": warmup})
    rates = [learning_rate_at(step, given) for step in range(1, steps + 1)]
    assert all(0 < rate <= 0.5 for rate in rates)
    assert rates[:warmup] == sorted(rates[:warmup]) and rates[warmup:] == sorted(rates[warmup:], reverse=True)
    if warmup:
        assert rates[warmup - 1] == 0.5
    assert learning_rate_at(steps + 1, given) == pytest.approx(0, abs=1e-12) or warmup > steps
    assert learning_rate_at(steps + 2, given) == pytest.approx(0, abs=1e-12)


def test_the_cosine_passes_its_middle_half_way() -> None:
    given = settings(steps=109, warmup=10, learning_rate=1.0)
    assert learning_rate_at(60, given) == pytest.approx((1 + math.cos(math.pi / 2)) / 2)


def rates(**given: Any) -> list[float]:
    found = settings(learning_rate=0.5, **given)
    return [learning_rate_at(step, found) for step in range(1, found.steps + 1)]


@pytest.mark.parametrize(("steps", "warmup"), [(1, 1), (30, 1), (30, 10), (30, 30)])
def test_a_line_up_and_a_line_down(steps: int, warmup: int) -> None:
    line = [0.5 * min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup)) for step in range(1, steps + 1)]
    assert rates(schedule="linear", steps=steps, warmup=warmup) == pytest.approx(line)


def test_constant_stays_after_the_warm_up() -> None:
    assert rates(schedule="constant", steps=20, warmup=4) == [0.125, 0.25, 0.375] + [0.5] * 17


def test_the_inverse_root_is_the_papers_up_to_its_scale() -> None:
    """Vaswani et al. (2017), equation 3: d^-0.5 · min(step^-0.5, step · warmup^-1.5)."""
    paper = [min(step**-0.5, step * 9**-1.5) for step in range(1, 51)]
    assert rates(schedule="inverse-root", steps=50, warmup=9) == pytest.approx([0.5 * 9**0.5 * rate for rate in paper])


def test_the_notebooks_ramp_times_cosine_is_the_product_of_both_over_all_steps() -> None:
    product = [0.5 * min(1, s / 10) * (1 + math.cos(math.pi * s / 51)) / 2 for s in range(1, 51)]
    found = rates(schedule="ramp-times-cosine", steps=50, warmup=10)
    assert found == pytest.approx(product) and max(found) < 0.5


def truths(**given: Any) -> list[float]:
    found = settings(**given)
    return [teacher_forcing_at(step, found) for step in range(1, found.steps + 1)]


def test_the_share_of_truth_is_constant_a_line_or_a_power() -> None:
    assert truths(steps=5, teacher_forcing=0.3) == [0.3] * 5
    assert truths(steps=5, teacher_forcing=0.2, teacher_forcing_schedule="linear") == pytest.approx(
        [1, 0.8, 0.6, 0.4, 0.2]
    )
    powers = [0.0625 ** (way / 4) for way in range(5)]
    assert truths(steps=5, teacher_forcing=0.0625, teacher_forcing_schedule="exponential") == pytest.approx(powers)
    assert truths(steps=1, warmup=1, teacher_forcing=0.4, teacher_forcing_schedule="linear") == [0.4]


@pytest.mark.parametrize("steps", [1, 2, 10, 300, 5_000])
def test_the_inverse_sigmoid_is_bengios_and_half_way_down_at_half_of_the_steps(steps: int) -> None:
    """Bengio et al. (2015): k / (k + exp(i / k)); the k is what the middle asks for."""
    given = settings(steps=steps, warmup=1, teacher_forcing=0.0, teacher_forcing_schedule="inverse-sigmoid")
    found = [teacher_forcing_at(step, given) for step in range(1, steps + 1)]
    if steps % 2 == 0:
        assert teacher_forcing_at(steps // 2, given) == pytest.approx(0.5)
        k = (steps / 2) / math.log(_k(steps / 2))
        assert found == pytest.approx([k / (k + math.exp(step / k)) for step in range(1, steps + 1)])
    assert found == sorted(found, reverse=True) and 0 < found[-1] <= 0.5


def _k(half: float) -> float:
    """By bisection."""
    low, high = 1.0, half + 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.log(middle) < half else (low, middle)
    return low


def test_what_an_exponential_never_reaches_is_refused() -> None:
    with pytest.raises(RecipeError, match="never reaches"):
        Recipe().override("train.teacher_forcing=0", "train.teacher_forcing_schedule=exponential")
