"""Threads or processes: which makes steps faster on this machine, by trial steps that leave no trace.

One process with a thread a core makes the whole step; of as many processes with one thread each, every one makes its
rows of it, and then they pass gradients round. Both are tried here in one process, the passing through a local socket.
"""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import torch

from ..config.recipe import Train
from ..models import Batch, Objective
from .loop import Feed, Rows
from .probe import leave_untouched, step_time

LONG = 0.15  # seconds of a step from which on one of a kind is enough
PASSED = 4 << 20  # bytes that are passed at most in order to see how fast that is


@dataclass(frozen=True)
class Parallelism:
    """The seconds of a step, either way, with so many threads or processes."""

    count: int
    threads: float
    processes: float

    @property
    def better(self) -> str:
        return "processes" if self.processes < self.threads else "threads"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"better": self.better}

    def __str__(self) -> str:
        advice = f"--processes {self.count}" if self.better == "processes" else "one process"
        return (
            f"a step takes about {self.threads:.3f} s in one process with {self.count} threads and "
            f"{self.processes:.3f} s in {self.count} processes with one each: {advice} is better here"
        )


def measure_parallelism(objective: Objective, feed: Feed, settings: Train, processes: int = 1) -> Parallelism | None:
    """The two ways on this machine; none where there is no choice: one core, a GPU, or several machines."""
    count = processes if processes > 1 else len(os.sched_getaffinity(0))
    elsewhere = int(os.environ.get("LOCAL_WORLD_SIZE", processes)) != processes
    if count == 1 or elsewhere or settings.device not in ("auto", "cpu"):
        return None
    return compare(objective, feed, settings, count)


def compare(objective: Objective, feed: Feed, settings: Train, count: int) -> Parallelism:
    with leave_untouched(objective):
        with so_many_threads(count):
            begun = perf_counter()
            whole = step_time(objective, feed, settings, 0.0, 1)
            if perf_counter() - begun < LONG:
                whole = step_time(objective, feed, settings, 0.0)
        with so_many_threads(1):
            part = step_time(objective, Part(feed, count), settings, 0.0, 3 if whole < LONG else 1)
    size = sum(parameter.numel() * parameter.element_size() for parameter in objective.parameters())
    return Parallelism(count, whole, part + passing_time(size) * 2 * (count - 1) / count)  # round a ring, twice


class Part:
    """A feed of the rows that one of so many processes has of each batch."""

    def __init__(self, feed: Feed, count: int) -> None:
        self.feed, self.count = feed, count

    def order(self, epoch: int) -> Sequence[Rows]:
        return self.feed.order(epoch)

    def batch(self, rows: Rows) -> Batch:
        return self.feed.batch(rows).rows(slice(0, None, self.count))


@contextmanager
def so_many_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def passing_time(size: int) -> float:
    """The seconds that so many bytes take from one process to another, as a local socket has it."""
    some = min(size, PASSED)
    there, here = socket.socketpair()
    with there, here:
        sender = threading.Thread(target=there.sendall, args=(bytes(some),))
        begun, left = perf_counter(), some
        sender.start()
        while left:
            left -= len(here.recv(left))
        taken = perf_counter() - begun
        sender.join()
    return taken * size / max(some, 1)
