"""Whether a folder holds a run, asked before anything is imported that takes seconds."""

from pathlib import Path

from ..errors import RunError


def has_begun(folder: Path) -> bool:
    from ..training.manifests import MANIFEST  # which brings pydantic along: --help needs none

    return (folder / MANIFEST).exists()


def check_begun(folder: Path) -> None:
    try:
        there = folder.is_dir()
    except OSError as error:  # a name that no folder can have
        raise RunError(f"{folder}: cannot be read ({error.strerror})") from None
    if not there:
        raise RunError(f"{folder}: is not a run folder; seqloom train RECIPE --into {folder} makes one")
    if not (folder / "version").exists() or not has_begun(folder):
        raise RunError(f"{folder}: is not a run folder, or one whose training never began")
