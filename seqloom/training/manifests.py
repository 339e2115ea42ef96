"""The manifest of a folder: the SHA-256 sum of every file in it that matters, so that damage is seen, not guessed.

    {"files": {"model.safetensors": ["<sum>"], …}}

A file that is being replaced has two sums for a moment, the old and the new one; so a kill between the two writes
leaves a folder that still checks.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import RunError
from ..schemas import FILE, Manifest
from .files import json_bytes, read_bytes, read_shaped, sha256, write_atomically

MANIFEST = "manifest.json"

Sums = dict[str, list[str]]


def compute_sums(files: Mapping[str, bytes]) -> Sums:
    """The sums of files with this content."""
    return {name: [hashlib.sha256(data).hexdigest()] for name, data in files.items()}


def manifest_bytes(sums: Sums) -> bytes:
    assert all(FILE.fullmatch(name) for name in sums), f"not the names of files in one folder: {list(sums)}"
    return json_bytes({"files": dict(sorted(sums.items()))})


def write_manifest(folder: Path, sums: Sums) -> None:
    """Vouch for these files of the folder, and for no others."""
    write_atomically(folder / MANIFEST, manifest_bytes(sums))


def read_manifest(folder: Path) -> Sums:
    """The valid sums of each file."""
    return read_shaped(Manifest, folder / MANIFEST).files


def check_manifest(folder: Path, needed: Iterable[str] = (), later: Iterable[str] = ()) -> Sums:
    """Refuse a folder in which a file is missing or differs; the needed ones must be vouched for. The sums of all.

    Those for `later` are listed, but not looked at yet: see `read_checked`.
    """
    known = read_manifest(folder)
    for name in (*needed, *later):
        if name not in known:
            raise RunError(f"{folder / MANIFEST}: does not list {name}, which is needed")
    for name, sums in known.items():
        if name not in later:
            _check_there(folder / name)
            _check_sum(folder / name, sha256(folder / name), sums)
    return known


def read_checked(path: Path, sums: Iterable[str], most: int | None = None) -> bytes:
    """The content of a file, which is read and hashed once; RunError if it is none of those that were vouched for."""
    _check_there(path)
    data = read_bytes(path, most)
    _check_sum(path, hashlib.sha256(data).hexdigest(), sums)
    return data


def replace_file(folder: Path, name: str, data: bytes) -> None:
    """Put a file in the place of the old one, or add it; killed at any moment, the folder still checks."""
    known = read_manifest(folder) if (folder / MANIFEST).exists() else {}
    [new] = compute_sums({name: data})[name]
    old = [known_sum for known_sum in known.get(name, []) if known_sum != new]
    if old:
        write_manifest(folder, {**known, name: [*old, new]})
    write_atomically(folder / name, data)
    write_manifest(folder, {**known, name: [new]})


def _check_there(path: Path) -> None:
    if not os.path.lexists(path):
        raise RunError(f"{path}: is missing")


def _check_sum(path: Path, own: str, sums: Iterable[str]) -> None:
    if own not in sums:
        raise RunError(f"{path}: is damaged (its SHA-256 sum is not the one in {MANIFEST})")
