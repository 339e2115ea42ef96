"""The runs of a folder: found by name, loaded when they are asked for, unloaded when memory is short.

A name from a request is looked up here and never becomes a path.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import RunError, SeqloomError
from ..runs.folder import WEIGHTS, check_version, own_recipe, read_scores
from ..training.manifests import MANIFEST, read_manifest
from .limits import Limits, Refused
from .metrics import Metrics
from .models import Model

FRESH = 2.0  # seconds that the list of a folder counts as new


class Runs:
    """`find` may be called from any thread, `load` only from the batcher's."""

    def __init__(self, folder: Path, limits: Limits, metrics: Metrics) -> None:
        self.folder, self.limits, self.metrics = folder.resolve(), limits, metrics
        self.loaded: OrderedDict[str, Model] = OrderedDict()  # the least recently used first
        self.refused: dict[str, str] = {}  # folders that are no servable runs, and why
        self._found: dict[str, Path] = {}
        self._looked = -FRESH
        if not self.folder.is_dir():
            raise RunError(f"{folder}: is no folder")
        if self.is_single and (fault := fault_of(self.folder)):
            raise RunError(fault)
        metrics.gauges["seqloom_runs_loaded"] = "Runs in memory.", lambda: len(self.loaded)
        metrics.gauges["seqloom_weight_bytes"] = "Bytes of their weights.", lambda: sum(map(self.size, [*self.loaded]))

    @property
    def is_single(self) -> bool:
        return (self.folder / MANIFEST).exists()

    def find(self) -> dict[str, Path]:
        """The runs by name; new ones are found while the server runs."""
        if time.monotonic() - self._looked >= FRESH:
            self._look()
            self._looked = time.monotonic()
        return self._found

    def _look(self) -> None:
        if self.is_single:
            self._found = {self.folder.name: self.folder}
            return
        found, refused = {}, {}
        for path in sorted(self.folder.iterdir()):
            if path.is_symlink() or not path.is_dir() or path.name.startswith("."):
                continue
            if fault := fault_of(path):
                refused[path.name] = fault
            else:
                found[path.name] = path
        self._found, self.refused = found, refused

    def check(self, name: str) -> Path:
        folder = self.find().get(name)
        if folder is None:
            known = ", ".join(sorted(self._found)[:10]) or "none"
            raise Refused(404, "unknown run", f"there is no run {name[:80]!r} here; there are: {known}")
        return folder

    def size(self, name: str) -> int:
        """Bytes of a run's weights, as they lie in its file."""
        try:
            return os.stat(self._found[name] / WEIGHTS).st_size
        except (KeyError, OSError):
            return 0

    def load(self, name: str) -> Model:
        """The run, in memory; others have to leave if there is not enough room."""
        if name in self.loaded:
            self.loaded.move_to_end(name)
            return self.loaded[name]
        folder, size = self.check(name), self.size(name)
        if size > self.limits.memory:
            limit = f"{self.limits.memory:,} bytes that the server may use for weights (--memory)"
            raise Refused(503, "memory", f"{name} has weights of {size:,} bytes, more than the {limit}")
        while self.loaded and sum(map(self.size, self.loaded)) + size > self.limits.memory:
            self.loaded.popitem(last=False)
            self.metrics.count("loads", what="unloaded")
        try:
            self.loaded[name] = Model(name, folder)
        except SeqloomError as error:
            raise Refused(503, "broken run", hide(str(error), folder)) from None
        self.metrics.count("loads", what="loaded")
        return self.loaded[name]

    def describe(self, name: str) -> dict[str, Any]:
        """What can be said without loading it."""
        folder = self.check(name)
        recipe = own_recipe(folder)
        found = read_scores(folder)
        return {
            "name": name,
            "task": recipe.task,
            "model": recipe.model.kind,
            "bytes": self.size(name),
            "loaded": name in self.loaded,
            "split": found.get("split"),
            "scores": found.get("scores", {}),
        }


def fault_of(folder: Path) -> str:
    """Why a folder is no run that could be served; nothing if it may be one: its files are checked on loading."""
    return tried(lambda: check_servable(folder))


def check_servable(folder: Path) -> None:
    check_version(folder)
    if WEIGHTS not in read_manifest(folder):
        raise RunError(f"{folder}: has no trained model yet: go on with: seqloom train --into {folder} --resume")


def tried(check: Callable[[], object]) -> str:
    try:
        check()
    except SeqloomError as error:
        return str(error)
    return ""


def hide(sentence: str, folder: Path) -> str:
    """Who asks from elsewhere need not know where a run lies."""
    return sentence.replace(str(folder), folder.name)
