"""A text larger than memory: prepared and trained on within a limit of resident memory, in the same order every time.

`python benchmarks/streaming.py` writes a text of 5 GB into a temporary folder, prepares it for the task `language`
(characters) and trains a GRU on it for 300 steps, in a process of its own, whose resident memory (file pages that are
mapped included) is looked at ten times a second, its own highest mark as well. A number of megabytes as the argument
makes the text that long, and the limit is 1 GB in any case. The folder is removed afterwards. The order of the batches
is made twice and compared.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1 << 30
BLOCK = 1 << 24  # characters that are drawn anew; the rest of the text repeats them in another order of lines

PROGRAM = """
import json, sys, time
from pathlib import Path
from seqloom.config.recipe import Recipe
from seqloom import load, train

file, folder = sys.argv[1:]
settings = ["data.validation_share=0.0001", "data.test_share=0.0001", "model.kind=gru", "model.size=128",
            "train.steps=300", "train.validate_every=100", "train.checkpoint_every=100"]
recipe = Recipe.read("language", f"data.train={file}", *settings)
begun = time.time()
losses = []
for record in train(recipe, folder):
    losses += [record.scores["loss"]] if record.scores else []
    print(f"{time.time() - begun:7.1f} s  {record}", file=sys.stderr, flush=True)
print(json.dumps({"losses": losses, "seconds of training": record.seconds, "seconds in all": time.time() - begun}))
"""


def write_text(path: Path, size: int) -> None:
    """Lines of made-up words, drawn from a few thousand; the same every time."""
    chance = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(chance.choice(letters, chance.integers(2, 9))) for _ in range(5000)]
    lines: list[bytes] = []
    room = min(BLOCK, size)
    while room > 0:
        line = " ".join(words[n] for n in (5000 * chance.random(120) ** 3).astype(int)).encode() + b".\n"
        lines.append(line)
        room -= len(line)
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(b"".join(lines[n] for n in chance.permutation(len(lines))))
        file.truncate(size)


def resident(pid: int) -> int:
    """The bytes of a process and its children that are in memory now."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident(int(child)) for child in children)


def highest(pid: int) -> int:
    """The most bytes that a process itself has had in memory, however short the moment was."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def orders_twice(cache: Path) -> bool:
    """Whether the order of an epoch's batches is the same when it is made again; of a Transformer, which is drawn."""
    from seqloom.data import streams

    [ids] = [path for path in cache.rglob("train-target-ids.npy")]
    total = len(np.load(ids, mmap_mode="r")) + 1
    digests = []
    for _ in range(2):
        order, found = streams.plan_windows(np.array([0, total]), 4096, 128, 0, 0), hashlib.sha256()
        for number in range(0, len(order), max(1, len(order) // 10_000)):
            found.update(order[number].tobytes())
        digests.append(found.hexdigest())
    return digests[0] == digests[1]


def main() -> None:
    size = int(float(sys.argv[1]) * 1e6) if sys.argv[1:] else 5 * 10**9
    folder = Path(tempfile.mkdtemp(prefix="seqloom-streaming-"))
    try:
        needed = 6 * size  # the text, and as read: bytes twice, numbers of two bytes
        if shutil.disk_usage(folder).free < needed:
            raise SystemExit(f"{folder} has no room for {needed / 1e9:.0f} GB")
        begun = time.time()
        write_text(folder / "text.txt", size)
        written, peak = time.time() - begun, 0
        environment = os.environ | {"SEQLOOM_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PROGRAM, str(folder / "text.txt"), str(folder / "run")]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                peak = max(peak, resident(process.pid), highest(process.pid))
                time.sleep(0.1)
            assert process.stdout is not None
            told = process.stdout.read()
        if process.returncode:
            raise SystemExit(f"the training ended with {process.returncode}")
        found = {
            "bytes": size,
            "peak resident MB": round(peak / 1e6),
            "within 1 GB": peak < LIMIT,
            "the same order twice": orders_twice(folder / "cache"),
            "seconds of writing": round(written),
        }
        print(json.dumps(found | json.loads(told), indent=2))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
