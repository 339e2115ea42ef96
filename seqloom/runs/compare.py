"""Variants of one recipe, compared fairly: matched, on the same seeds, with a verdict that knows the noise.

A comparison lives in a folder: what is compared (plan.json), a run folder for every variant and seed, and a result for
each. Jobs are done one after the other; what was killed goes on, and several processes on one folder share them.
"""

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ..config.ranges import Over
from ..config.recipe import Recipe
from ..config.train import seconds
from ..counts import format_count
from ..errors import RecipeError, RunError, SeqloomError
from ..metrics.paired import Verdict, compute_bootstrap_interval, judge
from ..training.files import explain_errors, json_bytes, read_json, write_atomically
from ..training.records import Record
from .folder import RECORDS, SCORES, WEIGHTS, read_records, read_scores
from .matching import Variant, Workshop, list_variants, match_parameters, match_steps
from .run import load, train

MATCHES = ("parameters", "time", "steps")
PLAN, RUNS, RESULTS, CLAIMS = "plan.json", "runs", "results", "claims"
TIMED_INPUTS = 20  # inputs that the time of an answer is measured on
WAIT = 1.0  # seconds between looks at what other processes do


@dataclass(frozen=True)
class Plan:
    """What is compared."""

    recipe: dict[str, Any]
    match: str
    budget: str
    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]

    def jobs(self) -> list[tuple[Variant, int]]:
        """Seed by seed, so that what is there can be compared at any time."""
        return [(variant, seed) for seed in self.seeds for variant in self.variants]


@dataclass(frozen=True)
class VariantRow:
    """A variant with its scores, and what it costs: means over the seeds."""

    name: str
    settings: tuple[str, ...]
    parameters: int
    scores: dict[str, float]  # by seed
    mean: float | None
    interval: tuple[float, float] | None
    steps: int
    seconds: float  # of training
    milliseconds: float  # of an answer
    megabytes: float
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All that is known so far."""

    folder: str
    task: str
    match: str
    score: str
    better: str
    seeds: int  # that were asked for
    done: int
    jobs: int
    rows: tuple[VariantRow, ...]
    baselines: dict[str, float]
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        results = asdict(self)
        for pair, known in zip(results["verdict"]["pairs"], self.verdict.pairs, strict=True):
            pair["separated"] = known.separated
        return results


def compare(
    recipe: Recipe,
    into: Path | str,
    *,
    kinds: Sequence[str] = (),
    over: Sequence[Over] = (),
    match: str = "parameters",
    budget: str = "",
    seeds: int = 6,
    score: str = "",
    examples: object = None,
) -> Comparison:
    """Train every variant with every seed, and say what can be said; called again, it goes on.

    `match` says what variants have in common: parameters (sizes are searched for), the time of a run, or its steps. A
    `budget` such as "5m" is the time of a run; without one, the recipe says how long to train. `score` is the one that
    counts, by default the first of the task. `examples` from Python take the place of the recipe's files.
    """
    for _ in train_variants(recipe, Path(into), Design(kinds, over, match, budget, seeds), examples):
        pass
    return read_comparison(into, score)


@dataclass(frozen=True)
class Design:
    """How a recipe is varied, and what its variants have alike."""

    kinds: Sequence[str] = ()
    over: Sequence[Over] = ()
    match: str = "parameters"
    budget: str = ""
    seeds: int = 6


def train_variants(
    recipe: Recipe, folder: Path, design: Design, examples: object = None, stop: threading.Event | None = None
) -> Iterator[Record]:
    """Every job that is not done yet; the records are notes on what is being done."""
    yield from make_plan(folder, recipe, design, examples)
    yield from run_jobs(folder, read_plan(folder), examples, stop)


def note(text: str) -> Record:
    return Record("note", 0, text=text)


# --- the plan -----------------------------------------------------------------------------------------------------


def make_plan(folder: Path, recipe: Recipe, design: Design, examples: object = None) -> Iterator[Record]:
    """The plan of this folder: made by the first who asks, read by all others. More seeds may be asked for later."""
    match, budget = design.match, design.budget
    if match not in MATCHES:
        raise RecipeError(f"there is no match {match!r}; there are {', '.join(MATCHES)}")
    if match == "time" and not budget:
        raise RecipeError("to match time, give the time of a run: --budget 5m")
    if budget:
        seconds(budget)
        recipe = recipe.changed("train.time", "").changed("train.steps", 0)
    named = list_variants(design.kinds, design.over)
    for variant in named:  # what cannot be is said before anything is waited for
        variant.recipe(recipe)
    settings = {
        "recipe": recipe.model_dump(mode="json"),
        "match": match,
        "budget": budget,
        "named": [asdict(one) for one in named],
    }
    with explain_errors(folder, "cannot be made"):
        for name in (RUNS, RESULTS, CLAIMS):
            (folder / name).mkdir(parents=True, exist_ok=True)
    with claim(folder / CLAIMS / "plan", wait=True):
        known = json.loads(json.dumps(settings))
        if (folder / PLAN).exists():
            stored = read_json(folder / PLAN)
            if {key: stored.get(key) for key in known} != known:
                raise RunError(f"{folder}: another comparison was started here; choose another folder with --into")
        else:
            yield note("reading the data, and matching the variants")
            matched = match_variants(recipe, named, match, budget, examples)
            stored = known | {"variants": [asdict(one) for one in matched]}
        stored["seeds"] = max(design.seeds, stored.get("seeds", 0))
        write_atomically(folder / PLAN, json_bytes(stored))


def match_variants(
    recipe: Recipe, named: Sequence[Variant], match: str, budget: str, examples: object
) -> list[Variant]:
    workshop = Workshop(recipe, examples)
    variants = match_parameters(workshop, named) if match == "parameters" else list(named)
    return match_steps(workshop, variants, budget, each=match == "time")


def read_plan(folder: Path) -> Plan:
    if not (folder / PLAN).exists():
        raise RunError(f"{folder}: holds no comparison")
    stored = read_json(folder / PLAN)
    variants = [Variant(one["name"], tuple(one["settings"]), one["parameters"]) for one in stored["variants"]]
    return Plan(stored["recipe"], stored["match"], stored["budget"], tuple(range(stored["seeds"])), tuple(variants))


# --- the jobs -----------------------------------------------------------------------------------------------------


@contextmanager
def claim(path: Path, wait: bool = False) -> Iterator[bool]:
    """Whether this is ours alone for now. The system lets go of it when the process ends, however it ends."""
    with explain_errors(path, "cannot be written"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            mine = True
        except BlockingIOError:
            mine = False
        yield mine
    finally:
        os.close(descriptor)


def name_job(variant: Variant, seed: int) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-=." else "-" for letter in variant.name)
    return f"{safe}-seed{seed}"


def run_jobs(
    folder: Path, plan: Plan, examples: object = None, stop: threading.Event | None = None
) -> Iterator[Record]:
    """Do what nobody has done or is doing, until all is done; what another process was killed at is free again."""
    jobs, waiting = plan.jobs(), False
    while missing := [job for job in jobs if not (folder / RESULTS / f"{name_job(*job)}.json").exists()]:
        idle = True
        for variant, seed in missing:
            if stop is not None and stop.is_set():
                return
            name = name_job(variant, seed)
            with claim(folder / CLAIMS / name) as mine:
                if not mine or (folder / RESULTS / f"{name}.json").exists():
                    continue
                idle = False
                number = len(jobs) - len(missing) + 1 + missing.index((variant, seed))
                yield note(f"{name}: job {number} of {len(jobs)}")
                result = run_job(folder, plan, variant, seed, examples, stop)
                if result is None:
                    return
                write_atomically(folder / RESULTS / f"{name}.json", json_bytes(result))
        if idle:
            if not waiting:
                yield note(f"waiting for {format_count(len(missing), 'job')} of other processes")
            waiting = True
            time.sleep(WAIT)


def run_job(
    folder: Path, plan: Plan, variant: Variant, seed: int, examples: object, stop: threading.Event | None
) -> dict[str, Any] | None:
    """One run, and what is to be known of it; nothing if it was stopped."""
    into = folder / RUNS / name_job(variant, seed)
    recipe = variant.recipe(Recipe.of(plan.recipe), f"train.seed={seed}")
    try:
        for _ in train(recipe, into, examples=examples, resume=True, stop=stop):
            pass
        if stop is not None and stop.is_set() and not (into / SCORES).exists():
            return None
        return measure(into, examples)
    except SeqloomError as error:
        return {"failure": str(error)}


def measure(into: Path, examples: object) -> dict[str, Any]:
    """Scores of a finished run, and its cost."""
    run = load(into)
    records, _ = read_records(into / RECORDS)
    steps = [record for record in records if record["kind"] != "note"]
    _, timed = run.pick_examples(TIMED_INPUTS, examples)
    for one in timed[:1]:  # what is set up at the first answer is not counted
        run.predict(one.input)
    start = time.perf_counter()
    for one in timed:
        run.predict(one.input)
    scored, kept = read_scores(into), ("value", "better", "baselines")
    return {
        "scores": {name: {key: one[key] for key in kept} for name, one in scored["scores"].items()},
        "task": scored["task"],
        "steps": steps[-1]["step"],
        "seconds": steps[-1]["seconds"],
        "milliseconds": 1000 * (time.perf_counter() - start) / max(len(timed), 1),
        "megabytes": (into / WEIGHTS).stat().st_size / 1e6,
    }


# --- the result ---------------------------------------------------------------------------------------------------


def read_comparison(folder: Path | str, score: str = "") -> Comparison:
    """What a folder says so far."""
    folder = Path(folder)
    plan = read_plan(folder)
    results: dict[tuple[str, int], dict[str, Any]] = {}
    for variant, seed in plan.jobs():
        path = folder / RESULTS / f"{name_job(variant, seed)}.json"
        if path.exists():
            results[variant.name, seed] = read_json(path)
    whole = {job: one for job, one in results.items() if "failure" not in one}
    if not whole:
        failures = [one["failure"] for one in results.values()]
        raise RunError(f"{folder}: no run has finished" + (f": {failures[0]}" if failures else " yet"))
    first = next(iter(whole.values()))
    name = score or next(iter(first["scores"]))
    if name not in first["scores"]:
        raise RecipeError(f"there is no score {name!r}; there are {', '.join(first['scores'])}")
    better = first["scores"][name]["better"]
    rows = tuple(make_row(plan, variant, results, name) for variant in plan.variants)
    return Comparison(
        str(folder),
        first["task"],
        plan.match,
        name,
        better,
        len(plan.seeds),
        len(results),
        len(plan.jobs()),
        rows,
        first["scores"][name]["baselines"],
        reach_verdict(rows, better),
    )


def make_row(plan: Plan, variant: Variant, results: dict[tuple[str, int], dict[str, Any]], score: str) -> VariantRow:
    own = {seed: results[variant.name, seed] for seed in plan.seeds if (variant.name, seed) in results}
    failures = tuple(one["failure"] for one in own.values() if "failure" in one)
    own = {seed: one for seed, one in own.items() if "failure" not in one}
    scores = {str(seed): float(one["scores"][score]["value"]) for seed, one in own.items() if score in one["scores"]}

    def mean(key: str) -> float:
        return fmean(one[key] for one in own.values()) if own else 0.0

    return VariantRow(
        variant.name,
        variant.settings,
        variant.parameters,
        scores,
        fmean(scores.values()) if scores else None,
        compute_bootstrap_interval(list(scores.values())) if scores else None,
        round(mean("steps")),
        mean("seconds"),
        mean("milliseconds"),
        mean("megabytes"),
        failures,
    )


def reach_verdict(rows: Sequence[VariantRow], better: str) -> Verdict:
    """On the seeds that all variants have a score of; one that failed takes no part."""
    whole = [row for row in rows if row.scores and not row.failures]
    shared = set.intersection(*(set(row.scores) for row in whole)) if whole else set()
    seeds = sorted(shared, key=int)
    if better not in ("higher", "lower"):
        return Verdict(None, "this score has no direction, so there is no best: choose another", len(seeds), None, ())
    return judge({row.name: [row.scores[seed] for seed in seeds] for row in whole}, better == "higher")
