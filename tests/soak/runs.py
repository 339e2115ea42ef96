"""Small real runs in processes of their own, which are killed, and what must be the same afterwards."""

import hashlib
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from seqloom.config.recipe import Recipe
from seqloom.runs.run import train
from seqloom.tasks.task import Task
from seqloom.training.checkpoints import STATE
from tests.recipes import small

TIMINGS = ("seconds", "tokens_per_second")
LONG = (
    "train.steps=20",
    "train.validate_every=5",
    "train.checkpoint_every=3",
    "train.batch_tokens=700",
    "model.dropout=0.2",
)
KINDS: dict[str, tuple[str, ...]] = {
    "gru": ("model.kind=gru", "train.label_smoothing=0.1"),
    "lstm": ("model.kind=lstm", "model.attention=additive", "train.accumulate_batches=2", "train.ema=0.9"),
    "transformer": (
        "model.kind=transformer",
        "train.teacher_forcing=0.3",
        "train.teacher_forcing_schedule=inverse-sigmoid",
    ),
    "rnn": (
        "model.kind=rnn",
        "train.bptt_window=8",
        "train.optimizer=sgd",
        "train.schedule=linear",
        "train.learning_rate=0.1",
    ),
    "convolution": ("model.kind=convolution", "train.patience=3", "train.optimizer=radam", "train.learning_rate=0.05"),
}
TASKS = {"rnn": "language", "convolution": "classify"}  # the others seq2seq
EVALUATION = {"rnn": "losses", "convolution": "answer"}  # the method in the middle of a validation; else `predict`


@cache
def home() -> Path:
    """Where the data lies, and the runs that nothing has interrupted."""
    return Path(mkdtemp(prefix="seqloom-soak-"))


@cache
def recipe(kind: str) -> Recipe:
    if kind not in TASKS:
        return small(home(), *LONG, *KINDS[kind])
    path = home() / ("text.txt" if TASKS[kind] == "language" else "labels.tsv")
    lines = [f"{number * 7919 % 1000} bottles\t{'odd' if number % 2 else 'even'}\n" for number in range(120)]
    path.write_text("source\ttarget\n" * (kind == "convolution") + "".join(lines), "utf-8")
    settings = (f"data.train={path}", "model.size=16", "train.learning_rate=0.01", *LONG, *KINDS[kind])
    return Recipe.read(TASKS[kind], *settings, *(("train.batch_tokens=300",) if kind == "rnn" else ()))


def task(kind: str) -> type[Task]:
    """The class whose methods are called while this kind is trained."""
    return Task


@cache
def whole(kind: str) -> tuple[Path, float]:
    """The folder of the run that nothing has interrupted, and the seconds that it took."""
    begun = time.monotonic()
    folder = home() / kind
    assert ended(child(lambda: training(kind, folder))) == 0
    return folder, time.monotonic() - begun


def training(kind: str, folder: Path) -> None:
    for _ in train(recipe(kind), folder, resume=True):
        pass


@cache
def warmed() -> None:
    """A short run of each task here, so that what is slow to load is loaded once and not by each child anew."""
    for kind in ("gru", *TASKS):
        list(train(recipe(kind).override("train.steps=1"), home() / f"warm-{kind}"))


def child(act: Callable[[], None]) -> int:
    """A process that does this and ends; its number. What is remembered is made before, not by each child anew."""
    warmed()
    for kind in KINDS:
        recipe(kind)
    number = os.fork()
    if number:
        return number
    try:
        act()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(3)


def ended(number: int) -> int:
    """How a process has ended: its code, or the negative signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def outcome(folder: Path) -> dict[str, object]:
    """All that is promised to be the same, bit for bit."""
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text("utf-8").splitlines()]
    records = [line for line in lines if line["kind"] != "note"]
    newest = max((folder / "checkpoints").glob("step-*"), key=lambda place: int(place.name[5:]))
    files = [folder / "model.safetensors", folder / "task.json", *newest.glob("*.safetensors")]
    state = json.loads((newest / STATE).read_text("utf-8"))
    return {
        "records": [{name: value for name, value in line.items() if name not in TIMINGS} for line in records],
        "scores": json.loads((folder / "scores.json").read_text("utf-8"))["scores"],
        "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
        "state": {name: value for name, value in state.items() if "seconds" not in name},
    }


def assert_as_if_nothing_had_been(kind: str, folder: Path) -> None:
    """Go on to the end, and compare."""
    assert ended(child(lambda: training(kind, folder))) == 0
    assert outcome(folder) == outcome(whole(kind)[0])
