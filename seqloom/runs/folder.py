"""The run folder: its files, what may stand in it, and what is refused.

recipe.toml        resolved: defaults are never consulted again
config.json        what the weights fit: the format, the vocabulary sizes, the number of parameters
task.json          what was learned about reading: tokenizers and their vocabularies
model.safetensors  the best weights
mixture.safetensors  a cache or an n-gram model that is mixed in, and how much it is believed, where the recipe wants it
data.json          the data's report and fingerprint
records.jsonl      what training said, a record a line
scores.json        the final scores, each with its baselines
int8.json          what weights of eight bits do to the scores, once that was measured
README.md          a card for people
version            of this layout, and of the program that wrote it
manifest.json      SHA-256 sums of the files above
checkpoints/       what training goes on from; events.* for TensorBoard
"""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config.messages import format_value
from ..config.recipe import Recipe
from ..data.schema import FieldKind
from ..errors import RecipeError, RunError
from ..layers.cells import MakeCell
from ..schemas import Config, Data, NoteLine, RecordLine, Scores, check_shape
from ..tasks.task import Task, TaskData
from ..training.files import (
    LOCK,
    PARTIAL,
    explain_errors,
    get_size_limit,
    json_bytes,
    lock_folder,
    open_limited,
    parse_json,
    read_bytes,
    read_json,
    read_shaped,
    remove_quietly,
    sweep,
    write_atomically,
)
from ..training.manifests import MANIFEST, compute_sums, read_manifest, replace_file, write_manifest
from .begun import check_begun, has_begun
from .foreign import declare_run
from .json_output import to_line

FORMAT = 3  # of the layout; a folder of another one is refused
SETTLED = ("recipe.toml", "config.json", "task.json", "data.json", "version")  # written once, before step 1
WEIGHTS, RECORDS, SCORES, CARD = "model.safetensors", "records.jsonl", "scores.json", "README.md"
MIXTURE = "mixture.safetensors"
INT8 = "int8.json"
LEFTOVERS = (RECORDS, *SETTLED, LOCK)  # what a beginning that was killed leaves, without a manifest


# --- beginning ------------------------------------------------------------------------------------------------


def find_free_folder(parent: Path, name: str) -> Path:
    """parent/name, or the first parent/name-2, -3 … that is free."""
    number, folder = 1, parent / name
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


@contextmanager
def hold_folder(folder: Path, resume: bool) -> Iterator[bool]:
    """Hold a folder alone, and say whether a run has begun in it; one in which none begins is left as it was before.

    What a killed beginning has left is no obstacle.
    """
    resumed = resume and has_begun(folder)
    created = [] if resumed else make_room(folder, resume)
    with lock_folder(folder):
        sweep(folder)
        try:
            yield resumed
        finally:
            if not (folder / MANIFEST).exists():
                for name in LEFTOVERS:
                    remove_quietly(folder / name)
                for path in created:
                    with suppress(OSError):
                        path.rmdir()


def make_room(folder: Path, resume: bool) -> list[Path]:
    """A folder to begin in; those that had to be made for it, the innermost first."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    used = MANIFEST in names or any(name not in LEFTOVERS and not name.endswith(PARTIAL) for name in names)
    if (used and not resume) or (folder.exists() and not folder.is_dir()):
        raise RunError(
            f"{folder}: is not an empty folder; choose another with --into, or continue its training with --resume"
        )
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made ({error.strerror or error})") from error
    return created


def write_header(folder: Path, task: Task, prepared: TaskData, model: nn.Module, about: dict[str, Any]) -> None:
    versions = [f"seqloom {metadata.version('seqloom')}", f"torch {torch.__version__}"]
    version = f"{FORMAT}\n{', '.join([*versions, f'python {platform.python_version()}'])}\n"
    settled = {
        "recipe.toml": task.recipe.to_toml(comments=False).encode(),
        "config.json": json_bytes(
            {
                "format": FORMAT,
                "task": task.recipe.task,
                "cell": name_cell(task.cell),
                "vocabularies": task.sizes(),
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
            }
            | about
        ),
        "task.json": json_bytes(task.to_json()),
        "data.json": json_bytes({"fingerprint": prepared.fingerprint, "report": build_report(task, prepared)}),
        "version": version.encode(),
    }
    for name, content in settled.items():
        if len(content) > (
            most := get_size_limit(folder / name)
        ):  # said before anything is learned that could not be read
            raise RunError(
                f"{folder / name}: would have {len(content):,} bytes, and more than {most:,} are not read again: let "
                "the vocabulary be smaller, with data.vocabulary_size or data.min_count"
            )
    try:
        for name, content in settled.items():
            write_atomically(folder / name, content)
        write_manifest(folder, compute_sums(settled))  # last: a folder with a manifest has begun
    except BaseException:
        for name in (MANIFEST, *settled):
            remove_quietly(folder / name)
        raise


def build_report(task: Task, prepared: TaskData) -> dict[str, Any]:
    """What was done to the data, and how much of the training batches is padding."""
    return prepared.report.model_dump() | {"padded_share": task.shape.padded_share(prepared)}


def read_last_change(folder: Path) -> int:
    """The last step before the data changed; -1 if it never did."""
    changes = read_data(folder).changes
    return changes[-1].step if changes else -1


# --- what the files hold --------------------------------------------------------------------------------------


def read_config(folder: Path) -> Config:
    return read_shaped(Config, folder / "config.json")


def read_data(folder: Path) -> Data:
    return read_shaped(Data, folder / "data.json")


def read_report(folder: Path) -> dict[str, Any]:
    """What was done to the data, as `build_report` made it."""
    return read_data(folder).report.model_dump(exclude_unset=True)


def read_scores(folder: Path) -> dict[str, Any]:
    """The final scores as `score --json` prints them; none of a run that has not come to its end."""
    if not os.path.lexists(folder / SCORES):
        return {}
    return read_shaped(Scores, folder / SCORES).model_dump(exclude_unset=True) | {"run": str(folder)}


def read_task(
    folder: Path, recipe: Recipe, cell: MakeCell | None, fields: Mapping[str, FieldKind] | None = None
) -> Task:
    """The task as it has learned to read; a cell or fields of one's own must be those it was trained with."""
    saved = read_json(folder / "task.json")
    try:
        task = declare_run(recipe, fields).restore(recipe, saved)
    except RunError as error:
        raise RunError(f"{folder / 'task.json'}: {str(error).removeprefix('task.json ')}") from None
    if start := read_config(folder).start:  # its data was read with fields of another run, and is so again
        carried = {side: field for side, field in task.fields.items() if side in start.fields}
        task.declaration = task.declaration.reuse_fields(carried)
    check_cell(folder, cell)
    task.cell = cell
    return task


# --- going on and being asked ---------------------------------------------------------------------------------


def name_cell(cell: MakeCell | None) -> str | None:
    return None if cell is None else getattr(cell, "__name__", type(cell).__name__)


def check_cell(folder: Path, cell: MakeCell | None) -> None:
    """A cell of one's own is code: it comes from Python, and a folder only says its name."""
    own = read_config(folder).cell
    if own != name_cell(cell):
        raise RunError(
            f"{folder}: was trained with {f'a cell of its own, {own}' if own else 'a built-in cell'}, but "
            f"{f'{name_cell(cell)} is given' if cell else 'none is given: load(folder, cell=…) in Python'}"
        )


def check_version(folder: Path) -> None:
    check_begun(folder)
    number = read_bytes(folder / "version")[:20].split(b"\n")[0]
    if not number.isdigit():
        raise RunError(f"{folder / 'version'}: does not begin with the number of a run format")
    if int(number) != FORMAT:
        age, todo = ("an older", "train it again") if int(number) < FORMAT else ("a newer", "update")
        raise RunError(
            f"{folder}: was written by {age} seqloom (run format {int(number)}, this one reads {FORMAT}): {todo}"
        )


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a run, which leaves nothing open."""
    path = folder / "recipe.toml"
    with open_limited(path):  # a link, a pipe, or what is too large
        pass
    try:
        recipe = Recipe.read(path).resolved()
    except RecipeError as error:
        raise RunError(str(error)) from None
    if not recipe.train.steps:
        raise RunError(f"{path}: train.time is {recipe.train.time!r}, but a run that has begun knows its train.steps")
    return recipe


def check_recipe(own: Recipe, recipe: Recipe, folder: Path) -> Recipe:
    """The recipe of a run, with the steps that are given; all else that is given beside it must be the same."""
    ours, theirs = flatten(own.model_dump()), flatten(recipe.resolved().model_dump())
    settled = {"train.steps", "train.time"}  # and what is left open: that followed from other settings at the beginning
    intervals = ("warmup", "validate_every", "validation_tokens", "checkpoint_every")
    settled |= {f"train.{name}" for name in intervals if not getattr(recipe.train, name)}
    settled |= {f"train.{name}" for name in ("device", "precision") if getattr(recipe.train, name) == "auto"}
    if not recipe.search.max_length:
        settled.add("search.max_length")
    if open_names := recipe.find_open():  # the data has settled these, and what followed from them
        before, body = flatten(recipe.model_dump()), [name for name in open_names if name.startswith("model.")]
        sides = {name.replace("model", f"model.{side}", 1) for name in body for side in ("encoder", "decoder")}
        settled |= open_names | sides | {name for name, value in theirs.items() if before[name] != value}
    for name, value in theirs.items():
        if name in ours and ours[name] != value and name not in settled and not name.startswith("about."):
            raise RecipeError(
                f"{folder}: was begun with {name} = {format_value(ours[name])}, not {format_value(value)}; leave it "
                "out to go on with what it was begun with, or train into another folder"
            )
    return own.changed("train.steps", recipe.train.steps) if recipe.train.steps else own


def take_up(folder: Path, recipe: Recipe | None, changes: Sequence[str]) -> Recipe:
    """The recipe of a run with what another says, which may differ as far as `check_recipe` allows, and with changes;
    what nobody says is as the run has it."""
    check_version(folder)
    own = read_recipe(folder)
    if recipe is not None and recipe.task != own.task:
        raise RecipeError(f"{folder}: was begun with the task {own.task}, not {recipe.task}; train into another folder")
    try:
        return (own if recipe is None else own.take_settings(recipe)).override(*changes)
    except RecipeError as error:
        raise RecipeError(f"{folder}: goes on with the settings it was begun with: {error}") from None


def reopen(folder: Path, recipe: Recipe) -> None:
    """Let a run go on to the steps of this recipe, one that has ended, too: nothing vouches for its end any more."""
    over = (SCORES, CARD, RECORDS, INT8, MIXTURE)
    write_manifest(folder, {name: sums for name, sums in read_manifest(folder).items() if name not in over})
    replace_file(folder, "recipe.toml", recipe.to_toml(comments=False).encode())
    for name in (SCORES, CARD, INT8, MIXTURE):
        remove_quietly(folder / name)


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


# --- records ---------------------------------------------------------------------------------------------------


def read_records(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines of records.jsonl, none of a folder that came without them; and what had to be left out, in words.

    A kill may have cut the last line, and only that one is left out.
    """
    records: list[dict[str, Any]] = []
    if not os.path.lexists(path):
        return records, []
    with open_limited(path) as file:
        for number, line in enumerate(file, 1):
            place = f"{path}, line {number}"
            try:
                values = parse_json(line, place)
            except RunError:
                if line.endswith(b"\n"):
                    raise
                return records, [f"{place}: is cut short, as a kill leaves it, and left out"]
            records.append(check_record(values, place))
    return records, []


def check_record(values: dict[str, Any], place: str) -> dict[str, Any]:
    """A line of records.jsonl, if it is one."""
    shape = NoteLine if values.get("kind") == "note" else RecordLine
    return check_shape(shape, values, place).model_dump(exclude_unset=True)


class RecordLog:
    """records.jsonl while a run is trained: every record is appended at once.

    What is damaged in it is taken out when it is opened: `damage` says what, in a sentence each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: list[str] = []
        self._old: list[tuple[int, bytes]] = []  # lines that were there, with their steps, until `forget` …
        self._new: list[bytes] = []  # … and those appended since
        content = read_bytes(path) if os.path.lexists(path) else b""
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            place = f"{path}, line {number}"
            try:
                step = check_record(parse_json(line, place), place)["step"]
            except RunError as error:
                cut = f"{place}: is cut short, as a kill leaves it, and left out"
                self.damage.append(f"a damaged record is left out: {error}" if line.endswith(b"\n") else cut)
            else:
                self._old.append((step, line.rstrip(b"\n") + b"\n"))
        whole = b"".join(line for _, line in self._old)
        if whole != content:
            write_atomically(path, whole)

    def append(self, record: dict[str, Any], synced: bool = False) -> None:
        line = f"{to_line(record)}\n".encode()
        if self._old:
            self._new.append(line)
        with explain_errors(self.path, "cannot be written"):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self.path, flags, 0o644), "ab") as file:
                file.write(line)
                file.flush()
                if synced:  # not every line: a lost one is written again on resuming
                    os.fsync(file.fileno())

    def forget(self, step: int) -> None:
        """Take back the earlier records from this step on: a resumed run writes them again."""
        if self._old:
            kept = [line for earlier, line in self._old if earlier < step]
            write_atomically(self.path, b"".join([*kept, *self._new]))
        self._old, self._new = [], []
