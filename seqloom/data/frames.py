"""Music as frames: which of a piano's keys sound at each step. Its codec, its file (JSON), and its places.

A file is an object with a list of pieces for each of train, valid (or validation) and test, as `chorales` reads it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.data.codec import Codec, Raw
from seqloom.data.datasets import Origin
from seqloom.data.files import digest, files_by_part
from seqloom.data.formats.chorales import HIGHEST, LOWEST, read_chorales
from seqloom.data.formats.tables import Skipped
from seqloom.data.layout import Layout
from seqloom.data.ragged import Ragged, Rows
from seqloom.data.readers import Example
from seqloom.data.streams import Places
from seqloom.errors import DataError, RunError

KEYS = HIGHEST - LOWEST + 1  # of a piano
NAMES = {"train": "train", "valid": "validation", "validation": "validation", "test": "test"}

Frame = NDArray[np.uint8]  # (KEYS,), 1 where a key sounds


class Frames(Codec):
    """Frames as they are: there is nothing to learn."""

    kind = "frames"
    dtype = np.dtype(np.uint8)
    shape = (KEYS,)

    def __len__(self) -> int:
        return KEYS

    @classmethod
    def learn(cls, raws: Iterator[Raw]) -> Self:
        return cls()

    @classmethod
    def read(cls, found: dict[str, Any]) -> Self:
        if found.get("keys") != KEYS:
            raise RunError(f"the frames have {found.get('keys')!r:.20} keys, not {KEYS}")
        return cls()

    def encode_many(self, raws: Sequence[Raw]) -> Ragged:
        return Ragged.stacked(raws)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "keys": KEYS}


class FramePlaces(Places):
    """Pieces end to end: each frame is told from the one before, the first from one in which every key sounds."""

    def __init__(self, pieces: Ragged) -> None:
        super().__init__(pieces.offsets)
        self.pieces = pieces

    def targets(self, places: Rows) -> NDArray[Any]:
        return self.pieces.values[places].astype(np.float32)

    def inputs(self, places: Rows) -> NDArray[Any]:
        before = self.pieces.values[np.maximum(places - 1, 0)].astype(np.float32)
        before[np.isin(places, self.begins)] = 1
        return before


class Pieces(Origin):
    """The pieces of files: of one for each part, or of one that holds them all."""

    def __init__(self, layout: Layout) -> None:
        data = layout.data
        self._files = {part: groups[0][0] for part, groups in files_by_part(data, "music is").items()}
        self._encoding = data.encoding
        inside = {part for part in read_pieces(self._files["train"], data.encoding) if part not in self._files}
        self._files |= {part: self._files["train"] for part in inside}
        self.parts = tuple(self._files)
        self.names = tuple(self._files.values())

    def content(self) -> dict[str, list[str]]:
        return {part: [digest(file)] for part, file in self._files.items()}

    def read(self, part: str, skipped: Skipped) -> Iterator[Example]:
        file = self._files[part]
        found = read_pieces(file, self._encoding)
        if part not in found:
            raise DataError(f"the file has no {part}; there are {', '.join(found)}", file)
        return ((piece,) for piece in found[part])


def read_pieces(file: str, encoding: str) -> dict[str, list[Frame]]:
    """All pieces of a file, by part."""
    parts: dict[str, list[Frame]] = {}
    for piece in read_chorales(file, encoding=encoding):
        if piece.split not in NAMES:
            raise DataError(f"{piece.split[:40]!r} is none of {', '.join(NAMES)}", file)
        parts.setdefault(NAMES[piece.split], []).append(piece.keys.astype(np.uint8))
    if not parts:
        raise DataError("the file has not a single piece", file)
    return parts


def written(frame: NDArray[Any]) -> str:
    """A frame as a line of text: its pitches, or a dash."""
    return " ".join(str(LOWEST + key) for key in np.flatnonzero(frame)) or "-"


def frames_of(text: str) -> Frame:
    """The frames of such lines; DataError if one is something else."""
    lines = text.strip().splitlines()
    frames = np.zeros((len(lines), KEYS), dtype=np.uint8)
    for number, line in enumerate(lines):
        for pitch in [] if line.strip() == "-" else line.split():
            if not pitch.isdecimal() or not LOWEST <= int(pitch) <= HIGHEST:
                expected = f"pitches from {LOWEST} to {HIGHEST}, or a dash for silence"
                raise DataError(f"line {number + 1}: {pitch[:20]!r} is none of what was expected: {expected}")
            frames[number, int(pitch) - LOWEST] = 1
    return frames
