"""How long it takes to prepare a million pairs (200 MB) with each kind of tokens, and how much memory.

    python benchmarks/prepare.py [--rows 1000000]

Each run is a process of its own with an empty cache; `again` is a second run that finds everything in the cache. CPU
seconds are those of all threads: what counts on a machine that has other things to do. The
text is drawn: words with frequencies as in a language (Zipf's law), some punctuation, and letters beyond ASCII.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

KINDS = ("characters", "words", "bpe")
WORDS_A_TEXT = 11
VOCABULARY = 100_000
LETTERS = "etaoinshrdlucmfwypvbgkjqxz" + "äöüßéèñç"

CHILD = """
import json, resource, sys, time
from pathlib import Path
from seqloom.data.prepare import prepare
from seqloom.config.recipe import Recipe
file, kind, cache = sys.argv[1:]
settings = {"train": [file], "source_tokenizer": kind, "target_tokenizer": kind, "vocabulary_size": 32000}
recipe = Recipe.of({"data": settings})
start = time.perf_counter()
prepared = prepare(recipe.data, Path(cache))
seconds = time.perf_counter() - start
usage = resource.getrusage(resource.RUSAGE_SELF)
report = prepared.report.model_dump()
busy = usage.ru_utime + usage.ru_stime
print(json.dumps({"seconds": seconds, "busy": busy, "peak": usage.ru_maxrss / 1024, "report": report}))
"""


def make_words(draw: random.Random) -> list[str]:
    """Words the more frequent of which are shorter."""
    lengths = (2 + min(12, int(rank**0.2)) + draw.randrange(3) for rank in range(VOCABULARY))
    return ["".join(draw.choices(LETTERS, k=length)) for length in lengths]


def write_pairs(path: Path, rows: int) -> None:
    draw = random.Random(0)
    words = make_words(draw)
    frequency = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    with path.open("w", encoding="utf-8") as file:
        file.write("source\ttarget\n")
        for _ in range(rows):
            picked = draw.choices(words, cum_weights=frequency, k=2 * WORDS_A_TEXT)
            source, target = " ".join(picked[:WORDS_A_TEXT]), ", ".join(picked[WORDS_A_TEXT:])
            file.write(f"{source.capitalize()}.\t{target.capitalize()}!\n")


def run(file: Path, kind: str, cache: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", CHILD, str(file), kind, str(cache)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="seqloom-bench-") as folder:
        file = Path(folder) / "pairs.tsv"
        start = time.perf_counter()
        write_pairs(file, rows)
        size = file.stat().st_size / 1e6
        print(f"{rows:,} pairs, {size:.0f} MB, written in {time.perf_counter() - start:.0f} s; {os.cpu_count()} cores")
        columns = ("seconds", "CPU s", "peak MB", "again s", "cache MB", "mean length")
        print("tokens      " + "".join(f"{name:>13}" for name in columns))
        for kind in KINDS:
            cache = Path(folder) / kind
            first, again = run(file, kind, cache), run(file, kind, cache)
            kept = sum(path.stat().st_size for path in cache.rglob("*.npy")) / 1e6
            mean = first["report"]["splits"]["train"]["source"]["mean"]
            figures = (first["seconds"], first["busy"], first["peak"], again["seconds"], kept, mean)
            print(f"{kind:<12}" + "".join(f"{figure:>13.1f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
