"""All races whose tables docs/benchmarks.md shows, one after another: decoding and cells.

`python benchmarks/speed.py [busy] [quick]` runs them and writes the tables into the page; `busy` is for a machine that
others use: one thread, and the processor's time instead of the clock's.
"""

import subprocess
import sys
from pathlib import Path

RACES = ("decoding.py", "cells.py")


def main() -> None:
    for race in RACES:
        script = Path(__file__).with_name(race)
        print(f"# {race}", flush=True)
        subprocess.run([sys.executable, str(script), "page", *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
