"""One recipe on several seeds: what their scores have in common, and how far they lie apart."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from .folder import read_scores

SEEDS = "seeds.json"


def name_folder(into: Path, seed: int) -> Path:
    return into / f"seed-{seed}"


def summarize_seeds(into: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """Mean and standard deviation of each score over finished runs, beside the means of its baselines."""
    reports = [read_scores(name_folder(into, seed)) for seed in seeds]
    scores: dict[str, Any] = {}
    for name, first in reports[0]["scores"].items():
        runs = [report["scores"][name] for report in reports if name in report["scores"]]
        values = [run["value"] for run in runs]
        scores[name] = {
            "mean": fmean(values),
            "std": stdev(values) if len(values) > 1 else None,
            "values": values,
            "better": first["better"],
            "baselines": {
                rival: fmean(known)
                for rival in first["baselines"]
                if (known := [value for run in runs if (value := run["baselines"].get(rival)) is not None])
            },
        }
    return {"run": str(into), "task": reports[0]["task"], "seeds": list(seeds), "scores": scores}
