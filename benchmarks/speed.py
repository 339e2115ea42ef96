"""All races of docs/benchmarks.md whose tables are written by a script: decoding, cells, scans, whole training.

`python benchmarks/speed.py [quick] [1] [2]` runs them one after another, with one thread by processor time and with two
by wall time, and writes each table into the page when it is there. `quick` makes fewer rounds. Words of the
scripts, such as a section or a case, choose among what they have.
"""

import subprocess
import sys
from pathlib import Path

RACES = {
    "decoding.py": ("small", "recurrent", "language", "large"),
    "cells.py": ("step", "lengths", "training"),
    "scan.py": ("scan",),
    "training.py": ("imdb-lstm", "multi30k-gru", "imdb-transformer", "multi30k-transformer"),
}


def main() -> None:
    words = sys.argv[1:]
    asked = [word for word in words if any(word in sections for sections in RACES.values())]
    others = [word for word in words if word not in asked]
    for race, sections in RACES.items():
        mine = [section for section in sections if section in asked or not asked]
        if not mine:
            continue
        print(f"# {race} {' '.join(mine)}", flush=True)
        script = Path(__file__).with_name(race)
        whole = ["whole"] if race == "training.py" else []
        subprocess.run([sys.executable, str(script), "page", *whole, *mine, *others], check=True)


if __name__ == "__main__":
    main()
