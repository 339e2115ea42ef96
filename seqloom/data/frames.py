"""Files of music as frames: which of a piano's keys sound at each step; and the places of its pieces.

A file is an object with a list of pieces for each of train, valid (or validation) and test, as `chorales` reads it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.config.recipe import Data
from seqloom.data.datasets import Dataset
from seqloom.data.files import digest_file, find_files_by_part
from seqloom.data.formats.chorales import HIGHEST, LOWEST, read_chorales
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.ragged import Ragged, Rows
from seqloom.data.readers import Example
from seqloom.data.schema import Schema
from seqloom.data.streams import Places
from seqloom.errors import DataError

KEYS = HIGHEST - LOWEST + 1  # of a piano
NAMES = {"train": "train", "valid": "validation", "validation": "validation", "test": "test"}

Frame = NDArray[np.uint8]  # (KEYS,), 1 where a key sounds


class FramePlaces(Places):
    """Pieces end to end: each frame is predicted from the one before, the first from one in which every key sounds."""

    def __init__(self, pieces: Ragged) -> None:
        super().__init__(pieces.offsets)
        self.pieces = pieces

    def targets(self, places: Rows) -> NDArray[Any]:
        return self.pieces.values[places].astype(np.float32)

    def inputs(self, places: Rows) -> NDArray[Any]:
        before = self.pieces.values[np.maximum(places - 1, 0)].astype(np.float32)
        before[np.isin(places, self.begins)] = 1
        return before


class Pieces(Dataset):
    """The pieces of files: of one for each part, or of one that holds them all."""

    def __init__(self, schema: Schema) -> None:
        data = schema.data
        if schema.with_keys().keys:
            raise DataError("pieces of music have no columns to divide them by")
        self._files = {part: groups[0][0] for part, groups in find_files_by_part(data, "music is").items()}
        self._encoding = data.encoding
        inside = {part for part in read_pieces(self._files["train"], data.encoding) if part not in self._files}
        self._files |= {part: self._files["train"] for part in inside}
        self.parts = tuple(self._files)
        self.names = tuple(self._files.values())

    def content(self) -> dict[str, list[str]]:
        return {part: [digest_file(file)] for part, file in self._files.items()}

    @classmethod
    def read_files(cls, files: Sequence[str], data: Data) -> list[Frame]:
        """The test part of a file; all of one that has only one part."""
        pieces_by_part = read_pieces(files[0], data.encoding)
        [part, *others] = pieces_by_part
        if others and "test" not in pieces_by_part:
            raise DataError(f"the file has no test; there are {', '.join(pieces_by_part)}", files[0])
        return pieces_by_part["test" if others else part]

    def read(self, part: str, skipped: SkippedRows) -> Iterator[Example]:
        file = self._files[part]
        pieces_by_part = read_pieces(file, self._encoding)
        if part not in pieces_by_part:
            raise DataError(f"the file has no {part}; there are {', '.join(pieces_by_part)}", file)
        return ((piece,) for piece in pieces_by_part[part])


def read_pieces(file: str, encoding: str) -> dict[str, list[Frame]]:
    """All pieces of a file, by part."""
    parts: dict[str, list[Frame]] = {}
    for piece in read_chorales(file, encoding=encoding):
        if piece.split not in NAMES:
            raise DataError(f"{piece.split[:40]!r} is none of {', '.join(NAMES)}", file)
        parts.setdefault(NAMES[piece.split], []).append(piece.keys.astype(np.uint8))
    if not parts:
        raise DataError("the file has no pieces", file)
    return parts
