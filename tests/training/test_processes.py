"""Several processes make the steps that one would make, read in the order that one would read, and tell the same."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.config.recipe import Train
from seqloom.models import Objective
from seqloom.runs.json_output import make_record_json
from seqloom.training.checkpoints import Checkpoints
from seqloom.training.files import read_bytes
from seqloom.training.loop import fit
from seqloom.training.processes import ProcessGroup
from seqloom.training.tensors import copy_weights, parse_tensors, tensor_bytes

from .test_windows import Pairs, Stream, writing
from .tiny import Guesser, Rows, settings, untimed, validation
from .together import together

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def guesser() -> Objective:
    return Guesser(dropout=0.0)


# A bias of keys has no gradient but noise, and Adam would make steps of it.
PLAIN_STEPS = {"optimizer": "sgd", "learning_rate": 0.1}
CASES: dict[str, tuple[Callable[[], Objective], Callable[[], Rows], dict[str, Any]]] = {
    "plain": (guesser, Rows, {}),
    "stream": (guesser, Stream, {"accumulate_batches": 2}),
    "windows": (writing("model.kind=gru", "model.dropout=0"), Pairs, {"bptt_window": 2, "ema": 0.9}),
    "teacher": (
        writing("model.kind=transformer", "model.dropout=0"),
        Pairs,
        {"teacher_forcing": 0.4, "accumulate_batches": 3, **PLAIN_STEPS},
    ),
}


def trained(case: str, given: Train, folder: Path, ranks: ProcessGroup, stop: threading.Event | None = None) -> None:
    """Train and leave in the folder what was read, told and learned, by every process."""
    make, feed, _ = CASES[case]
    objective, rows = make(), feed()
    checkpoints = Checkpoints(folder / "checkpoints") if ranks.first else None
    validate = validation(objective, rows) if ranks.first else dict
    records = untimed(list(fit(objective, rows, given, validate, checkpoints, stop, ranks)))
    asked = [batch for batch in rows.asked if len(batch) <= rows.size]  # not the validation's
    name = f"{ranks.count}-{ranks.rank}"
    (folder / f"{name}.json").write_text(json.dumps([asked, [make_record_json(record) for record in records]]))
    (folder / f"{name}.tensors").write_bytes(tensor_bytes(copy_weights(objective)))


def left(folder: Path, count: int, rank: int) -> tuple[list[Any], list[Any], dict[str, torch.Tensor]]:
    asked, told = json.loads((folder / f"{count}-{rank}.json").read_text())
    return asked, told, parse_tensors(read_bytes(folder / f"{count}-{rank}.tensors"), folder)


def given_for(case: str, **more: Any) -> Train:
    return settings(steps=8, validate_every=4, **{**CASES[case][2], **more})


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "count", "shard"),
    [("plain", 3, False), ("stream", 2, False), ("windows", 2, False), ("teacher", 2, False), ("plain", 2, True)],
)
def test_several_processes_make_the_steps_of_one(tmp_path: Path, case: str, count: int, shard: bool) -> None:
    given = given_for(case, shard=shard)
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    trained(case, given, tmp_path / "one", ProcessGroup())
    together(count, lambda ranks: trained(case, given, tmp_path / "many", ranks), tmp_path)
    asked, told, weights = left(tmp_path / "one", 1, 0)
    for rank in range(count):
        theirs = left(tmp_path / "many", count, rank)
        assert theirs[0] == asked
        for mine, other in zip(told, theirs[1], strict=True):
            assert mine.keys() == other.keys() and mine["tokens"] == other["tokens"] and mine["step"] == other["step"]
            assert other["loss"] == pytest.approx(mine["loss"], rel=1e-4)
            assert other.get("best") == mine.get("best")
        if rank == 0 or not shard:
            assert_close(theirs[2], weights)


def test_more_processes_than_rows_do_no_harm(tmp_path: Path) -> None:
    def act(ranks: ProcessGroup) -> None:
        objective, rows = guesser(), Rows(rows=7, size=2)  # the last batch of an epoch has one row
        list(fit(objective, rows, settings(steps=8), dict if ranks.rank else lambda: {"loss": 1.0}, ranks=ranks))
        (tmp_path / f"{ranks.count}-{ranks.rank}.tensors").write_bytes(tensor_bytes(copy_weights(objective)))

    act(ProcessGroup())
    together(3, act, tmp_path)
    one, other = (parse_tensors(read_bytes(tmp_path / f"{name}.tensors"), tmp_path) for name in ("1-0", "3-2"))
    assert_close(one, other)


@pytest.mark.parametrize("case", ["stream", "windows"])
def test_another_number_of_processes_goes_on_in_the_same_order(tmp_path: Path, case: str) -> None:
    (tmp_path / "whole").mkdir()
    trained(case, given_for(case), tmp_path / "whole", ProcessGroup())

    def until_stopped(ranks: ProcessGroup) -> None:
        stop = threading.Event()
        make, feed, _ = CASES[case]
        objective, rows = make(), feed()
        ask, calls = rows.batch, []

        def batch(asked: Any) -> Any:
            calls.append(asked)
            if ranks.rank == 1 and len(calls) == 2:  # it is enough that one of them is told to stop
                stop.set()
            return ask(asked)

        rows.batch = batch
        checkpoints = Checkpoints(tmp_path / "checkpoints") if ranks.first else None
        validate = validation(objective, feed()) if ranks.first else dict
        list(fit(objective, rows, given_for(case), validate, checkpoints, stop, ranks))

    together(2, until_stopped, tmp_path)
    found = Checkpoints(tmp_path / "checkpoints").find_newest()
    assert found is not None and 0 < found.step < 8 and found.carried
    together(3, lambda ranks: trained(case, given_for(case), tmp_path, ranks), tmp_path)
    asked, _, weights = left(tmp_path / "whole", 1, 0)
    theirs = left(tmp_path, 3, 2)
    assert theirs[0] == asked[-len(theirs[0]) :]
    assert_close(theirs[2], weights)
