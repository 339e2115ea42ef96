"""How the benchmarks measure: side by side in one run, the best of several, as ratios."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch

Act = Callable[[], object]
QUICK = "quick" in sys.argv
ROUNDS = 3 if QUICK else 7
spreads: list[float] = []


def clock() -> float:
    """Seconds of processor time with one thread, which others on the machine disturb least; else of wall time, as two
    threads also spend processor time on waiting for each other."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def best(acts: Sequence[Act], rounds: int = ROUNDS, repeats: int = 1) -> list[float]:
    """The shortest time of each, in seconds. They take turns, so that a busy moment of the machine hits them all. What
    is over in milliseconds is repeated within its turn: else each would mostly reload what the others drove from the
    cache."""
    for act in acts:
        act()  # the first time also sets up
    times: list[list[float]] = [[] for _ in acts]
    for _ in range(rounds):
        for number, act in enumerate(acts):
            for _ in range(repeats):
                begun = clock()
                act()
                times[number].append(clock() - begun)
    spreads.extend(median(each) / min(each) - 1 for each in times)
    return [min(each) for each in times]


def take_spread() -> float:
    """By how much the median of anything measured since the last time lies above its best, at most."""
    found = max(spreads, default=0.0)
    spreads.clear()
    return found


def peak(size: int = 1024) -> float:
    """What the machine gives in matrix products, in floating-point operations a second."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    [seconds] = best([lambda: a @ b], 15)
    return 2 * size**3 / seconds


def megabytes(script: str, *words: str) -> float:
    """What `most` says in a process of its own that runs the script with these words."""
    command = [sys.executable, script, "alone", *words]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def most(act: Act) -> float:
    """The most memory that is held at once during the act, beyond what is held before it, in MB (Linux only)."""

    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1])

    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is forgotten
    act()
    return (status("VmHWM") - before) / 1024


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def chosen(sections: Sequence[str]) -> list[str]:
    """The sections named on the command line; all, if none is."""
    return [name for name in sections if name in sys.argv] or list(sections)


def threads() -> list[int]:
    """The numbers of threads named on the command line; one and two, if none is."""
    return [number for number in (1, 2) if str(number) in sys.argv] or [1, 2]
