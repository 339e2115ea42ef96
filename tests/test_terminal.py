"""What a person sees while training: a bar on a terminal, lines otherwise; and records for TensorBoard."""

import io
import threading

from rich.console import Console

from seqloom.cli import terminal
from seqloom.runs.run import train
from seqloom.training.events import Events
from seqloom.training.records import Record

from .recipes import measured, small


def records(tmp_path):
    return train(small(tmp_path), tmp_path / "run")


def test_on_a_terminal_a_bar_says_loss_score_speed_and_time(tmp_path, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "notes", Console(file=screen, force_terminal=True, width=120))
    assert terminal.follow(records(tmp_path), as_json=False)
    shown = screen.getvalue()
    for word in ("training", "100%", "loss", "exact", "tokens/s", "0:00:00"):
        assert word in shown


def test_where_nobody_watches_each_validation_is_a_line(tmp_path, capsys):
    assert terminal.follow(records(tmp_path), as_json=False)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("step")]
    assert [line.split()[1] for line in lines] == ["4", "8", "12"] and all("s left" in line for line in lines)


def test_a_stopped_run_has_a_checkpoint_of_its_last_step_and_no_scores(tmp_path):
    stop = threading.Event()
    for record in measured(train(small(tmp_path, "train.checkpoint_every=4"), tmp_path / "run", stop=stop)):
        last = record
        stop.set()
    assert last.kind == "step" and not (tmp_path / "run" / "scores.json").exists()
    [newest] = (tmp_path / "run" / "checkpoints").iterdir()
    assert newest.name == f"step-{last.step + 1}"


def test_records_reach_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = Events(tmp_path)
    for step, loss in ((10, 2.5), (20, None)):
        events.add(Record("validation", step, 0.5, loss, 1e-3, 0.7, 100, 10.0, 1.0, 0, {"exact": step / 100}, True))
    events.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(e.step, e.value) for e in found.Scalars("train/loss")] == [(10, 2.5)]
    assert [e.step for e in found.Scalars("validation/exact")] == [10, 20]
