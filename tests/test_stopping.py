"""Ctrl-C and SIGTERM: heard at any moment, answered with a sentence and 130, and nothing half-written is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom import stopping
from seqloom.cli import main as command_line
from seqloom.runs import folder as folders
from seqloom.runs.run import train
from seqloom.stopping import STOPPED, Interrupted, Stop, handle_signals
from seqloom.training import files
from seqloom.training.checkpoints import Checkpoint, Checkpoints
from seqloom.training.manifests import MANIFEST, check_manifest

from .recipes import measured, small

SAVED = "stopped; continue with: seqloom train --into {} --resume"
UNSAVED = "stopped before there was anything to save; the same command begins again"
UNBEGUN = "stopped before anything was begun"

# --- the event --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_to_stop_and_the_second_interrupts(number):
    before = signal.getsignal(number)
    with handle_signals() as stop:
        stop.check()
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(Interrupted):
            stop.check()
        with pytest.raises(Interrupted):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_who_does_not_look_is_interrupted_at_once():
    with handle_signals() as stop:
        stop.watched = False
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted):
            stop.watch(lambda: "nothing is kept")
        assert stop.message() == "nothing is kept"


def test_who_asks_to_stop_does_not_wait_for_a_long_validation(monkeypatch):
    monkeypatch.setattr(stopping, "PATIENCE", 0.05)
    with handle_signals(), pytest.raises(Interrupted):
        signal.raise_signal(signal.SIGTERM)
        for _ in range(6000):
            time.sleep(0.01)


def test_nobody_is_interrupted_who_was_not_asked_to_stop(monkeypatch):
    monkeypatch.setattr(stopping, "PATIENCE", 0.05)
    with handle_signals() as stop:
        time.sleep(0.2)
    assert not stop.is_set()


def test_what_cannot_be_interrupted_ends_with_the_process():
    """While a call into a library lasts, no handler runs."""
    program = """if True:
        import ctypes, os, signal
        from seqloom import stopping
        stopping.PATIENCE = stopping.LAST = 0.1
        with stopping.handle_signals() as stop:
            stop.message = lambda: "all is kept"
            print("hears", flush=True)
            signal.siginterrupt(signal.SIGTERM, False)
            signal.siginterrupt(signal.SIGINT, False)
            there, _ = os.pipe()  # from which nothing ever comes
            ctypes.CDLL(None).read(there, ctypes.create_string_buffer(1), 1)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "hears\n"
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == STOPPED and said == "all is kept\n"


# --- nothing half-written ---------------------------------------------------------------------------------------------


def interrupting(after: int) -> Callable[[int], None]:
    """In place of fsync: goes on so many times."""
    left = iter(range(after))

    def sync(descriptor: int) -> None:
        if next(left, None) is None:
            raise Interrupted

    return sync


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


def test_a_beginning_that_is_interrupted_leaves_a_folder_to_begin_in(tmp_path, monkeypatch):
    folder, recipe = tmp_path / "run", small(tmp_path)
    next(measured(train(recipe, tmp_path / "first")))  # what is prepared is kept elsewhere
    for after in range(40):
        with monkeypatch.context() as patched:
            patched.setattr(files.os, "fsync", interrupting(after))
            try:
                next(measured(train(recipe, folder)))
            except Interrupted:
                assert not folder.exists() or (folder / MANIFEST).exists()
        if (folder / MANIFEST).exists():
            break
    assert after > 10 and not [name for name in names(folder) if name.endswith(files.PARTIAL)]
    check_manifest(folder, folders.SETTLED)


def test_a_checkpoint_that_is_interrupted_leaves_the_one_before(tmp_path, monkeypatch):
    kept = Checkpoints(tmp_path / "checkpoints")
    kept.save(Checkpoint(1, {}, {}, {}, {}, {}))
    monkeypatch.setattr(files.os, "fsync", interrupting(2))
    with pytest.raises(Interrupted):
        kept.save(Checkpoint(2, {}, {}, {}, {}, {}))
    assert os.listdir(kept.folder) == ["step-1"]


# --- trial steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 4])  # of at least four, however slow the machine is
@pytest.mark.parametrize("more", [(), ("train.steps=0", "train.time=1h")])
def test_a_stop_during_trial_steps_ends_them_and_leaves_nothing(tmp_path, monkeypatch, batch, more):
    from seqloom.tasks.shape import Shape

    stop, read, asked = threading.Event(), Shape.batch, []

    def reading(self, *words):
        asked.append(words)
        if len(asked) == batch:
            stop.set()
        return read(self, *words)

    monkeypatch.setattr(Shape, "batch", reading)
    recipe = small(tmp_path, *more)
    assert list(measured(train(recipe, tmp_path / "run", stop=stop))) == []
    assert len(asked) == batch and not (tmp_path / "run").exists()
    stop.clear()
    monkeypatch.undo()
    assert next(measured(train(small(tmp_path), tmp_path / "run"))).step == 1


# --- the command ------------------------------------------------------------------------------------------------------


def command(recipe: Path, folder: Path, *more: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "seqloom", "train", str(recipe), "--into", str(folder), *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def hears(process: "subprocess.Popen[str]") -> bool:
    """Whether the process has a handler for SIGTERM: what comes before is the interpreter's own beginning."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def holds(process: "subprocess.Popen[str]", library: str) -> bool:
    """Whether the process has begun to load this library."""
    return library in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopping")
    given = small(folder, "train.steps=100000", "train.validate_every=100000", "train.checkpoint_every=100000")
    (folder / "recipe.toml").write_text(given.to_toml(comments=False), "utf-8")
    return folder / "recipe.toml"


def read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


MOMENTS: dict[str, Callable[["subprocess.Popen[str]", Path], bool]] = {
    "as soon as it hears": lambda process, folder: hears(process),
    "while torch loads": lambda process, folder: hears(process) and holds(process, "libtorch"),
    "before it has read the data": lambda process, folder: (folder / ".lock").exists(),
    "once it has begun": lambda process, folder: (folder / MANIFEST).exists(),
    "while it trains": lambda process, folder: '"kind": "step"' in read(folder / "records.jsonl"),
}


ALONE, TOGETHER = (), ("--processes", "2")


@pytest.mark.parametrize(
    ("moment", "processes"),
    [
        *((moment, ALONE) for moment in MOMENTS),
        ("while torch loads", TOGETHER),
        ("before it has read the data", TOGETHER),
        ("while it trains", TOGETHER),
    ],
)
def test_a_signal_at_any_moment_ends_with_a_sentence_and_130(recipe, tmp_path, moment, processes):
    folder = tmp_path / "run"
    process = command(recipe, folder, *processes)
    while not MOMENTS[moment](process, folder):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == STOPPED, said
    last = said.splitlines()[-1]
    begun = (folder / MANIFEST).exists()
    assert last == SAVED.format(folder) if begun else last in (UNSAVED, UNBEGUN), said
    assert said.count("stopped") == 1 and "Traceback" not in said
    if folder.exists():
        assert not [name for name in names(folder) if name.endswith(files.PARTIAL)]
        assert begun
    stop = threading.Event()
    records = train(None, folder, resume=True, stop=stop) if begun else train(small(tmp_path), folder)
    assert next(measured(records)).step >= 1  # and it goes on, or begins
    records.close()


@pytest.mark.soak
@pytest.mark.parametrize("number", range(40))
def test_a_signal_at_any_hundredth_of_a_second_is_answered(recipe, tmp_path, number):
    process = command(recipe, tmp_path / "run")
    while not hears(process):
        assert process.poll() is None
    time.sleep(0.003 * number**2)
    process.send_signal(signal.SIGTERM if number % 2 else signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == STOPPED and said.count("stopped") == 1, said


@pytest.mark.parametrize("stopped", [True, False])
def test_a_process_that_loses_the_first_one_to_a_signal_ends_as_quietly(monkeypatch, capsys, stopped):
    """The first one may hear it earlier, and be gone while this one waits for it."""
    monkeypatch.setattr(command_line, "GRACE", 5 if stopped else 0.01)
    monkeypatch.setattr(command_line.launch, "is_first", lambda: False)
    monkeypatch.setattr(command_line.os, "_exit", sys.exit)

    def lose(names):
        raise RuntimeError("connection closed by peer\nand more")

    monkeypatch.setattr(command_line, "build_app", lose)
    stop = Stop()
    if stopped:
        threading.Timer(0.05, stop.set).start()
    with pytest.raises(SystemExit) as ended:
        command_line.run_command(stop)
    said = capsys.readouterr().err
    assert (ended.value.code, said) == (
        (STOPPED, "") if stopped else (1, "one of the processes ended: connection closed by peer\n")
    )
