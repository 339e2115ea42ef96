"""The run folder: its files, what may stand in it, and what is refused.

recipe.toml        resolved: defaults are never consulted again
config.json        what the weights fit: the format, the vocabulary sizes, the number of parameters
task.json          what was learnt about reading: tokenizers and their vocabularies
model.safetensors  the best weights
data.json          the data's report and fingerprint
records.jsonl      what training told, line by line
scores.json        the final scores, each with its baselines
int8.json          what weights of eight bits do to the scores, once that was measured
README.md          a card for people
version            of this layout, and of the program that wrote it
manifest.json      SHA-256 sums of the files above
checkpoints/       what training goes on from; events.* for TensorBoard
"""

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .errors import RecipeError, RunError
from .layers.cells import MakeCell
from .recipe import Recipe
from .tasks.base import Prepared, Task
from .training.files import LOCK, json_bytes, read_bytes, read_json, remove_quietly, telling, write_atomically
from .training.manifests import MANIFEST, check_manifest, write_manifest

FORMAT = 1  # of the layout; a folder of a higher one is refused
SETTLED = ("recipe.toml", "config.json", "task.json", "data.json", "version")  # written once, before step 1
WEIGHTS, RECORDS, SCORES, CARD = "model.safetensors", "records.jsonl", "scores.json", "README.md"
EIGHT = "int8.json"


# --- beginning ------------------------------------------------------------------------------------------------


def next_folder(parent: Path, name: str) -> Path:
    """parent/name, or the first parent/name-2, -3 … that is free."""
    number, folder = 1, parent / name
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


def make_room(folder: Path, resume: bool) -> None:
    """A folder to begin in. What a killed beginning has left is no obstacle when resuming, its lock never is."""
    used = folder.is_dir() and any(path.name != LOCK for path in folder.iterdir())
    if (used and not resume) or (folder.exists() and not folder.is_dir()):
        raise RunError(f"{folder}: is not an empty folder; name another with --into, or go on with it: --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made ({error.strerror or error})") from error


def write_settled(folder: Path, task: Task, prepared: Prepared, model: nn.Module, about: dict[str, Any]) -> None:
    versions = [f"seqloom {metadata.version('seqloom')}", f"torch {torch.__version__}"]
    version = f"{FORMAT}\n{', '.join([*versions, f'python {platform.python_version()}'])}\n"
    settled = {
        "recipe.toml": task.recipe.to_toml(comments=False).encode(),
        "config.json": json_bytes(
            {
                "format": FORMAT,
                "task": task.recipe.task,
                "cell": name_of(task.cell),
                "vocabularies": task.vocabularies(),
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
            }
            | about
        ),
        "task.json": json_bytes(task.saved()),
        "data.json": json_bytes({"fingerprint": prepared.fingerprint, "report": report_of(task, prepared)}),
        "version": version.encode(),
    }
    try:
        for name, content in settled.items():
            write_atomically(folder / name, content)
        write_manifest(folder, SETTLED)  # last: a folder with a manifest has begun
    except BaseException:
        for name in (MANIFEST, *settled):
            remove_quietly(folder / name)
        raise


def report_of(task: Task, prepared: Prepared) -> dict[str, Any]:
    """What was done to the data, and how much of the training batches is padding."""
    return prepared.report.to_json() | {"padded_share": task.padded_share(prepared)}


def changed_at(folder: Path) -> int:
    """The last step before the data changed; -1 if it never did."""
    changes = read_json(folder / "data.json").get("changes", [])
    return int(changes[-1]["step"]) if changes else -1


# --- going on and being asked ---------------------------------------------------------------------------------


def name_of(cell: MakeCell | None) -> str | None:
    return None if cell is None else getattr(cell, "__name__", type(cell).__name__)


def check_cell(folder: Path, cell: MakeCell | None) -> None:
    """A cell of one's own is code: it comes from Python, and a folder only says its name."""
    wanted = read_json(folder / "config.json").get("cell")
    if wanted != name_of(cell):
        raise RunError(
            f"{folder}: was trained with {f'a cell of its own, {wanted}' if wanted else 'a built-in cell'}, but "
            f"{f'{name_of(cell)} is given' if cell else 'none is given: load(folder, cell=…) in Python'}"
        )


def check_version(folder: Path) -> None:
    if not folder.is_dir():
        raise RunError(f"{folder}: is no run folder; seqloom train RECIPE --into {folder} makes one")
    if not (folder / "version").exists() or not (folder / MANIFEST).exists():
        raise RunError(f"{folder}: is no run folder, or one whose training never began")
    number = read_bytes(folder / "version")[:20].split(b"\n")[0]
    if not number.isdigit():
        raise RunError(f"{folder / 'version'}: does not begin with the number of a run format")
    if int(number) > FORMAT:
        raise RunError(
            f"{folder}: was written by a newer seqloom (run format {int(number)}, this one reads {FORMAT}): update"
        )


def own_recipe(folder: Path) -> Recipe:
    try:
        return Recipe.read(folder / "recipe.toml")
    except RecipeError as error:
        raise RunError(str(error)) from None


def same_recipe(folder: Path, given: Recipe | None) -> Recipe:
    """The folder's own recipe; one that is given beside it must say the same."""
    check_manifest(folder, SETTLED)
    own = Recipe.read(folder / "recipe.toml")
    if given is None:
        return own
    ours, theirs = flat(own.model_dump()), flat(given.resolved().model_dump())
    settled = set() if given.search.max_length else {"search.max_length"}  # what followed when the run began
    settled |= {f"train.{name}" for name in ("device", "precision") if getattr(given.train, name) == "auto"}
    if given.train.time:
        settled |= {f"train.{name}" for name in ("time", "steps", "warmup", "validate_every", "checkpoint_every")}
    for name, value in theirs.items():
        if ours[name] != value and name not in settled and not name.startswith("about."):
            raise RecipeError(
                f"{folder}: was begun with {name} = {ours[name]!r}, not {value!r}; "
                "a run goes on as it began, or begins anew in another folder"
            )
    return own


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


# --- records ---------------------------------------------------------------------------------------------------


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl; none of a folder that came without them."""
    return [json.loads(line) for line in read_bytes(path).splitlines()] if path.exists() else []


def append_line(path: Path, line: str, synced: bool) -> None:
    with telling(path, "cannot be written"), path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        if synced:  # not every line: a lost one is told again on resuming
            os.fsync(file.fileno())


def forget_records(path: Path, step: int) -> None:
    """Take back the records from this step on: a resumed run tells them again. A line cut by a kill goes too."""
    if not path.exists():
        return
    kept = []
    for line in read_bytes(path).splitlines(keepends=True):
        try:
            if json.loads(line)["step"] < step and line.endswith(b"\n"):
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    write_atomically(path, b"".join(kept))
