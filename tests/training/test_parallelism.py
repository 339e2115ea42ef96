"""Threads or processes: both are tried, and nothing of it stays."""

import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.models import Batch
from seqloom.training import parallelism as ways
from seqloom.training.cores import read_quotas
from seqloom.training.parallelism import Parallelism, compare_parallelism, measure_parallelism, time_passing
from seqloom.training.tensors import copy_weights

from .tiny import Guesser, Rows, same, settings


class WatchedStep(Rows):
    """Notes with how many threads each batch is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def batch(self, rows: Any) -> Batch:
        self.threads.append(torch.get_num_threads())
        return super().batch(rows)


def test_both_ways_are_tried_and_leave_no_trace() -> None:
    objective, feed, before = Guesser(), WatchedStep(), torch.get_num_threads()
    weights, random = copy_weights(objective), torch.get_rng_state()
    found = compare_parallelism(objective, feed, settings(), 2)
    assert found.threads > 0 and found.processes > 0
    assert set(feed.threads) == {1, 2}
    assert torch.get_num_threads() == before
    assert same(copy_weights(objective), weights) and torch.equal(torch.get_rng_state(), random)


def test_a_process_is_given_its_rows_only() -> None:
    feed = Rows()
    whole, part = feed.batch(feed.order(0)[0]), ways.Part(feed, 3).batch(feed.order(0)[0])
    assert torch.equal(part.inputs, whole.inputs[::3]) and torch.equal(part.target, whole.target[::3])


def test_the_faster_way_is_named_unless_the_difference_is_noise() -> None:
    assert str(Parallelism(2, 0.3, 0.2)).endswith("training in 2 processes")
    assert str(Parallelism(4, 0.1, 0.2)).endswith("training in one process")
    assert Parallelism(2, 0.3, 0.2, 0.4).clear and not Parallelism(2, 0.3, 0.2, 0.6).clear


def test_trials_that_differ_among_themselves_are_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.2, 0.1, 0.4, 0.1, 0.2, 0.1])  # whole and part, in turn
    monkeypatch.setattr(ways, "measure_step", lambda *given: next(times))
    monkeypatch.setattr(ways, "time_passing", lambda size: 0.0)
    found = compare_parallelism(Guesser(), Rows(), settings(), 2)
    assert (found.threads, found.processes, found.noise) == (0.2, 0.1, 1.0) and not found.clear


def test_passing_more_takes_longer_in_proportion() -> None:
    assert time_passing(0) == 0
    assert time_passing(1 << 30) > time_passing(1 << 16) > 0


@pytest.mark.parametrize(
    ("cores", "quota", "omp", "device", "count"),
    [
        (1, 9.0, "", "cpu", None),
        (2, 9.0, "", "cpu", 2),
        (2, 9.0, "", "cuda", None),
        (4, 1.5, "", "cpu", 2),
        (4, 0.5, "", "cpu", None),
        (4, 9.0, "1", "cpu", None),
        (4, 1.0, "3", "cpu", 3),
    ],
)
def test_it_is_tried_where_there_is_a_choice(
    monkeypatch: pytest.MonkeyPatch, cores: int, quota: float, omp: str, device: str, count: int | None
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr("seqloom.training.cores.read_quotas", lambda: [float("inf"), quota])
    monkeypatch.setattr(torch, "get_num_threads", lambda: int(omp or 16))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("OMP_NUM_THREADS", omp)
    monkeypatch.setattr(
        ways, "compare_parallelism", lambda objective, feed, settings, count: Parallelism(count, 1.0, 1.0)
    )
    found = measure_parallelism(Guesser(), Rows(), settings(device=device))
    assert (found and found.count) == count


def test_quotas_are_those_of_the_group_and_of_all_above_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "a" / "b" / "cpu.max").write_text("max 100000\n")
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    assert list(read_quotas(tmp_path, own)) == [math.inf, math.inf, 1.5, math.inf]
    (tmp_path / "cpu,cpuacct" / "c").mkdir(parents=True)
    (tmp_path / "cpu,cpuacct" / "c" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu,cpuacct" / "c" / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "cpu,cpuacct" / "cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu,cpuacct" / "cpu.cfs_period_us").write_text("100000\n")
    own.write_text("4:cpu,cpuacct:/c\n5:memory:/c\n")
    assert list(read_quotas(tmp_path, own)) == [math.inf, math.inf, 0.5]
    assert list(read_quotas(tmp_path, tmp_path / "none")) == [math.inf]
