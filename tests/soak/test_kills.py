"""Killed at any moment and taken up again, a run comes to the same bits."""

import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.runs import pipeline as program
from seqloom.training import checkpoints as writing
from seqloom.training.checkpoints import Checkpoint, Checkpoints

from .runs import EVALUATION, KINDS, assert_as_if_nothing_had_been, child, ended, kill_myself, task, training, whole

pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]


@pytest.mark.parametrize("number", range(100))
def test_killed_at_a_random_moment(tmp_path: Path, number: int) -> None:
    kind, chance = list(KINDS)[number % len(KINDS)], random.Random(number)
    _, seconds = whole(kind)
    for attempt in itertools.count():
        folder = tmp_path / f"run-{attempt}"
        process = child(lambda folder=folder: training(kind, folder))
        time.sleep(chance.uniform(0.05, 1.0) * seconds)
        os.kill(process, signal.SIGKILL)
        if ended(process) == -signal.SIGKILL:  # else it was faster today, and there was nothing to kill
            break
    folder.mkdir(exist_ok=True)
    assert_as_if_nothing_had_been(kind, folder)


Arrange = Callable[[str], None]  # for a run of this kind, to be called in its process


def at_call(owner: Any, name: str, number: int) -> Arrange:
    """Arrange a kill at the beginning of the number-th call; where no owner is named, it is the kind's task."""

    def arrange(kind: str) -> None:
        its = owner or task(kind)
        called = name or EVALUATION.get(kind, "predict")
        count, call = itertools.count(1), getattr(its, called)

        def perhaps(*given: Any, **named: Any) -> Any:
            if next(count) == number:
                kill_myself()
            return call(*given, **named)

        setattr(its, called, perhaps)

    return arrange


MOMENTS: dict[str, list[Arrange]] = {
    "in the middle of an epoch": [at_call(None, "batch", 6)],
    "on the boundary of an epoch": [at_call(None, "order", 4)],
    "in an evaluation": [at_call(None, "", 3)],
    "in the middle of writing a checkpoint": [at_call(writing, "write_synced", 9)],
    "twice in one epoch": [at_call(None, "batch", 6), at_call(None, "batch", 3)],
    "twice in scoring": [at_call(program, "finish", 1), at_call(program, "card", 1)],
}
SPECIAL = [(moment, kind) for moment in MOMENTS for kind in KINDS]


def meets(arrange: Arrange, kind: str, folder: Path) -> None:
    def act() -> None:
        arrange(kind)
        training(kind, folder)

    assert ended(child(act)) == -signal.SIGKILL


@pytest.mark.parametrize(("moment", "kind"), SPECIAL)
def test_killed_at_a_special_moment(tmp_path: Path, moment: str, kind: str) -> None:
    for arrange in MOMENTS[moment]:
        meets(arrange, kind, tmp_path / "run")
    assert_as_if_nothing_had_been(kind, tmp_path / "run")


def numbered(step: int) -> Checkpoint:
    """A checkpoint whose whole content follows from its step."""
    tensor = torch.full((40_000,), float(step))
    return Checkpoint(step, {"w": tensor}, {"m/w": tensor}, {"w": tensor}, {"0000": tensor}, {"step": step})


@pytest.mark.parametrize("number", range(200))
def test_killed_while_a_checkpoint_is_written(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(numbered(1))

    def save_on() -> None:
        for step in itertools.count(2):
            checkpoints.save(numbered(step))

    process = child(save_on)
    time.sleep(chance.uniform(0.0, 0.15))
    os.kill(process, signal.SIGKILL)
    assert ended(process) == -signal.SIGKILL
    again = Checkpoints(tmp_path)
    again.sweep()
    found = again.find_newest()
    assert found is not None and not again.skipped_checkpoints and found.step == again.steps()[0]
    for part in (found.weights, found.optimizer, found.average, found.carried):
        assert all((tensor == found.step).all() for tensor in part.values()) and len(part) == 1
    again.save(numbered(found.step + 1))
    assert again.find_newest() is not None and again.steps()[0] == found.step + 1
