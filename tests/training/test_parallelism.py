"""Threads or processes: both are tried, and nothing of it stays."""

import os
from typing import Any

import pytest
import torch

from seqloom.models import Batch
from seqloom.training import parallelism as ways
from seqloom.training.parallelism import Parallelism, compare, measure_parallelism, passing_time
from seqloom.training.tensors import weights_of

from .tiny import Guesser, Rows, same, settings


class Watched(Rows):
    """Notes with how many threads each batch is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def batch(self, rows: Any) -> Batch:
        self.threads.append(torch.get_num_threads())
        return super().batch(rows)


def test_both_ways_are_tried_and_leave_no_trace() -> None:
    objective, feed, before = Guesser(), Watched(), torch.get_num_threads()
    weights, random = weights_of(objective), torch.get_rng_state()
    found = compare(objective, feed, settings(), 2)
    assert found.threads > 0 and found.processes > 0
    assert feed.threads == sorted(feed.threads, reverse=True) and set(feed.threads) == {1, 2}
    assert torch.get_num_threads() == before
    assert same(weights_of(objective), weights) and torch.equal(torch.get_rng_state(), random)


def test_a_process_is_given_its_rows_only() -> None:
    feed = Rows()
    whole, part = feed.batch(feed.order(0)[0]), ways.Part(feed, 3).batch(feed.order(0)[0])
    assert torch.equal(part.inputs, whole.inputs[::3]) and torch.equal(part.target, whole.target[::3])


def test_the_faster_way_is_named() -> None:
    assert str(Parallelism(2, 0.3, 0.2)).endswith("--processes 2 is better here")
    assert str(Parallelism(4, 0.1, 0.2)).endswith("one process is better here")
    assert Parallelism(2, 0.3, 0.2).to_json() == {"count": 2, "threads": 0.3, "processes": 0.2, "better": "processes"}


def test_passing_more_takes_longer_in_proportion() -> None:
    assert passing_time(0) == 0
    assert passing_time(1 << 30) > passing_time(1 << 16) > 0


@pytest.mark.parametrize(
    ("cores", "processes", "local", "device", "count"),
    [
        (1, 1, None, "cpu", None),
        (2, 1, None, "cpu", 2),
        (2, 1, None, "cuda", None),
        (4, 2, None, "cpu", 2),
        (4, 4, "2", "cpu", None),
    ],
)
def test_it_is_asked_where_there_is_a_choice(
    monkeypatch: pytest.MonkeyPatch, cores: int, processes: int, local: str | None, device: str, count: int | None
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr(ways, "compare", lambda objective, feed, settings, count: Parallelism(count, 1.0, 1.0))
    if local:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", local)
    found = measure_parallelism(Guesser(), Rows(), settings(device=device), processes)
    assert (found and found.count) == count
