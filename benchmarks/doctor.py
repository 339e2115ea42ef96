"""The doctor held against planted illnesses, healthy runs, and recall at known distances.

`python benchmarks/doctor.py` does what is not done yet, `python benchmarks/doctor.py ten` (or `more`, `healthy`,
`lags`) that part of it, with `--again` from the beginning. Every case is a training of seconds; what came out stands in
the ledger benchmarks/doctor.json, and the tables of docs/doctor.md are written from it.

What the first finding says is to be typed is typed: nothing here knows what would be right, but the names that the
findings are held against.
"""

import argparse
import json
import math
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _doctor_page import write_page
from _ills import HEALTHY, KINDS, LAGS, MORE, OWN, TEN, Examples, Ill, distant

from seqloom import Recipe, train
from seqloom.errors import RunError
from seqloom.runs.run import diagnose

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "benchmarks" / "doctor.json"
SEEDS = (0, 1, 2)


class Ledger:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def keep(self, key: str, result: dict[str, Any]) -> None:
        self.done[key] = result
        text = json.dumps(self.done, ensure_ascii=False, indent=1, sort_keys=True)
        self.path.write_text(text + "\n", encoding="utf-8")


def files(examples: Examples, folder: Path) -> list[str]:
    """The settings that name the examples, as files: as a person would give them."""
    named = []
    for part, rows in examples.items():
        file = folder / f"{part}.tsv"
        file.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
        named.append(f"data.{part}={file}")
    return named


def trained(recipe: Recipe, into: Path) -> dict[str, float]:
    """The best validation of a training: the loss, and the score beside it."""
    shutil.rmtree(into, ignore_errors=True)
    best: dict[str, float] = {"loss": math.inf}
    try:
        for record in train(recipe, into):
            if record.scores and record.scores["loss"] < best["loss"]:
                best = dict(record.scores)
    except RunError:
        pass  # what is not finite ends a training: the doctor is for that, too
    return best


def found_in(folder: Path) -> tuple[list[dict[str, Any]], float]:
    begun = time.perf_counter()
    found = diagnose(folder)
    told = [
        {"name": one.name, "severity": one.severity, "change": one.change, "says": one.says, "measured": one.measured}
        for one in found
    ]
    return told, time.perf_counter() - begun


def ill(case: Ill, seed: int, work: Path) -> dict[str, Any]:
    recipe = Recipe.read(case.recipe, *files(case.examples(), work), *case.settings)
    recipe = recipe.override(f"train.seed={seed}")
    before = trained(recipe, work / "ill")
    found, seconds = found_in(work / "ill")
    settings = found[0]["change"].split() if found else []
    after = trained(recipe.override(*settings), work / "cured") if settings else before
    return {"before": before, "found": found, "typed": " ".join(settings), "after": after, "seconds": seconds}


def healthy(name: str, work: Path) -> dict[str, Any]:
    recipe, settings = HEALTHY[name]
    own = files(OWN[name](), work) if name in OWN else []
    scores = trained(Recipe.read(recipe, *own, *settings), work / "healthy")
    found, seconds = found_in(work / "healthy")
    return {"scores": scores, "found": found, "seconds": seconds}


def lag(kind: str, distance: int, seed: int, work: Path) -> dict[str, Any]:
    """A training on one distance alone: whether it learns, and how far the doctor says it remembers."""
    from seqloom.look.doctor.memory import measure_memory
    from seqloom.runs.run import load

    recipe = Recipe.read("classify", *files(distant(distance)(), work), *KINDS[kind], f"train.seed={seed}")
    scores = trained(recipe, work / "lag")
    run = load(work / "lag")
    examples = distant(distance)()["validation"]
    encoded = run.task.shape.encode(examples[:64])
    memory = measure_memory(run.model, run.task.shape.collate(encoded, range(64)))
    return {"accuracy": scores["accuracy"], "memory": memory.length, "uses": memory.uses}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="ten, more, healthy, lags; all without")
    parser.add_argument("--again", action="store_true", help="do what was done again")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--without", default="", help="leave out those whose name contains this")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    parts, ledger = asked.parts or ["lags", "ten", "healthy", "more"], Ledger(asked.ledger)
    work = Path(tempfile.mkdtemp(prefix="doctor-"))
    jobs: dict[str, Any] = {}
    for seed in SEEDS:
        if "ten" in parts:
            jobs |= {f"ten/{name}/{seed}": (ill, TEN[name], seed, work) for name in TEN}
    for seed in SEEDS[:2]:
        if "lags" in parts:
            jobs |= {f"lags/{kind}/{one}/{seed}": (lag, kind, one, seed, work) for kind in KINDS for one in LAGS}
    if "healthy" in parts:
        jobs |= {f"healthy/{name}": (healthy, name, work) for name in HEALTHY}
    if "more" in parts:
        jobs |= {f"more/{name}/0": (ill, MORE[name], 0, work) for name in MORE}
    for key, (job, *arguments) in jobs.items():
        if (key in ledger.done and not asked.again) or asked.only not in key:
            continue
        if asked.without and asked.without in key:
            continue
        begun = time.perf_counter()
        ledger.keep(key, job(*arguments))
        print(
            f"{key}: {time.perf_counter() - begun:.0f} s",
            json.dumps(ledger.done[key], ensure_ascii=False)[:1500],
            flush=True,
        )
    shutil.rmtree(work, ignore_errors=True)
    write_page(ledger.done, ROOT / "docs" / "doctor.md")


if __name__ == "__main__":
    main()
