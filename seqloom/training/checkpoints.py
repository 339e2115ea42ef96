"""Checkpoints: all that training needs to go on, in folders that are either whole or passed over.

    checkpoints/step-1200/  weights, optimizer, average and carried .safetensors  state.json  manifest.json

A checkpoint is written under a temporary name, synced file by file, and renamed; only then are older ones removed.
Nothing here is pickled. What the numbers in `state.json` mean is the loop's business.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import RunError
from .files import (
    check_folder,
    explain_errors,
    json_bytes,
    make_partial_path,
    parse_json,
    sweep,
    sync_folder,
    write_synced,
)
from .manifests import MANIFEST, check_manifest, compute_sums, manifest_bytes, read_checked
from .tensors import parse_tensors, tensor_bytes

WEIGHTS, OPTIMIZER, AVERAGE, CARRIED, STATE = (
    "weights.safetensors",
    "optimizer.safetensors",
    "average.safetensors",
    "carried.safetensors",
    "state.json",
)
NAMES = (WEIGHTS, OPTIMIZER, AVERAGE, CARRIED, STATE)
NAME = re.compile(r"step-([1-9][0-9]{0,17})")


@dataclass(frozen=True)
class Checkpoint:
    """Training as it stood right after this step, before anything was told about it."""

    step: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    average: dict[str, Tensor]  # of the weights; empty if none is kept
    carried: dict[str, Tensor]  # the state that the next batch goes on from; empty if it begins anew
    state: dict[str, Any]  # JSON: the position in the data, the counters
    place: str = "checkpoint"  # where it was read from, for sentences about it

    def files(self) -> dict[str, bytes]:
        return {
            WEIGHTS: tensor_bytes(self.weights),
            OPTIMIZER: tensor_bytes(self.optimizer),
            AVERAGE: tensor_bytes(self.average),
            CARRIED: tensor_bytes(self.carried),
            STATE: json_bytes(self.state),
        }

    @classmethod
    def parse(cls, step: int, files: dict[str, bytes], place: str) -> "Checkpoint":
        """The checkpoint stored in `files`."""
        weights, optimizer, average, carried = (
            parse_tensors(files[name], Path(place) / name) for name in (WEIGHTS, OPTIMIZER, AVERAGE, CARRIED)
        )
        state = parse_json(files[STATE], f"{place}/{STATE}")
        return cls(step, weights, optimizer, average, carried, state, place)


class Checkpoints:
    """The folder of one run's checkpoints. One process at a time writes into it: see `files.lock_folder`.

    `skipped_checkpoints` holds a sentence for each damaged checkpoint that the last `newest()` met.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        assert keep >= 1, "the newest checkpoint is always kept"
        self.folder, self.keep = folder, keep
        self.skipped_checkpoints: tuple[str, ...] = ()
        self._damaged: set[int] = set()

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, whole or not, the newest first."""
        check_folder(self.folder)
        if not self.folder.exists():
            return []
        with explain_errors(self.folder, "cannot be read"):
            matches = [NAME.fullmatch(name) for name in os.listdir(self.folder)]
        return sorted((int(match[1]) for match in matches if match), reverse=True)

    def find_newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, or none."""
        reasons: list[str] = []
        self._damaged = set()
        checkpoint = None
        for step in self.steps():
            try:
                checkpoint = self._read(step)
                break
            except RunError as error:
                reasons.append(str(error))
                self._damaged.add(step)
        self.skipped_checkpoints = tuple(reasons)
        return checkpoint

    def save(self, checkpoint: Checkpoint) -> None:
        """Write this one, then remove those that are too many. On failure the earlier ones stay as they are."""
        place = self._place(checkpoint.step)
        check_folder(self.folder)
        with explain_errors(place, "cannot be written, earlier checkpoints are untouched"):
            if not self.folder.exists():
                self.folder.mkdir(parents=True)
                sync_folder(self.folder.parent)
            try:
                _write_folder(make_partial_path(place), checkpoint.files())
                if os.path.lexists(place):  # a damaged one that was passed over: a folder cannot be renamed onto it
                    self._remove(place)
                os.replace(make_partial_path(place), place)
            except BaseException:
                shutil.rmtree(make_partial_path(place), ignore_errors=True)
                raise
            sync_folder(self.folder)
        self._prune(checkpoint.step)

    def sweep(self) -> None:
        """Remove what killed processes left half-written or half-removed."""
        check_folder(self.folder)
        if self.folder.exists():
            sweep(self.folder)

    def _place(self, step: int) -> Path:
        return self.folder / f"step-{step}"

    def _read(self, step: int) -> Checkpoint:
        place = self._place(step)
        check_folder(place)
        sums = check_manifest(place, later=NAMES)
        files = {name: read_checked(place / name, sums[name]) for name in NAMES}
        return Checkpoint.parse(step, files, str(place))

    def _prune(self, newest: int) -> None:
        """Remove all but the newest ones; the damaged ones do not count, and the one just written made them useless."""
        self._damaged.discard(newest)
        whole = [step for step in self.steps() if step not in self._damaged]
        with explain_errors(self.folder, "cannot be tidied"):
            for step in [*self._damaged, *whole[self.keep :]]:
                if os.path.lexists(self._place(step)):
                    self._remove(self._place(step))
        self._damaged = set()

    def _remove(self, place: Path) -> None:
        """First out of sight, then away: killed in between, no half-empty folder has the name of a checkpoint."""
        if place.is_symlink():  # what it leads to is not ours
            place.unlink()
            return
        gone = make_partial_path(place.with_name(f"{place.name}.old"))
        shutil.rmtree(gone, ignore_errors=True)
        os.replace(place, gone)
        shutil.rmtree(gone)


def _write_folder(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        write_synced(folder / name, data)
    write_synced(folder / MANIFEST, manifest_bytes(compute_sums(files)))
    sync_folder(folder)
