"""What a run folder says of itself, without its weights being read."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config.recipe import Recipe
from ..config.tasks import USES
from ..runs.folder import RECORDS, WEIGHTS, check_version, read_config, read_recipe, read_scores
from ..runs.model_card import describe_network
from ..training.manifests import MANIFEST, read_manifest

LIVE = 60.0  # seconds after its last record that a run counts as one that trains right now


@dataclass(frozen=True)
class Entry:
    """A run folder as it describes itself, at the time its manifest was written."""

    folder: Path
    stamp: int  # when that was
    recipe: Recipe
    fingerprint: str  # of the weights; nothing before the first are kept
    about: dict[str, Any]

    @property
    def answer_tokens(self) -> int:
        """The most tokens of an answer, where the recipe decides; answers that are not searched for count as one."""
        use = USES[self.recipe.task]
        return max(self.recipe.search.max_length, 1) if use.encodes and use.decodes else 1


def read_entry(folder: Path) -> Entry:
    """What a folder says of itself; its weights are checked on loading."""
    stamp = stamp_of(folder)
    check_version(folder)
    recipe, sums, report = read_recipe(folder), read_manifest(folder).get(WEIGHTS, []), read_scores(folder)
    about = {
        "task": recipe.task,
        "title": recipe.about.title.partition("; the sample")[0] if recipe.data.train else recipe.about.title,
        "model": recipe.model.kind,
        "network": describe_network(recipe),
        "parameters": read_config(folder).parameters,
        "steps": recipe.train.steps,
        "split": report.get("split"),
        "examples": report.get("examples"),
        "scores": report.get("scores", {}),
    }
    return Entry(folder, stamp, recipe, sums[-1] if sums else "", about)


def stamp_of(folder: Path) -> int:
    try:
        return os.stat(folder / MANIFEST).st_mtime_ns
    except OSError:
        return 0


def state_of(entry: Entry) -> str:
    """trained, with its scores; training, if its records are fresh; else unfinished."""
    if entry.about["scores"]:
        return "trained"
    try:
        fresh = time.time() - os.stat(entry.folder / RECORDS).st_mtime < LIVE
    except OSError:
        fresh = time.time() - entry.stamp / 1e9 < LIVE  # it has just begun
    return "training" if fresh else "unfinished"
