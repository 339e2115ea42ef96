"""The learning rate of a step, what decays, and a memory that comes back."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from seqloom.errors import RunError
from seqloom.recipe import Train
from seqloom.training.optimiser import adamw, load_memory, memory_of, rate_at, set_rate

from .tiny import Guesser, same, settings


@given(st.integers(1, 3000), st.data())
def test_the_rate_is_a_line_and_then_half_a_cosine(steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, steps))
    given = Train(steps=steps, rate=0.5).model_copy(update={"warmup": warmup})
    rates = [rate_at(step, given) for step in range(1, steps + 1)]
    line = [0.5 * step / warmup for step in range(1, warmup + 1)]
    assert rates[:warmup] == pytest.approx(line)
    # torch's own schedule, which is defined from one step to the next
    weight = nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([weight], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps + 1 - warmup)
    for rate in rates[warmup:]:
        optimiser.step()
        schedule.step()
        assert rate == pytest.approx(schedule.get_last_lr()[0], rel=1e-6, abs=1e-9)


@given(st.integers(1, 3000), st.data())
def test_no_step_is_made_in_vain_and_the_rate_is_never_above_the_one_asked_for(steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, steps))
    given = Train(steps=steps, rate=0.5).model_copy(update={"warmup": warmup})
    rates = [rate_at(step, given) for step in range(1, steps + 1)]
    assert all(0 < rate <= 0.5 for rate in rates)
    assert rates[:warmup] == sorted(rates[:warmup]) and rates[warmup:] == sorted(rates[warmup:], reverse=True)
    if warmup:
        assert rates[warmup - 1] == 0.5
    assert rate_at(steps + 1, given) == pytest.approx(0, abs=1e-12) or warmup > steps
    assert rate_at(steps + 2, given) == pytest.approx(0, abs=1e-12)


def test_matrices_decay_and_biases_and_norms_do_not() -> None:
    module = Guesser()
    optimiser = adamw(module, settings(weight_decay=0.25))
    decay = {id(each): group["weight_decay"] for group in optimiser.param_groups for each in group["params"]}
    for name, parameter in module.named_parameters():
        plain = "bias" in name or name.startswith("norm.")
        assert decay[id(parameter)] == (0.0 if plain else 0.25), name
    assert len(decay) == len(list(module.parameters()))


def test_frozen_weights_are_not_the_optimisers() -> None:
    module = Guesser()
    module.embed.weight.requires_grad_(False)
    optimiser = adamw(module, settings())
    assert all(each is not module.embed.weight for group in optimiser.param_groups for each in group["params"])


def test_a_step_is_the_one_of_the_paper() -> None:
    """Loshchilov and Hutter (2019), algorithm 2, in float64."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2).double()
    optimiser = adamw(layer, settings(weight_decay=0.1))
    weight, first, second = layer.weight.detach().clone(), torch.zeros(2, 3), torch.zeros(2, 3)
    for step in range(1, 6):
        gradient = torch.randn(2, 3, dtype=torch.float64)
        layer.weight.grad, layer.bias.grad = gradient.clone(), torch.zeros_like(layer.bias)
        rate = 0.01 * step
        set_rate(optimiser, rate)
        optimiser.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        move = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        weight = weight - rate * (move + 0.1 * weight)
        torch.testing.assert_close(layer.weight.detach(), weight)


def stepped(seed: int = 0) -> tuple[Guesser, torch.optim.Optimizer]:
    module = Guesser(seed)
    optimiser = adamw(module, settings())
    for _ in range(3):
        for name, parameter in module.named_parameters():
            # one that never gets a gradient has no memory either
            parameter.grad = None if name == "norm.bias" else torch.randn_like(parameter)
        optimiser.step()
    return module, optimiser


def test_an_optimiser_with_its_memory_back_goes_on_as_if_nothing_had_been() -> None:
    module, optimiser = stepped()
    memory = memory_of(optimiser, module)
    other = Guesser()
    other.load_state_dict(module.state_dict())
    again = adamw(other, settings())
    load_memory(again, other, memory, "here")
    assert same(memory_of(again, other), memory) and "exp_avg/norm.bias" not in memory
    for one, two in zip(module.parameters(), other.parameters(), strict=True):
        one.grad = torch.randn_like(one)
        two.grad = one.grad.clone()
    optimiser.step()
    again.step()
    assert same(dict(module.state_dict()), dict(other.state_dict()))
    assert same(memory_of(again, other), memory_of(optimiser, module))


def test_the_memory_is_a_copy() -> None:
    module, optimiser = stepped()
    memory = memory_of(optimiser, module)
    before = {name: tensor.clone() for name, tensor in memory.items()}
    optimiser.step()
    assert same(memory, before)


def test_a_loaded_memory_is_the_optimisers_own() -> None:
    module, optimiser = stepped()
    memory = memory_of(optimiser, module)
    before = {name: tensor.clone() for name, tensor in memory.items()}
    load_memory(optimiser, module, memory, "here")
    optimiser.step()
    assert same(memory, before)


@dataclass
class Change:
    name: str
    value: torch.Tensor | None


@pytest.mark.parametrize(
    "change",
    [
        Change("exp_avg/tell.bias", None),
        Change("step/tell.bias", None),
        Change("exp_avg/tell.bias", torch.zeros(3)),
        Change("exp_avg_sq/tell.bias", torch.zeros(12, dtype=torch.float64)),
        Change("step/tell.bias", torch.zeros(1)),
        Change("step/tell.bias", torch.zeros((), dtype=torch.int64)),
        Change("exp_avg/elsewhere", torch.zeros(1)),
        Change("loss/tell.bias", torch.zeros(12)),
    ],
)
def test_a_memory_that_does_not_fit_is_refused(change: Change) -> None:
    module, optimiser = stepped()
    memory = {**memory_of(optimiser, module), change.name: change.value}
    fitting = {name: tensor for name, tensor in memory.items() if tensor is not None}
    with pytest.raises(RunError, match=r"^step-3: .*(tell\.bias|elsewhere)"):
        load_memory(adamw(module, settings()), module, fitting, "step-3")


def test_the_cosine_passes_its_middle_half_way() -> None:
    given = settings(steps=109, warmup=10, rate=1.0)
    assert rate_at(60, given) == pytest.approx((1 + math.cos(math.pi / 2)) / 2)
