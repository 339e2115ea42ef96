"""A new folder of files, written whole or not at all."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..errors import RunError
from ..training.files import explain_errors, make_partial_path, sync_folder, write_synced


def refuse_existing(folder: Path) -> None:
    """What is there already stays as it is; an empty folder may be filled."""
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: is there already, and not empty")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    refuse_existing(folder)
    made = make_partial_path(folder.resolve())
    with explain_errors(folder, "cannot be written"):
        try:
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            for name, data in files.items():
                write_synced(made / name, data)
            sync_folder(made)
            os.replace(made, folder.resolve())
            sync_folder(folder.resolve().parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)
