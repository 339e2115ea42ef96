"""A folder whose folders are classes: pos/ and neg/ with a text, an image or a sound a file."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.counts import format_count
from seqloom.data.formats.lines import Fault, find_line_fault, read_lines
from seqloom.data.formats.sounds import is_sound
from seqloom.errors import DataError

UNLABELED = frozenset(["unsup", "unsupervised", "unlabeled", "unlabelled"])  # folders of no class
PARTS = ("train", "validation", "test")
IMAGES = frozenset([".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".ppm"])


def is_image(file: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is that of an image."""
    return os.path.splitext(os.fspath(file))[1].lower() in IMAGES


class ClassFile(NamedTuple):
    content: Any  # a text, pixels, or frames of sound
    label: str
    file: str


def list_classes(folder: str, notes: list[str], endings: Collection[str] = ()) -> dict[str, list[Path]]:
    """The files of each class, both in the order of their names; what is not read is noted. With endings, only files
    whose names end so are read: a folder of photos has thumbnails and notes between them."""
    root = Path(os.path.expanduser(folder))
    inside = _list_folder(root)
    left = [path.name for path in inside if path.is_dir() and path.name.lower() in UNLABELED]
    folders = [path for path in inside if path.is_dir() and path.name not in left]
    _refuse_parts(folder, folders)
    all_by_class = {path.name: [one for one in _list_folder(path) if one.is_file()] for path in folders}
    files_by_class = {
        name: [one for one in files if not endings or one.suffix.lower() in endings]
        for name, files in all_by_class.items()
    }
    unread = [one for name, files in all_by_class.items() for one in files if one not in set(files_by_class[name])]
    files_by_class = {name: files for name, files in files_by_class.items() if files}
    if len(files_by_class) < 2:
        there = ", ".join(files_by_class) or "none"
        what = f" with files that end in {', '.join(sorted(endings))}" if unread else ""
        raise DataError(
            f"a folder of classes has a folder{what} for each of at least two classes; there is {there}", folder
        )
    if not endings:
        _refuse_others(folder, [one for files in files_by_class.values() for one in files])
    if unread:
        notes.append(f"{folder}: not read, by their endings: {_name_files(unread, root)}")
    if left:
        notes.append(f"{folder}: {', '.join(left)} was not read, as it names no class")
    if loose := sum(path.is_file() for path in inside):
        notes.append(f"{folder}: not read, as beside the folders of classes: {format_count(loose, 'file')}")
    counts = ", ".join(f"{name} {len(files):,}" for name, files in files_by_class.items())
    notes.append(f"{folder}: its folders are the classes ({counts})")
    return files_by_class


def _list_folder(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _name_files(files: Sequence[Path], root: Path) -> str:
    return f"{format_count(len(files), 'file')}, such as {files[0].relative_to(root)}"


def _refuse_others(folder: str, files: Sequence[Path]) -> None:
    """Folders of images or sounds that are to be read as texts."""
    for what, belongs in (("image", is_image), ("sound", is_sound)):
        if 2 * sum(map(belongs, files)) > len(files):
            raise DataError(f"the files are {what}s: data.source_type={what} reads {what}s", folder)


def _refuse_parts(folder: str, folders: Sequence[Path]) -> None:
    """A folder with folders for training and test, each with those of the classes, as sets are handed around."""
    parts = [path.name for path in folders if sum(one.is_dir() for one in _list_folder(path)) > 1]
    if "train" in parts:
        settings = " ".join(f"data.{name}={os.path.join(folder, name)}" for name in PARTS if name in parts)
        raise DataError(f"its folders are parts of the data, not classes: {settings}", folder)


def read_classes(
    folder: str, read: Callable[[Path], Any], notes: list[str], endings: Collection[str] = ()
) -> Iterator[ClassFile | Fault]:
    """Every file, read as said, with the name of its folder."""
    for label, files in list_classes(folder, notes, endings).items():
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
