"""How the benchmarks measure: side by side in one run, the best of several, as ratios."""

import time
from collections.abc import Callable, Sequence

import torch

Act = Callable[[], object]


def best(acts: Sequence[Act], rounds: int = 7) -> list[float]:
    """The shortest time of each, in seconds. They take turns, so that a busy moment of the machine hits them all."""
    for act in acts:
        act()  # the first time also sets up
    times = [float("inf")] * len(acts)
    for _ in range(rounds):
        for number, act in enumerate(acts):
            begun = time.perf_counter()
            act()
            times[number] = min(times[number], time.perf_counter() - begun)
    return times


def peak(size: int = 1024) -> float:
    """What the machine gives in matrix products, in floating-point operations a second."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    [seconds] = best([lambda: a @ b], 15)
    return 2 * size**3 / seconds


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
