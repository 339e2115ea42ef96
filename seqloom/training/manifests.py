"""The manifest of a folder: the SHA-256 sum of every file in it that matters, so that damage is seen, not guessed.

    {"files": {"model.safetensors": ["<sum>"], …}}

A file that is being replaced has two sums for a moment, the old and the new one; so a kill between the two writes
leaves a folder that still checks.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import RunError
from .files import json_bytes, read_json, sha256, write_atomically

MANIFEST = "manifest.json"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")  # a file of this very folder, never a path out of it
SUM = re.compile(r"[0-9a-f]{64}")

Sums = dict[str, list[str]]


def manifest_bytes(files: dict[str, bytes]) -> bytes:
    """The manifest of a folder that is to hold these files."""
    return json_bytes({"files": {name: [_sum(files[name])] for name in sorted(files)}})


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Vouch for these files of the folder as they are now, and for no others."""
    _write(folder, {name: [sha256(folder / name)] for name in names})


def read_manifest(folder: Path) -> Sums:
    """The valid sums of each file."""
    place = folder / MANIFEST
    content = read_json(place)
    files = content.get("files")
    if set(content) != {"files"} or not isinstance(files, dict):
        raise RunError(f"{place}: is not a manifest, which is an object with the key 'files'")
    for name, sums in files.items():
        if not NAME.fullmatch(name) or not _are_sums(sums):
            raise RunError(f"{place}: the entry {name!r:.80} is not a file of this folder with its SHA-256 sums")
    return files


def check_manifest(folder: Path, needed: Iterable[str] = ()) -> None:
    """Refuse a folder in which a file is missing or differs; the needed ones must be vouched for."""
    known = read_manifest(folder)
    for name in needed:
        if name not in known:
            raise RunError(f"{folder / MANIFEST}: does not list {name}, which is needed")
    for name, sums in known.items():
        if not (folder / name).exists():
            raise RunError(f"{folder / name}: is missing")
        if sha256(folder / name) not in sums:
            raise RunError(f"{folder / name}: is damaged (its SHA-256 sum is not the one in {MANIFEST})")


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
    assert all(NAME.fullmatch(name) for name in sums), f"not the names of files in one folder: {list(sums)}"
    write_atomically(folder / MANIFEST, json_bytes({"files": dict(sorted(sums.items()))}))


def _are_sums(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, str) and SUM.fullmatch(item) is not None for item in value)
    )


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
