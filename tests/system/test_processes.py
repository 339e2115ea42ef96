"""Several processes as a person starts them: by --processes or by torchrun; and one of them killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seqloom.training.checkpoints import Checkpoints

from ..recipes import small

TIMINGS = ("seconds", "tokens_per_second")
PYTHON = (sys.executable, "-m")
TORCHRUN = (*PYTHON, "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    steps = ("train.steps=12", "train.validate_every=6", "train.checkpoint_every=3", "model.dropout=0.2")
    (folder / "recipe.toml").write_text(small(folder, *steps).to_toml(comments=False), "utf-8")
    return folder / "recipe.toml"


def started(before: tuple[str, ...], recipe: Path, into: Path, *more: str) -> "subprocess.Popen[str]":
    command = [*before, "seqloom", "train", str(recipe), "--into", str(into), *more]
    surroundings = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"} | dict(os.environ)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=surroundings)


def finished(process: "subprocess.Popen[str]") -> str:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def outcome(folder: Path) -> tuple[object, ...]:
    """What must be the same: the records but their timings, the scores, and the weights to the bit."""
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text("utf-8").splitlines()]
    measured = [line for line in lines if line["kind"] != "note"]
    records = [{name: value for name, value in line.items() if name not in TIMINGS} for line in measured]
    scores = json.loads((folder / "scores.json").read_text("utf-8"))["scores"]
    return records, scores, (folder / "model.safetensors").read_bytes()


def children(number: int) -> list[int]:
    return list(map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split()))


def test_processes_of_which_one_is_killed_train_what_torchrun_trains(recipe: Path, tmp_path: Path) -> None:
    said = finished(started(TORCHRUN, recipe, tmp_path / "torchrun"))
    assert said.count("rows read") == 1  # one of them speaks
    folder = tmp_path / "run"
    process = started(PYTHON, recipe, folder, "--processes", "2")
    while not Checkpoints(folder / "checkpoints").steps():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(children(process.pid)[1], signal.SIGKILL)
    said = finished(process)
    assert "2 processes with 1 thread each" in said and "a process was killed (signal 9): going on" in said
    assert outcome(folder) == outcome(tmp_path / "torchrun")
