"""Several processes: one of them killed, and every combination reads in the same order."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from seqloom.training.processes import ProcessGroup
from tests.training.test_processes import given_for, left, trained
from tests.training.together import together

from .runs import home, outcome, recipe

pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]


def started(folder: Path, *more: str) -> "subprocess.Popen[str]":
    """A real training in two processes."""
    place = home() / "recipe.toml"
    place.write_text(recipe("lstm").to_toml(comments=False), "utf-8")
    command = [sys.executable, "-m", "seqloom", "train", str(place), "--into", str(folder), "--processes", "2", *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@cache
def undisturbed() -> tuple[Path, float]:
    begun, folder = time.monotonic(), home() / "two"
    with started(folder) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return folder, time.monotonic() - begun


def children(number: int) -> list[int]:
    return list(map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split()))


@pytest.mark.parametrize("number", range(20))
def test_a_killed_process_is_replaced_within_thirty_seconds_and_nothing_shows(tmp_path: Path, number: int) -> None:
    chance, (whole, seconds) = random.Random(number), undisturbed()
    folder = tmp_path / "run"
    with started(folder) as process:
        while not (folder / "records.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(chance.uniform(0.0, 0.2) * seconds)
        ranks = children(process.pid)
        if len(ranks) == 2:
            os.kill(ranks[number % 2], signal.SIGKILL)
        begun = time.monotonic()
        while process.poll() is None and set(children(process.pid)) & set(ranks):
            assert time.monotonic() - begun < 30
            time.sleep(0.02)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert outcome(folder) == outcome(whole)


CASES = ("plain", "stream", "windows", "teacher")


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_the_order_does_not_depend_on_the_number_of_processes(
    tmp_path: Path, case: str, count: int, accumulate: int
) -> None:
    given = given_for(case, accumulate=accumulate)
    (tmp_path / "one").mkdir()
    trained(case, given, tmp_path / "one", ProcessGroup())
    together(count, lambda ranks: trained(case, given, tmp_path, ranks), tmp_path)
    asked, _, _ = left(tmp_path / "one", 1, 0)
    assert all(left(tmp_path, count, rank)[0] == asked for rank in range(count))
