"""Whatever happens while a checkpoint is written, the newest whole one loads and is what was saved."""

import errno
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from seqloom.errors import RunError
from seqloom.training.checkpoints import AVERAGE, CARRIED, OPTIMIZER, STATE, WEIGHTS, Checkpoint, Checkpoints
from seqloom.training.files import json_bytes
from seqloom.training.manifests import MANIFEST, compute_sums, write_manifest

from .faults import Killed, at_every_call, events
from .tiny import same

FILES = (WEIGHTS, OPTIMIZER, AVERAGE, CARRIED, STATE, MANIFEST)


def checkpoint(step: int, size: int = 10) -> Checkpoint:
    """One whose whole content follows from its step."""
    return Checkpoint(
        step,
        {"weight": torch.full((size,), float(step)), "bias": torch.tensor(float(step))},
        {"step/weight": torch.tensor(float(step))},
        {"weight": torch.full((3,), step / 3)},
        {"0000": torch.tensor([step % 256], dtype=torch.uint8)},
        {"step": step, "sum": step / 7},
    )


def is_whole(found: Checkpoint | None) -> bool:
    if found is None:
        return False
    meant = checkpoint(found.step, len(found.weights["weight"]))
    return found.state == meant.state and all(
        same(one, other)
        for one, other in [
            (found.weights, meant.weights),
            (found.optimizer, meant.optimizer),
            (found.average, meant.average),
            (found.carried, meant.carried),
        ]
    )


def newest_step(folder: Path) -> int | None:
    found = Checkpoints(folder).find_newest()
    assert found is None or is_whole(found)
    return None if found is None else found.step


def filled(folder: Path, *steps: int) -> Checkpoints:
    shutil.rmtree(folder, ignore_errors=True)
    checkpoints = Checkpoints(folder, keep=max(1, len(steps)))
    for step in steps:
        checkpoints.save(checkpoint(step))
    return Checkpoints(folder, keep=2)


def test_an_empty_or_absent_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).find_newest() is None
    absent = Checkpoints(tmp_path / "absent")
    absent.sweep()
    assert absent.find_newest() is None and not (tmp_path / "absent").exists()


def test_the_newest_is_the_one_of_the_highest_step_and_as_many_as_asked_for_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=3)
    for number, step in enumerate((2, 9, 10, 99, 100, 1000), start=1):
        checkpoints.save(checkpoint(step))
        assert newest_step(tmp_path / "checkpoints") == step
        assert len(checkpoints.steps()) == min(number, 3)
    assert checkpoints.steps() == [1000, 100, 99]
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step-100", "step-1000", "step-99"]
    assert sorted(os.listdir(tmp_path / "checkpoints" / "step-99")) == sorted(FILES)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def clear(path: Path) -> None:
    path.write_bytes(b"")


DAMAGE: list[Callable[[Path], None]] = [cut, flip, clear, os.unlink]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_passed_over_with_a_reason_and_does_not_count(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    checkpoints = filled(tmp_path / "c", 5, 6, 7)
    damage(tmp_path / "c" / "step-7" / name)
    assert is_whole(found := checkpoints.find_newest()) and found is not None and found.step == 6
    [reason] = checkpoints.skipped_checkpoints
    assert "step-7" in reason and "\n" not in reason
    checkpoints.save(checkpoint(8))  # keeps two whole ones; the damaged one is of no use any more
    assert checkpoints.steps() == [8, 6]
    assert checkpoints.find_newest() is not None and checkpoints.skipped_checkpoints == ()


def test_a_damaged_checkpoint_is_replaced_when_training_comes_there_again(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path, 5, 6, 7)
    cut(tmp_path / "step-7" / WEIGHTS)
    flip(tmp_path / "step-6" / STATE)
    assert (
        (found := checkpoints.find_newest()) is not None
        and found.step == 5
        and len(checkpoints.skipped_checkpoints) == 2
    )
    checkpoints.save(checkpoint(6))
    assert newest_step(tmp_path) == 6 and checkpoints.steps() == [6, 5]


def vouch(place: Path, names: Sequence[str]) -> None:
    write_manifest(place, compute_sums({name: (place / name).read_bytes() for name in names}))


def test_a_checkpoint_that_is_whole_but_hostile_is_passed_over(tmp_path: Path) -> None:
    """The sums are right, because whoever meant harm has made them so."""
    checkpoints = filled(tmp_path, 1, 2)
    place = tmp_path / "step-2"
    for name, content in [
        (WEIGHTS, b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x02os\x94."),
        (STATE, b'{"step": 2, "step": 3}'),
        (STATE, json_bytes([])),
    ]:
        kept = (place / name).read_bytes()
        (place / name).write_bytes(content)
        vouch(place, FILES[:-1])
        assert newest_step(tmp_path) == 1
        (place / name).write_bytes(kept)
        vouch(place, FILES[:-1])
    vouch(place, (WEIGHTS, STATE))
    assert (found := checkpoints.find_newest()) is not None and found.step == 1
    assert f"does not list {OPTIMIZER}" in checkpoints.skipped_checkpoints[0]


def test_other_names_in_the_folder_are_no_checkpoints(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path, 3)
    for name in (
        "step-",
        "step-04",
        "step--5",
        "step-5.old",
        "step-" + "9" * 5000 if os.name == "nt" else "x",
        "step-٣",
    ):
        (tmp_path / name).mkdir()
    assert checkpoints.steps() == [3]


def test_all_damaged_is_none_with_every_reason(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path, 3, 4)
    for step in (3, 4):
        shutil.rmtree(tmp_path / f"step-{step}")
        (tmp_path / f"step-{step}").touch()  # not even a folder
    assert checkpoints.find_newest() is None and len(checkpoints.skipped_checkpoints) == 2


@pytest.mark.parametrize("damaged", [False, True])
def test_a_kill_at_any_moment_of_saving_leaves_the_one_before_or_the_new_one(tmp_path: Path, damaged: bool) -> None:
    folder = tmp_path / "c"
    last, new = (2, 3) if damaged else (3, 4)

    def prepare() -> Callable[[], None]:
        checkpoints = filled(folder, 1, 2, 3)
        if damaged:
            cut(folder / "step-3" / WEIGHTS)
        checkpoints.find_newest()
        return lambda: checkpoints.save(checkpoint(new))

    seen = set()
    for came in at_every_call(prepare, Killed()):
        found = newest_step(folder)
        assert found == new if came is None else found in (last, new)
        seen.add(found)
        again = Checkpoints(folder, keep=2)
        again.sweep()
        assert not [name for name in os.listdir(folder) if name.startswith(".")]
        assert newest_step(folder) == found
        again.find_newest()
        again.save(checkpoint(9))  # and nothing that was left stands in the way
        assert newest_step(folder) == 9 and len(again.steps()) == 2
    assert seen == {last, new}


def test_all_is_on_the_disk_before_the_name_and_the_name_before_anything_is_removed(tmp_path: Path) -> None:
    checkpoints = filled(tmp_path / "c", 1, 2)
    seen = events(lambda: checkpoints.save(checkpoint(3)))
    renamed, known = seen.index(("rename", "step-3")), seen.index(("sync", "c"))
    assert {name for what, name in seen[:renamed] if what == "sync"} == {*FILES, ".step-3.partial"}
    assert seen.index(("sync", ".step-3.partial")) == renamed - 1 and known == renamed + 1
    assert ("rename", ".step-1.old.partial") in seen[known:]
    assert not [name for what, name in seen[:known] if what == "remove"]
    first = events(lambda: Checkpoints(tmp_path / "run" / "d").save(checkpoint(1)))
    assert first[0] == ("sync", "run"), "the folder of the first checkpoint has a name that must last too"


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_refusal_at_any_call_is_one_sentence_and_earlier_checkpoints_stay(
    tmp_path: Path, number: int, lasting: bool
) -> None:
    folder = tmp_path / "c"

    def prepare() -> Callable[[], None]:
        checkpoints = filled(folder, 1, 2)
        return lambda: checkpoints.save(checkpoint(3))

    refused = 0
    for came in at_every_call(prepare, OSError(number, os.strerror(number)), lasting):
        if came is not None:
            refused += 1
            assert isinstance(came, RunError) and os.strerror(number) in str(came) and "\n" not in str(came)
        assert newest_step(folder) in (2, 3)
        if newest_step(folder) == 2:
            assert Checkpoints(folder).steps() == [2, 1]
    assert refused >= 10


def test_a_disk_that_fills_up_within_a_file_is_one_sentence(tmp_path: Path) -> None:
    """A real refusal by the system: no file may grow beyond a limit."""
    checkpoints = filled(tmp_path, 1, 2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(RunError, match=r"step-3: cannot be written, earlier checkpoints are untouched \(File too"):
            checkpoints.save(checkpoint(3, size=100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert sorted(os.listdir(tmp_path)) == ["step-1", "step-2"] and newest_step(tmp_path) == 2


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="step-1: cannot be written"):
        Checkpoints(tmp_path / "file" / "checkpoints").save(checkpoint(1))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_killed_while_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # on the real disk
    chance = random.Random(5)
    reached = 1
    Checkpoints(tmp_path).save(checkpoint(reached, size=50_000))
    for _ in range(15):
        child = os.fork()
        if child == 0:
            checkpoints = Checkpoints(tmp_path)
            try:
                checkpoints.sweep()
                for step in range(reached + 1, 1_000_000):
                    checkpoints.save(checkpoint(step, size=50_000))
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the child was to be killed while it saved, not to end by itself"
        found = newest_step(tmp_path)
        assert found is not None and found >= reached
        reached = found
    assert reached > 1
