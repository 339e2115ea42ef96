"""Writes measured tables into docs/benchmarks.md, between the marks that bear their names."""

import datetime
import os
import platform
import re
from pathlib import Path

import torch
from _timing import QUICK, take_spread

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def describe(threads: int) -> str:
    """When and how something was measured, and how busy the machine was."""
    from seqloom.layers.fast.native import library

    clock = "1 thread, processor time" if threads == 1 else f"{threads} threads, wall time"
    rounds = "few rounds (quick)" if QUICK else "several"
    return (
        f"Measured on {datetime.date.today()}: {clock}, in turns, the best of {rounds}; the median was up to "
        f"{take_spread():.0%} above the best. {processor()}, PyTorch {torch.__version__}, {library.status()}; load "
        f"average {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors."
    )


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def write(name: str, text: str) -> None:
    """Put a text between `<!-- NAME -->` and `<!-- /NAME -->`."""
    page = PAGE.read_text("utf-8")
    marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(\n<!-- /{re.escape(name)} -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"{PAGE} has no marks for {name}")
    PAGE.write_text(marks.sub(lambda found: f"{found[1]}{text}{found[2]}", page), "utf-8")
