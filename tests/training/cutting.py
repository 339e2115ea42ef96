"""A training that can be cut anywhere and taken up again, as a killed process and its successor would."""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.config.recipe import Train
from seqloom.models import Batch, Objective
from seqloom.training.checkpoints import Checkpoints
from seqloom.training.loop import fit
from seqloom.training.records import Record
from seqloom.training.tensors import copy_weights

from .tiny import Guesser, Rows, same, settings, untimed, validation


class Run:
    """A training of the tiny model that keeps records and best weights as a run folder would."""

    def __init__(
        self,
        folder: Path | None = None,
        given: Train | None = None,
        make: Callable[[], Objective] = Guesser,
        feed: Callable[[], Rows] = Rows,
    ) -> None:
        self.make, self.made_feed = make, feed
        self.objective, self.feed = make(), feed()
        self.settings = given or settings()
        self.checkpoints = Checkpoints(folder, keep=2) if folder else None
        self.stop = threading.Event()
        self.validate: Any = validation(self.objective, self.feed)
        self.records: list[Record] = []
        self.best: dict[str, torch.Tensor] = {}

    def rebuilt(self) -> "Run":
        """What another process would find: the folder, the records, the best weights; the rest is built anew."""
        again = Run(given=self.settings, make=self.make, feed=self.made_feed)
        again.checkpoints = Checkpoints(self.checkpoints.folder, keep=2) if self.checkpoints else None
        found = again.checkpoints.find_newest() if again.checkpoints else None
        again.records = [record for record in self.records if found and record.step < found.step]
        again.best = self.best
        torch.manual_seed(999)  # nothing of the old process's randomness is left
        return again

    def walk(self) -> Iterator[Record]:
        for record in fit(
            self.objective, self.feed, self.settings, lambda: self.validate(), self.checkpoints, self.stop
        ):
            self.records.append(record)
            if record.best:
                self.best = copy_weights(self.objective)
            yield record

    def whole(self) -> "Run":
        for _ in self.walk():
            pass
        return self


def assert_same(one: Run, other: Run) -> None:
    assert untimed(one.records) == untimed(other.records)
    assert same(copy_weights(one.objective), copy_weights(other.objective))
    assert same(one.best, other.best)


class Cut(BaseException):
    """The process ends here."""


def cut_at_batch(run: Run, batch: int) -> None:
    """End in the middle of a step: when the batch of that number is asked for."""
    ask, count = run.feed.batch, itertools.count(1)

    def asked(rows: Any) -> Batch:
        if next(count) == batch:
            raise Cut
        return ask(rows)

    run.feed.batch = asked
    with pytest.raises(Cut):
        run.whole()
