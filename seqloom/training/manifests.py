"""The manifest of a folder: the SHA-256 sum of every file in it that matters, so that damage is seen, not guessed.

    {"files": {"model.safetensors": ["<sum>"], …}}

A file that is being replaced has two sums for a moment, the old and the new one; so a kill between the two writes
leaves a folder that still checks.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import RunError
from ..schemas import FILE, Manifest
from .files import json_bytes, read_shaped, sha256, write_atomically

MANIFEST = "manifest.json"

Sums = dict[str, list[str]]


def manifest_bytes(files: dict[str, bytes]) -> bytes:
    """The manifest of a folder that is to hold these files."""
    return json_bytes({"files": {name: [_sum(files[name])] for name in sorted(files)}})


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Vouch for these files of the folder as they are now, and for no others."""
    _write(folder, {name: [sha256(folder / name)] for name in names})


def read_manifest(folder: Path) -> Sums:
    """The valid sums of each file."""
    return read_shaped(Manifest, folder / MANIFEST).files


def check_manifest(folder: Path, needed: Iterable[str] = (), later: Iterable[str] = ()) -> None:
    """Refuse a folder in which a file is missing or differs; the needed ones must be vouched for.

    Those for `later` are listed, but not looked at yet: see `check_sum`.
    """
    known = read_manifest(folder)
    for name in (*needed, *later):
        if name not in known:
            raise RunError(f"{folder / MANIFEST}: does not list {name}, which is needed")
    for name, sums in known.items():
        if name not in later:
            check_sum(folder / name, sums)


def check_sum(path: Path, sums: Iterable[str], most: int | None = None) -> None:
    """Refuse a file that is missing, has more than so many bytes, or is none of those that were vouched for."""
    if not os.path.lexists(path):
        raise RunError(f"{path}: is missing")
    if sha256(path, most) not in sums:
        raise RunError(f"{path}: is damaged (its SHA-256 sum is not the one in {MANIFEST})")


def replace(folder: Path, name: str, data: bytes) -> None:
    """Put a file in the place of the old one, or add it; killed at any moment, the folder still checks."""
    known = read_manifest(folder) if (folder / MANIFEST).exists() else {}
    new = _sum(data)
    old = [known_sum for known_sum in known.get(name, []) if known_sum != new]
    if old:
        _write(folder, {**known, name: [*old, new]})
    write_atomically(folder / name, data)
    _write(folder, {**known, name: [new]})


def _write(folder: Path, sums: Sums) -> None:
    assert all(FILE.fullmatch(name) for name in sums), f"not the names of files in one folder: {list(sums)}"
    write_atomically(folder / MANIFEST, json_bytes({"files": dict(sorted(sums.items()))}))


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
