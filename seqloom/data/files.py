"""Which files the parts of the data are: names, patterns such as part-*.csv, pairs side by side, folders of classes."""

import hashlib
import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from seqloom.config.data import Data, are_parallel
from seqloom.data.formats.lines import check_file
from seqloom.errors import DataError

Group = tuple[str, ...]  # one file, or two of which lines or entries belong together


def find_files_by_part(data: Data, what: str) -> dict[str, list[Group]]:
    """The files that the recipe names; for training there is at least one."""
    if not data.train:
        raise DataError(f"no {what} given: data.train names a file, or data.sample a built-in sample")
    names_by_part = {"train": data.train, "validation": data.validation, "test": data.test}
    return {part: find_files(names, data.format) for part, names in names_by_part.items() if names}


def check_files(data: Data) -> None:
    """Refuse files that are not there, before anything else is done."""
    for names in (data.train, data.validation, data.test):
        for file in (file for group in find_files(names, data.format) for file in group):
            plain = file.partition("#")[0]  # FILE.xlsx#SHEET, index.tsv#train
            if not os.path.exists(os.path.expanduser(file)) and not os.path.exists(os.path.expanduser(plain)):
                check_file(plain)


def find_files(names: Sequence[str], format: str) -> list[Group]:
    """The files in the order of their names, those that are read side by side together."""
    if are_parallel(names, format):
        return [tuple(names)]
    return [(file,) for name in names for file in expand(name)]


def expand(name: str) -> list[str]:
    """The files that a pattern stands for, sorted; a name that is no pattern, or that a file has, is itself."""
    path = os.path.expanduser(name)
    if not has_magic(name) or os.path.exists(path):
        return [name]
    files = sorted(file for file in glob(path, recursive=True) if os.path.isfile(file))
    if not files:
        raise DataError("no file has a name of this pattern", name)
    return files


def is_folder(name: str) -> bool:
    return os.path.isdir(os.path.expanduser(name))


def digest_file(name: str) -> str:
    """A sum over the content of a file, with the name of its sheet if FILE.xlsx#SHEET says one, or over names and
    contents of all files in a folder."""
    book, _, sheet = name.partition("#")
    if sheet and not os.path.exists(os.path.expanduser(name)):
        return f"{digest_file(book)}#{sheet}"
    if not is_folder(name):
        with check_file(name).open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    root, digest = Path(os.path.expanduser(name)), hashlib.sha256()
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(root)}\0{digest_file(str(file))}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
