"""A training step of a minGRU by the parallel scan over time beside the same by a loop over its steps.

One thread, by processor time; `page` writes the table into docs/benchmarks.md.
"""

import sys
from collections.abc import Callable

import torch
from _page import describe, write
from _timing import best, table

from seqloom.layers.cells import CELLS
from seqloom.layers.fast import parallel_scan

SHAPES = ((1, 128), (8, 128), (16, 128), (32, 256))  # rows of a batch, and units
TIMES = (128, 512, 2048, 8192)
LARGEST = 2**24  # numbers of one array


def training(batch: int, size: int, time: int, block: int | None) -> Callable[[], None]:
    """Forward and backward, in blocks of so many steps; None is what a person gets."""
    torch.manual_seed(0)
    cell, x = CELLS["mingru"](size, size), torch.randn(batch, time, size)
    entries, choose = (torch.zeros(batch, size),), parallel_scan.choose_block

    def act() -> None:
        parallel_scan.choose_block = choose if block is None else lambda _: block
        y, _ = cell.scan(x, entries)
        y.sum().backward()
        parallel_scan.choose_block = choose

    return act


def rows() -> list[list[str]]:
    made = []
    for batch, size in SHAPES:
        for time in TIMES:
            if batch * size * time > LARGEST:
                continue
            ours, loop = best([training(batch, size, time, block) for block in (None, 1)], 3)
            made.append([f"{batch}, {size}", str(time), f"{ours * 1e3:.1f}", f"{loop * 1e3:.1f}", f"{loop / ours:.2f}"])
    return made


if __name__ == "__main__":
    torch.set_num_threads(1)
    text = f"{table(['B, H', 'T', 'scan, ms', 'loop, ms', 'loop / scan'], rows())}\n\n{describe(1)}"
    print(text)
    if "page" in sys.argv:
        write("scan", text)
