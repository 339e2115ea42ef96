"""Where it is trained and how exactly: chosen by what is there and measured, kept, and exact on resuming."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.layers.fast.native import library
from seqloom.models import Batch
from seqloom.runs.run import load, train
from seqloom.training import devices
from seqloom.training.devices import Machine, choose_device, choose_machine, measure_precisions
from seqloom.training.optimizer import build_optimizer
from seqloom.training.records import GROW_LOSS_SCALE_AFTER, Progress
from seqloom.training.tensors import copy_weights
from seqloom.training.update import update

from ..recipes import measured, small
from .cutting import Run, assert_same, cut_at_batch
from .test_windows import Pairs, writing
from .tiny import Guesser, Rows, same, settings


@pytest.mark.parametrize(
    ("speeds", "chosen"),
    [
        ({"float32": 1.0, "bfloat16": 0.01}, "float32"),
        ({"float32": 1.0, "bfloat16": 1.1, "float16": 1.1}, "float32"),
        ({"float32": 1.0, "bfloat16": 3.0, "float16": 4.0}, "bfloat16"),
        ({"float32": 1.0, "bfloat16": 0.5, "float16": 4.0}, "float16"),
    ],
)
def test_a_lower_precision_is_taken_only_where_it_is_measured_to_be_much_faster(
    speeds: dict[str, float], chosen: str
) -> None:
    assert choose_machine("cpu", "auto", measure=lambda device: speeds) == Machine(  # type: ignore[arg-type]
        "cpu", chosen, speeds, torch.get_num_threads(), 1
    )


def test_what_is_asked_for_is_not_measured() -> None:
    def never(device: torch.device) -> dict[str, float]:
        raise AssertionError

    assert choose_machine("cpu", "bfloat16", measure=never) == Machine(
        "cpu", "bfloat16", {}, torch.get_num_threads(), 1
    )


def test_speeds_are_those_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {torch.float32: 2.0, torch.bfloat16: 8.0}
    monkeypatch.setattr(devices, "time_product", lambda device, dtype, given_up=False: times[dtype])
    assert measure_precisions.__wrapped__(torch.device("cpu")) == {"float32": 1.0, "bfloat16": 0.25}


def test_a_busy_moment_does_not_make_single_precision_look_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([9.0, 2.0, 1.0])  # single, bfloat16, single again
    monkeypatch.setattr(devices, "time_product", lambda device, dtype, given_up=False: next(taken))
    assert measure_precisions.__wrapped__(torch.device("cpu")) == {"float32": 1.0, "bfloat16": 0.5}


@pytest.mark.parametrize(("given_up", "time"), [(False, 0.25), (True, 5.0)])
def test_a_slow_first_product_decides_only_where_others_are_given_up(
    monkeypatch: pytest.MonkeyPatch, given_up: bool, time: float
) -> None:
    ends = [10.0 * n + (0.25 if n else 5.0) for n in range(5)]
    clock = iter([0.0, *(t for n, end in enumerate(ends) for t in (10.0 * n, end)), 99.0])
    monkeypatch.setattr(devices, "perf_counter", lambda: next(clock))
    assert devices.time_product(torch.device("cpu"), torch.float32, given_up) == time


def test_a_product_is_timed_on_this_machine() -> None:
    assert 0 < devices.time_product(torch.device("cpu"), torch.float32) < 10


def test_auto_is_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    with pytest.raises(RecipeError, match='train.device is "cuda", but torch finds no such device'):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert choose_device("auto") == torch.device("cuda", 1)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(RecipeError, match="one process"):
        choose_machine("mps", "float32", processes=2)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["transformer", "gru"])
def test_a_run_in_low_precision_resumes_to_the_same_bits(tmp_path: Path, kind: str, precision: str) -> None:
    given = settings(precision=precision, steps=10, validate_every=4, checkpoint_every=3, bptt_window=2)
    make = writing(f"model.kind={kind}")
    whole = Run(tmp_path / "whole", given, make, Pairs).whole()
    assert not same(copy_weights(whole.objective), copy_weights(Run(None, settings(), make, Pairs).objective))
    cut = Run(tmp_path / "cut", given, make, Pairs)
    cut_at_batch(cut, 5)
    again = cut.rebuilt()
    assert again.records
    again.whole()
    assert_same(whole, again)
    still = writing(f"model.kind={kind}", "model.dropout=0")  # whose masks are drawn otherwise in another precision
    both = [Run(None, given.model_copy(update={"precision": one}), still, Pairs) for one in (precision, "float32")]
    losses = [[record.loss for record in run.whole().records] for run in both]
    assert losses[0] != losses[1] and losses[0] == pytest.approx(losses[1], rel=0.05)


class Seeing(nn.Linear):
    """A layer that notes in what precision it answers."""

    seen: list[torch.dtype] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        self.seen.append(y.dtype)
        return y


def test_products_are_cast_but_weights_gradients_and_loss_are_not() -> None:
    objective, rows = Guesser(dropout=0.0), Rows()
    objective.tell, Seeing.seen = Seeing(6, 12), []
    batch, given = rows.batch(rows.order(0)[0]), settings(precision="bfloat16")
    update(objective, build_optimizer(objective, given), [batch], given)
    assert Seeing.seen == [torch.bfloat16]
    for parameter in objective.parameters():
        assert parameter.dtype == torch.float32 and parameter.grad is not None and parameter.grad.dtype == torch.float32


def test_a_magnified_loss_gives_the_same_step() -> None:
    made: list[Any] = []
    for magnified in (1.0, 64.0):
        objective, rows = Guesser(dropout=0.0), Rows()
        optimizer = build_optimizer(objective, settings())
        batches: list[Batch] = [rows.batch(order) for order in rows.order(0)[:2]]
        made.append((update(objective, optimizer, batches, settings(), loss_scale=magnified), copy_weights(objective)))
    (one, weights), (other, others) = made
    assert (one.loss, one.count) == (other.loss, other.count) and one.norm == pytest.approx(other.norm, rel=1e-6)
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, others[name])


def test_what_overflows_is_magnified_less_and_what_never_does_more() -> None:
    progress = Progress()
    first = progress.loss_scale
    progress.update_loss_scale(False)
    assert progress.loss_scale == first / 2
    for _ in range(GROW_LOSS_SCALE_AFTER):
        assert progress.loss_scale == first / 2
        progress.update_loss_scale(True)
    assert progress.loss_scale == first
    for _ in range(3 * GROW_LOSS_SCALE_AFTER):
        progress.update_loss_scale(True)
    assert progress.loss_scale == first * 2**3


def test_a_run_keeps_the_device_and_the_precision_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, folder = small(tmp_path, "train.steps=4", "train.validate_every=2"), tmp_path / "run"
    monkeypatch.setattr(devices, "measure_precisions", lambda device: {"float32": 1.0, "bfloat16": 9.0})
    next(measured(train(recipe, folder)))
    kept = Recipe.read(folder / "recipe.toml").train
    assert (kept.device, kept.precision) == ("cpu", "bfloat16")
    machine = json.loads((folder / "config.json").read_text())["machine"]
    threads = {"threads": torch.get_num_threads(), "processes": 1}
    speeds = {"float32": 1.0, "bfloat16": 9.0}
    assert machine == {"device": "cpu", "precision": "bfloat16", "measured": speeds} | threads | {
        "kernels": str(library.status())
    }
    monkeypatch.setattr(devices, "measure_precisions", lambda device: {"float32": 1.0, "bfloat16": 0.1})
    with pytest.raises(RecipeError, match='train.precision = "bfloat16", not "float32"'):
        list(train(recipe.override("train.precision=float32"), folder, resume=True))
    list(train(recipe, folder, resume=True))
    assert Recipe.read(folder / "recipe.toml").train.precision == "bfloat16"
    assert "in bfloat16 on cpu" in (folder / "README.md").read_text()
    assert load(folder, device="cpu").predict("abc")
    with pytest.raises(RecipeError, match="no such device"):
        load(folder, device="cuda")
