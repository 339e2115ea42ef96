"""One recipe trained several times, on several seeds or folds: what the scores have in common, and how far they lie
apart."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from ..config.recipe import Recipe
from .folder import read_scores


class Repeats(NamedTuple):
    """The setting that differs between repeated runs, and its values."""

    kind: str  # seed or fold
    setting: str
    numbers: Sequence[int]

    @property
    def file(self) -> str:
        return f"{self.kind}s.json"

    def name_folder(self, into: Path, number: int) -> Path:
        return into / f"{self.kind}-{number}"

    def list_runs(self, recipe: Recipe, into: Path) -> list[tuple[Recipe, Path]]:
        """The recipe and the folder of each run."""
        return [(recipe.changed(self.setting, number), self.name_folder(into, number)) for number in self.numbers]


def repeat_seeds(recipe: Recipe, count: int) -> Repeats:
    """So many seeds, from that of the recipe on."""
    return Repeats("seed", "train.seed", range(recipe.train.seed, recipe.train.seed + count))


def repeat_folds(recipe: Recipe) -> Repeats:
    """Every fold of the recipe, each of which is the test part once."""
    return Repeats("fold", "data.fold", range(recipe.data.folds))


def summarize_runs(into: Path, repeats: Repeats) -> dict[str, Any]:
    """Mean and standard deviation of each score over finished runs, beside the means of its baselines."""
    reports = [read_scores(repeats.name_folder(into, number)) for number in repeats.numbers]
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
    return {
        "run": str(into),
        "task": reports[0]["task"],
        f"{repeats.kind}s": list(repeats.numbers),
        "examples": sum(report["examples"] for report in reports),
        "scores": scores,
    }
