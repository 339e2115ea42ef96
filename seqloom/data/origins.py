"""Where the examples of a recipe come from: files of somebody's own, or a sample built into seqloom."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator

from seqloom.data.lines import check_file
from seqloom.data.readers import Reading, Skipped, format_of, read_rows
from seqloom.errors import DataError
from seqloom.recipe import Data

PARTS = ("train", "validation", "test")
Pair = tuple[str, str]  # source, target


class Origin(ABC):
    """Pairs of texts by part; `train` is always among the parts."""

    parts: tuple[str, ...]
    names: tuple[str, ...]  # of the files, as they appear in messages

    @abstractmethod
    def content(self) -> dict[str, list[str]]:
        """What the examples are, as digests: equal if and only if the examples are."""

    @abstractmethod
    def read(self, part: str, skipped: Skipped) -> Iterator[Pair]: ...


class Files(Origin):
    def __init__(self, data: Data) -> None:
        given = {"train": data.train, "validation": data.validation, "test": data.test}
        if not data.train:
            raise DataError("no examples are given: data.train names a file, or data.sample a built-in sample")
        self._files = {part: files for part, files in given.items() if files}
        self.parts = tuple(self._files)
        self.names = tuple(name for files in self._files.values() for name in files)
        self._reading = Reading(
            columns=(data.source, data.target),
            format=data.format,
            separator=data.separator,
            encoding=data.encoding,
            skip=data.on_bad_row == "skip",
        )

    def content(self) -> dict[str, list[str]]:
        """The formats, which may depend on the names, and the digests of the files."""
        return {
            part: [format_of(files, self._reading.format), *map(digest, files)] for part, files in self._files.items()
        }

    def read(self, part: str, skipped: Skipped) -> Iterator[Pair]:
        for row in read_rows(self._files[part], self._reading, skipped):
            source, target = row.values
            yield source, target


class Sample(Origin):
    def __init__(self, name: str) -> None:
        from seqloom.data.samples import SAMPLES  # what samples are made from takes a while to import

        self._pairs = SAMPLES[name]()
        self.parts = tuple(self._pairs)
        self.names = (name,)

    def content(self) -> dict[str, list[str]]:
        return {part: [hashlib.sha256(json.dumps(pairs).encode()).hexdigest()] for part, pairs in self._pairs.items()}

    def read(self, part: str, skipped: Skipped) -> Iterator[Pair]:
        return iter(self._pairs[part])


def origin_of(data: Data) -> Origin:
    return Sample(data.sample) if data.sample else Files(data)


def digest(file: str) -> str:
    with check_file(file).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
