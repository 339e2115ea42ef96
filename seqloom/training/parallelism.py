"""Threads or processes: which makes steps faster on this machine, by trial steps that leave no trace.

One process with a thread a core makes the whole step; of as many processes with one thread each, every one makes its
rows of it, and then they pass gradients round. Both are tried here in one process, the passing through a local socket.
"""

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from ..config.recipe import Train
from ..models import Batch, Objective
from .devices import choose_device, choose_threads, use_threads
from .loop import Feed, Rows
from .probe import leave_untouched, measure_step

ROUNDS = 3  # trials of each kind, in turn: their spread says how much of a difference is noise
PASSED = 4 << 20  # bytes that are passed at most in order to see how fast that is


@dataclass(frozen=True)
class Parallelism:
    """The seconds of a step, either way, with so many threads or processes; `noise` is the spread of the trials, as a
    share."""

    count: int
    threads: float
    processes: float
    noise: float = 0.0

    @property
    def better(self) -> str:
        return "processes" if self.processes < self.threads else "threads"

    @property
    def clear(self) -> bool:
        """Whether the difference is larger than the noise."""
        return abs(self.threads - self.processes) > self.noise * min(self.threads, self.processes)

    def __str__(self) -> str:
        choice = f"{self.count} processes" if self.better == "processes" else "one process"
        return (
            f"a step takes about {self.threads:.3f} s in one process with {self.count} threads and "
            f"{self.processes:.3f} s in {self.count} processes with one each: training in {choice}"
        )


def measure_parallelism(objective: Objective, feed: Feed, settings: Train) -> Parallelism | None:
    """The two ways on this machine; none where there is no choice: one core, one thread allowed, or a GPU."""
    count = choose_threads()
    if count == 1 or choose_device(settings.device).type != "cpu":
        return None
    return compare_parallelism(objective, feed, settings, count)


def compare_parallelism(objective: Objective, feed: Feed, settings: Train, count: int) -> Parallelism:
    wholes, parts = [], []
    with leave_untouched(objective):
        for _ in range(ROUNDS):
            with use_threads(count):
                wholes.append(measure_step(objective, feed, settings, 0.0, 1))
            with use_threads(1):
                parts.append(measure_step(objective, Part(feed, count), settings, 0.0, 1))
    size = sum(parameter.numel() * parameter.element_size() for parameter in objective.parameters())
    passing = time_passing(size) * 2 * (count - 1) / count  # round a ring, twice
    noise = max(max(times) / min(times) - 1 for times in (wholes, parts))
    return Parallelism(count, min(wholes), min(parts) + passing, noise)


class Part:
    """A feed of the rows that one of so many processes has of each batch."""

    def __init__(self, feed: Feed, count: int) -> None:
        self.feed, self.count = feed, count

    def order(self, epoch: int) -> Sequence[Rows]:
        return self.feed.order(epoch)

    def batch(self, rows: Rows) -> Batch:
        return self.feed.batch(rows).rows(slice(0, None, self.count))


def time_passing(size: int) -> float:
    """The seconds that so many bytes take from one process to another, as a local socket has it."""
    some = min(size, PASSED)
    there, here = socket.socketpair()
    with there, here:
        sender = threading.Thread(target=there.sendall, args=(bytes(some),))
        start, left = perf_counter(), some
        sender.start()
        while left:
            left -= len(here.recv(left))
        seconds = perf_counter() - start
        sender.join()
    return seconds * size / max(some, 1)
