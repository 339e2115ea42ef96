"""A disk that refuses, files that are damaged, signals, numbers that are none: nothing is lost, and it is said."""

import errno
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.errors import RunError
from seqloom.models import Batch, GenerationObjective
from seqloom.runs.run import train
from seqloom.training import checkpoints as writing
from seqloom.training import files
from seqloom.training.checkpoints import AVERAGE, CARRIED, OPTIMIZER, STATE, WEIGHTS, Checkpoints
from seqloom.training.loop import SKIPPED_AT_MOST
from seqloom.training.manifests import MANIFEST

from ..recipes import measured
from .runs import KINDS, assert_as_if_nothing_had_been, child, ended, kill_myself, outcome, recipe, training, whole

pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]
REFUSED = 5  # how a process of these tests ends that has said its sentence


def refusing(act: Callable[[], None], *words: str) -> None:
    """This ends with one sentence that holds these words."""

    def tried() -> None:
        try:
            act()
        except RunError as error:
            said = str(error)
            os._exit(REFUSED if all(word in said for word in words) and "\n" not in said else 3)

    assert ended(child(tried)) == REFUSED


def full_from(number: int, fault: int, name: str) -> None:
    """From the number-th call on, nothing can be written any more."""
    count = itertools.count(1)

    def around(call: Any) -> Any:
        def perhaps(*given: Any, **named: Any) -> Any:
            if next(count) >= number:
                raise OSError(fault, os.strerror(fault))
            return call(*given, **named)

        return perhaps

    if name == "write":
        files.write_synced = writing.write_synced = around(files.write_synced)
    else:
        os.replace = around(os.replace)


DISK = [("write", errno.ENOSPC, number) for number in range(20)] + [("rename", errno.EROFS, n) for n in range(8)]


@pytest.mark.parametrize(("call", "fault", "number"), DISK)
def test_a_disk_that_is_full_or_read_only_is_one_sentence_and_nothing_is_lost(
    tmp_path: Path, call: str, fault: int, number: int
) -> None:
    kind, chance = list(KINDS)[number % len(KINDS)], random.Random(number)
    moment = chance.randint(1, 40 if call == "write" else 15)

    def act() -> None:
        full_from(moment, fault, call)
        training(kind, tmp_path / "run")

    refusing(act, os.strerror(fault))
    assert_as_if_nothing_had_been(kind, tmp_path / "run")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 16
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, flip, os.unlink], ids=["cut", "flipped", "missing"])
@pytest.mark.parametrize("name", [WEIGHTS, OPTIMIZER, AVERAGE, CARRIED, STATE, MANIFEST])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    kind, folder = "lstm", tmp_path / "run"

    def until_killed() -> None:
        for record in train(recipe(kind), folder):
            if record.step == 15:
                kill_myself()

    assert ended(child(until_killed)) == -signal.SIGKILL
    newest, before, *_ = Checkpoints(folder / "checkpoints").steps()
    damage(folder / "checkpoints" / f"step-{newest}" / name)
    checkpoints = Checkpoints(folder / "checkpoints")
    assert (found := checkpoints.find_newest()) is not None and found.step == before
    assert f"step-{newest}" in checkpoints.skipped_checkpoints[0]
    assert_as_if_nothing_had_been(kind, folder)


@pytest.mark.parametrize("number", range(2))
def test_data_that_has_changed_is_refused_and_the_run_goes_on_once_it_is_back(tmp_path: Path, number: int) -> None:
    kind, folder = "gru", tmp_path / "run"

    def until_killed() -> None:
        for record in train(recipe(kind), folder):
            if record.step == 5 * (number + 1):
                kill_myself()

    assert ended(child(until_killed)) == -signal.SIGKILL
    [data] = recipe(kind).data.train
    shutil.copy(data, tmp_path / "kept")
    text = Path(data).read_text("utf-8")
    Path(data).write_text(text + "ab\tba\n" if number else text[: text.rindex("\n", 0, -1) + 1], "utf-8")
    try:
        refusing(lambda: training(kind, folder), "the data has changed")
    finally:
        shutil.copy(tmp_path / "kept", data)
    assert_as_if_nothing_had_been(kind, folder)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_a_second_process_is_refused_and_disturbs_nothing(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "run"
    records = measured(train(recipe(kind), folder))
    next(records)
    refusing(lambda: training(kind, folder), "another process")
    for _ in records:
        pass
    assert outcome(folder) == outcome(whole(kind)[0])


@pytest.mark.parametrize("number", range(20))
def test_a_signal_saves_within_ten_seconds_and_says_how_to_go_on(tmp_path: Path, number: int) -> None:
    kind, folder, chance = list(KINDS)[number % len(KINDS)], tmp_path / "run", random.Random(number)
    (tmp_path / "recipe.toml").write_text(recipe(kind).to_toml(comments=False), "utf-8")
    command = [sys.executable, "-m", "seqloom", "train", str(tmp_path / "recipe.toml"), "--into", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while not (folder / MANIFEST).exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(chance.uniform(0.0, 0.5) * whole(kind)[1])
        process.send_signal(signal.SIGTERM if number % 2 else signal.SIGINT)
        begun = time.monotonic()
        _, said = process.communicate(timeout=60)
        assert time.monotonic() - begun < 10
    assert process.returncode in (0, 130), said
    if process.returncode == 130:
        assert "--resume" in said and Checkpoints(folder / "checkpoints").find_newest() is not None
    assert_as_if_nothing_had_been(kind, folder)


def poisoned(where: str, batches: range) -> Any:
    """Writing that goes wrong on these batches: in the loss, in the gradient, or in what is read."""
    count, plain = itertools.count(), GenerationObjective.forward

    def forward(self: GenerationObjective, batch: Batch, state: Any = None) -> Any:
        if not self.model.training or next(count) not in batches:
            return plain(self, batch, state)
        if where == "input":
            embed = self.model.embed.forward
            self.model.embed.forward = lambda tokens: embed(tokens) * torch.nan
            try:
                return plain(self, batch, state)
            finally:
                self.model.embed.forward = embed
        loss, number, state = plain(self, batch, state)
        weight = next(iter(self.model.head.parameters()))
        return loss + (torch.nan if where == "loss" else (weight - weight.detach()).abs().sqrt().sum()), number, state

    return forward


@pytest.mark.parametrize("kind", ["gru", "transformer"])
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("where", ["loss", "gradient", "input"])
def test_numbers_that_are_none_are_skipped_counted_and_stop_the_training_after_ten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, lasting: bool, kind: str
) -> None:
    monkeypatch.setattr(GenerationObjective, "forward", poisoned(where, range(9, 10**9) if lasting else range(9, 12)))
    records = measured(train(recipe(kind), tmp_path / "run"))
    if not lasting:
        found = list(records)
        assert found[-1].skipped == 3 and found[-1].kind == "end"
        return
    with pytest.raises(RunError, match=rf"stopped at step {9 + SKIPPED_AT_MOST}.*the examples \d+"):
        list(records)
    newest = Checkpoints(tmp_path / "run" / "checkpoints").find_newest()
    assert newest is not None and all(tensor.isfinite().all() for tensor in newest.weights.values())
    assert newest.state["skipped"] < SKIPPED_AT_MOST
