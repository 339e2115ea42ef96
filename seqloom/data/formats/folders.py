"""A folder whose folders are classes: pos/ and neg/ with a text, an image or a sound a file."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.counts import format_count
from seqloom.data.formats.lines import Fault, find_line_fault, read_lines
from seqloom.data.formats.sounds import is_sound
from seqloom.errors import DataError

UNLABELED = frozenset(["unsup", "unsupervised", "unlabeled", "unlabelled"])  # folders of no class
IMAGES = frozenset([".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".ppm"])


def is_image(file: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is that of an image."""
    return os.path.splitext(os.fspath(file))[1].lower() in IMAGES


class ClassFile(NamedTuple):
    content: Any  # a text, pixels, or frames of sound
    label: str
    file: str


def list_classes(folder: str, notes: list[str]) -> dict[str, list[Path]]:
    """The files of each class, both in the order of their names; what is not read is noted."""
    root = Path(os.path.expanduser(folder))
    inside = sorted(path for path in root.iterdir() if not path.name.startswith("."))
    left = [path.name for path in inside if path.is_dir() and path.name.lower() in UNLABELED]
    folders = [path for path in inside if path.is_dir() and path.name not in left]
    files_by_class = {path.name: sorted(one for one in path.iterdir() if one.is_file()) for path in folders}
    files_by_class = {name: files for name, files in files_by_class.items() if files}
    if len(files_by_class) < 2:
        there = ", ".join(files_by_class) or "none"
        raise DataError(f"a folder of classes has a folder for each of at least two classes; there is {there}", folder)
    if left:
        notes.append(f"{folder}: {', '.join(left)} was not read, as it names no class")
    if loose := sum(path.is_file() for path in inside):
        notes.append(f"{folder}: not read, as beside the folders of classes: {format_count(loose, 'file')}")
    counts = ", ".join(f"{name} {len(files):,}" for name, files in files_by_class.items())
    notes.append(f"{folder}: its folders are the classes ({counts})")
    return files_by_class


def read_classes(folder: str, read: Callable[[Path], Any], notes: list[str]) -> Iterator[ClassFile | Fault]:
    """Every file, read as said, with the name of its folder."""
    for label, files in list_classes(folder, notes).items():
        for path in files:
            content = read(path)
            yield content if isinstance(content, Fault) else ClassFile(content, label, str(path))


def read_text(path: Path, encoding: str) -> str | Fault:
    if is_image(path):
        return Fault("an image", "the file is an image: data.source_type=image reads images", str(path))
    if is_sound(path):
        return Fault("a sound", "the file is a sound: data.source_type=sound reads sounds", str(path))
    lines = []
    for line in read_lines(str(path), encoding):
        if fault := find_line_fault(line, str(path), encoding):
            return fault
        lines.append(line.text)
    text = "\n".join(lines).strip()
    return text or Fault("an empty file", "the file is empty", str(path))
