"""The runs of a folder: found by name, loaded when they are asked for, unloaded when memory is short.

A name from a request is looked up here and never becomes a path. What a folder says of itself is read again only when
its manifest has changed; a folder that cannot be read is listed with the reason, and disturbs no other.
"""

import os
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from ..errors import RunError, SeqloomError
from ..runs.folder import WEIGHTS
from ..training.manifests import MANIFEST
from .entries import Entry, read_entry, stamp_of, state_of
from .limits import Limits, Refused
from .metrics import Metrics
from .models import Model

FRESH = 2.0  # seconds that the list of a folder counts as new


class Runs:
    """`find` may be called from any thread, `load` only from the batcher's."""

    def __init__(self, folder: Path, limits: Limits, metrics: Metrics) -> None:
        self.folder, self.limits, self.metrics = folder.resolve(), limits, metrics
        self.shown = folder.name if folder.is_absolute() else str(folder)  # for commands; not where it lies
        self.loaded: OrderedDict[str, Model] = OrderedDict()  # the least recently used first
        self.refused: dict[str, str] = {}  # folders that are no runs, and why
        self._entries: dict[str, Entry] = {}  # all that have begun, with weights or not yet
        self._looked = -FRESH
        if not self.folder.is_dir():
            raise RunError(f"{folder}: is not a folder")
        if self.is_single and not read_entry(self.folder).fingerprint:
            raise RunError(f"{folder}: has no trained model yet; continue with: seqloom train --into {folder} --resume")
        metrics.gauges["seqloom_runs_loaded"] = "Runs in memory.", lambda: len(self.loaded)
        metrics.gauges["seqloom_weight_bytes"] = "Bytes of their weights.", lambda: sum(map(self.size, [*self.loaded]))

    @property
    def is_single(self) -> bool:
        return (self.folder / MANIFEST).exists()

    def list(self) -> dict[str, Entry]:
        """Every run that has begun, by name; new ones are found while the server runs."""
        if time.monotonic() - self._looked >= FRESH:
            self._look()
            self._looked = time.monotonic()
        return self._entries

    def find(self) -> dict[str, Entry]:
        """The runs that have weights."""
        return {name: entry for name, entry in self.list().items() if entry.fingerprint}

    def _look(self) -> None:
        entries, refused = {}, {}
        for path in [self.folder] if self.is_single else sorted(self.folder.iterdir()):
            if path.is_symlink() or not path.is_dir() or path.name.startswith("."):
                continue
            try:
                old = self._entries.get(path.name)
                same = old is not None and old.stamp == stamp_of(path)
                entries[path.name] = old if old is not None and same else read_entry(path)
            except (SeqloomError, OSError) as error:
                refused[path.name] = self.hide(str(error))
        self._entries, self.refused = entries, refused

    def check(self, name: str, servable: bool = True) -> Entry:
        entries = self.find() if servable else self.list()
        if name in entries:
            return entries[name]
        known = ", ".join(sorted(entries)[:10]) or "none"
        untrained = f": {name} has no weights yet" if name in self._entries else ""
        raise Refused(404, "unknown run", f"there is no run {name[:80]!r} here{untrained}; there are: {known}")

    def size(self, name: str) -> int:
        """Bytes of a run's weights, as they lie in its file."""
        try:
            return os.stat(self._entries[name].folder / WEIGHTS).st_size
        except (KeyError, OSError):
            return 0

    def load(self, name: str) -> Model:
        """The run, in memory; others have to leave if there is not enough room. If trained on, it is read anew."""
        entry = self.check(name)
        if name in self.loaded and self.loaded[name].fingerprint == entry.fingerprint:
            self.loaded.move_to_end(name)
            return self.loaded[name]
        self.loaded.pop(name, None)
        size = self.size(name)
        if size > self.limits.memory:
            limit = f"{self.limits.memory:,} bytes that the server may use for weights (--memory)"
            raise Refused(503, "memory", f"{name} has weights of {size:,} bytes, more than the {limit}")
        while self.loaded and sum(map(self.size, self.loaded)) + size > self.limits.memory:
            self.loaded.popitem(last=False)
            self.metrics.count("loads", what="unloaded")
        try:
            self.loaded[name] = Model(name, entry.folder)
        except SeqloomError as error:
            raise Refused(503, "broken run", self.hide(str(error))) from None
        self.metrics.count("loads", what="loaded")
        return self.loaded[name]

    def hide(self, sentence: str) -> str:
        """Who asks from elsewhere need not know where the runs lie."""
        return sentence.replace(f"{self.folder}/", "").replace(str(self.folder), self.folder.name)

    def describe(self, name: str) -> dict[str, Any]:
        """What is known about a run without loading it."""
        entry = self.check(name, servable=False)
        state = {
            "name": name,
            "path": self.shown if self.is_single else f"{self.shown}/{name}",
            "loaded": name in self.loaded,
            "servable": bool(entry.fingerprint),
            "state": state_of(entry),
        }
        return state | entry.about
