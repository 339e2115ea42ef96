"""A run as a new folder of files: checked against the run first, then written whole or not at all."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..models import device_of
from ..training.files import explain_errors, json_bytes, make_partial_path, sync_folder, write_synced
from .check import Check
from .program import Program, Run, describe_run

Write = Callable[[Any, Program], tuple[Mapping[str, bytes], Sequence[Check]]]  # of a model: its files, and their checks


def refuse_existing(folder: Path) -> None:
    """What is there already stays as it is; an empty folder may be filled."""
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: is there already, and not empty")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    refuse_existing(folder)
    partial = make_partial_path(folder.resolve())
    with explain_errors(folder, "cannot be written"):
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for name, data in files.items():
                write_synced(partial / name, data)
            sync_folder(partial)
            os.replace(partial, folder.resolve())
            sync_folder(folder.resolve().parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def export_run(run: Run, folder: Path, format: str, write: Write) -> dict[str, Any]:
    """The model's files, what was learned beside them, and a program that answers with both.

    What was written, and how far it is from the run at five sizes of batch and length.
    """
    check_exportable(run.model, "exported")
    refuse_existing(folder)
    program = describe_run(run)
    model = (run.model if device_of(run.model).type == "cpu" else deepcopy(run.model).cpu()).eval()
    own, checks = write(model, program)
    files = {**own, **program.files, "fields.json": json_bytes(program.fields), "predict.py": program.write(format)}
    write_folder(folder, files)
    return {
        "folder": str(folder),
        "format": format,
        "files": {name: len(data) for name, data in files.items()},
        "checks": [one._asdict() for one in checks],
    }


def check_exportable(model: object, what: str) -> None:
    if not hasattr(model, "generates"):
        raise RunError(f"a {type(model).__name__} is neither a labeler nor a generator, so it cannot be {what}")
