"""What decays, what a step is, how a gradient is clipped, and a memory that comes back."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from seqloom.errors import RunError
from seqloom.training.optimizer import (
    build_optimizer,
    clip_gradients,
    get_optimizer_state,
    load_optimizer_state,
    set_learning_rate,
)
from seqloom.training.update import update

from .tiny import Guesser, Rows, same, settings


def test_matrices_decay_and_biases_and_norms_do_not() -> None:
    module = Guesser()
    optimizer = build_optimizer(module, settings(weight_decay=0.25))
    decay = {id(each): group["weight_decay"] for group in optimizer.param_groups for each in group["params"]}
    for name, parameter in module.named_parameters():
        plain = "bias" in name or name.startswith("norm.")
        assert decay[id(parameter)] == (0.0 if plain else 0.25), name
    assert len(decay) == len(list(module.parameters()))


def test_frozen_weights_are_not_the_optimizers() -> None:
    module = Guesser()
    module.embed.weight.requires_grad_(False)
    optimizer = build_optimizer(module, settings())
    assert all(each is not module.embed.weight for group in optimizer.param_groups for each in group["params"])


def test_a_step_is_the_one_of_the_paper() -> None:
    """Loshchilov and Hutter (2019), algorithm 2, in float64."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2).double()
    optimizer = build_optimizer(layer, settings(weight_decay=0.1))
    weight, first, second = layer.weight.detach().clone(), torch.zeros(2, 3), torch.zeros(2, 3)
    for step in range(1, 6):
        gradient = torch.randn(2, 3, dtype=torch.float64)
        layer.weight.grad, layer.bias.grad = gradient.clone(), torch.zeros_like(layer.bias)
        rate = 0.01 * step
        set_learning_rate(optimizer, rate)
        optimizer.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        move = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        weight = weight - rate * (move + 0.1 * weight)
        torch.testing.assert_close(layer.weight.detach(), weight)


OPTIMIZERS = ("adamw", "adam", "radam", "sgd")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_is_torchs_own(name: str) -> None:
    """With its own defaults but for what is set; AdamW and RAdam decay apart from the gradient."""
    torch.manual_seed(0)
    layer, plain = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    plain.load_state_dict(layer.state_dict())
    own = {"momentum": 0.7} if name == "sgd" else {"beta2": 0.95}
    optimizer = build_optimizer(layer, settings(optimizer=name, weight_decay=0.3, **own))
    groups = [{"params": [plain.weight], "weight_decay": 0.3}, {"params": [plain.bias]}]
    theirs = {
        "adamw": lambda: torch.optim.AdamW([groups[0], {**groups[1], "weight_decay": 0.0}], betas=(0.9, 0.95)),
        "adam": lambda: torch.optim.Adam(groups, betas=(0.9, 0.95)),
        "radam": lambda: torch.optim.RAdam(groups, betas=(0.9, 0.95), decoupled_weight_decay=True),
        "sgd": lambda: torch.optim.SGD(groups, momentum=0.7),
    }[name]()
    for step in range(1, 9):
        for one, other in zip(layer.parameters(), plain.parameters(), strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        set_learning_rate(optimizer, 0.01 * step)
        set_learning_rate(theirs, 0.01 * step)
        optimizer.step()
        theirs.step()
    for one, other in zip(layer.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("limit", [0.0, 0.5, 1e3])
@pytest.mark.parametrize("value", [0.0, 0.05, 1e3])
def test_a_gradient_is_clipped_as_torch_does_first_its_norm_and_then_its_values(limit: float, value: float) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(5, 4).double()
    sums = [torch.randn_like(each) * 12 for each in layer.parameters()]
    for each, total in zip(layer.parameters(), sums, strict=True):
        each.grad = total / 6
    norm = nn.utils.get_total_norm([each.grad for each in layer.parameters()]).item()
    clip_gradients(sums, norm, 6.0, settings(clip_norm=limit, clip_value=value))
    if limit:
        nn.utils.clip_grad_norm_(layer.parameters(), limit)
    if value:
        nn.utils.clip_grad_value_(layer.parameters(), value)
    for each, mine in zip(layer.parameters(), sums, strict=True):
        torch.testing.assert_close(mine, each.grad, rtol=1e-5, atol=1e-9)  # torch adds 1e-6 to the norm


def stepped(seed: int = 0, name: str = "adamw") -> tuple[Guesser, torch.optim.Optimizer]:
    module = Guesser(seed)
    optimizer = build_optimizer(module, settings(optimizer=name))
    for _ in range(3):
        for name, parameter in module.named_parameters():
            # one that never gets a gradient has no memory either
            parameter.grad = None if name == "norm.bias" else torch.randn_like(parameter)
        optimizer.step()
    return module, optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_with_its_memory_back_goes_on_as_if_nothing_had_been(name: str) -> None:
    module, optimizer = stepped(name=name)
    memory = get_optimizer_state(optimizer, module)
    other = Guesser()
    other.load_state_dict(module.state_dict())
    again = build_optimizer(other, settings(optimizer=name))
    load_optimizer_state(again, other, memory, "here")
    assert same(get_optimizer_state(again, other), memory) and memory
    assert not any(key.endswith("/norm.bias") for key in memory)
    for one, two in zip(module.parameters(), other.parameters(), strict=True):
        one.grad = torch.randn_like(one)
        two.grad = one.grad.clone()
    optimizer.step()
    again.step()
    assert same(dict(module.state_dict()), dict(other.state_dict()))
    assert same(get_optimizer_state(again, other), get_optimizer_state(optimizer, module))


def test_the_memory_is_a_copy() -> None:
    module, optimizer = stepped()
    memory = get_optimizer_state(optimizer, module)
    before = {name: tensor.clone() for name, tensor in memory.items()}
    optimizer.step()
    assert same(memory, before)


def test_a_loaded_memory_is_the_optimizers_own() -> None:
    module, optimizer = stepped()
    memory = get_optimizer_state(optimizer, module)
    before = {name: tensor.clone() for name, tensor in memory.items()}
    load_optimizer_state(optimizer, module, memory, "here")
    optimizer.step()
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
    module, optimizer = stepped()
    memory = {**get_optimizer_state(optimizer, module), change.name: change.value}
    fitting = {name: tensor for name, tensor in memory.items() if tensor is not None}
    with pytest.raises(RunError, match=r"^step-3: .*(tell\.bias|elsewhere)"):
        load_optimizer_state(build_optimizer(module, settings()), module, fitting, "step-3")


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "radam", "sgd"])
def test_every_step_leaves_a_trace_on_the_weights_for_those_who_keep_something_made_of_them(optimizer: str) -> None:
    module, rows, given = Guesser(), Rows(), settings(optimizer=optimizer)
    before = [parameter._version for parameter in module.parameters()]
    update(module, build_optimizer(module, given), [rows.batch(rows.order(0)[0])], given)
    assert all(now._version > then for now, then in zip(module.parameters(), before, strict=True))
