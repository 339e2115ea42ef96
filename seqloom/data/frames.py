"""Music as frames: which of a piano's keys sound at each step. Its codec, its file (JSON), and its places.

A file is an object with a list of pieces for each of train, valid (or validation) and test, or one list of pieces; a
piece is a list of steps, a step a list of the pitches that sound, as MIDI counts them (-1 is silence).
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.data.codec import Codec, Raw
from seqloom.data.layout import Layout
from seqloom.data.lines import check_file
from seqloom.data.origins import Example, Origin, digest
from seqloom.data.ragged import Ragged, Rows
from seqloom.data.readers import Skipped
from seqloom.data.streams import Places
from seqloom.errors import DataError, RunError

LOWEST, KEYS = 21, 88  # of a piano
SILENT = -1
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
        if not data.train:
            raise DataError("no music is given: data.train names a file")
        given = {"train": data.train, "validation": data.validation, "test": data.test}
        self._files = {part: files[0] for part, files in given.items() if files}
        inside = {part for part in read_pieces(self._files["train"]) if part not in self._files}
        self._files |= {part: self._files["train"] for part in inside}
        self.parts = tuple(self._files)
        self.names = tuple(self._files.values())

    def content(self) -> dict[str, list[str]]:
        return {part: [digest(file)] for part, file in self._files.items()}

    def read(self, part: str, skipped: Skipped) -> Iterator[Example]:
        file = self._files[part]
        found = read_pieces(file)
        if part not in found and len(found) > 1:
            raise DataError(f"the file has no {part}; there are {', '.join(found)}", file)
        return ((piece,) for piece in found.get(part, next(iter(found.values()))))


def read_pieces(file: str) -> dict[str, list[Frame]]:
    """All pieces of a file, by part; without parts they are for training."""
    found = _json(file)
    if isinstance(found, list):
        found = {"train": found}
    if not isinstance(found, dict) or not found or not set(found) <= set(NAMES):
        raise DataError("pieces were expected: a list of them, or an object with train, valid and test", file)
    parts = {}
    for part, pieces in found.items():
        listed = enumerate(_listed(pieces, part, file), 1)
        parts[NAMES[part]] = [_piece(piece, f"{part}, piece {number}", file) for number, piece in listed]
    return parts


def _json(file: str) -> Any:
    path = check_file(file)
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix.lower() == ".gz"
            else path.open(encoding="utf-8") as text
        ):
            return json.load(text)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"the file cannot be read ({error})", file) from None
    except RecursionError:
        raise DataError("the file is JSON within JSON, too deep to be music", file) from None
    except json.JSONDecodeError as error:
        raise DataError(f"the file is not JSON ({error.msg})", file, error.lineno) from None


def _listed(found: Any, where: str, file: str) -> list[Any]:
    if not isinstance(found, list) or not found:
        raise DataError(f"{where}: a list with something in it was expected", file)
    return found


def _piece(steps: Any, where: str, file: str) -> Frame:
    rows = _listed(steps, where, file)
    frames = np.zeros((len(rows), KEYS), dtype=np.uint8)
    for number, step in enumerate(rows):
        for pitch in step if isinstance(step, list) else [step]:
            if pitch == SILENT and isinstance(pitch, int):
                continue
            if not isinstance(pitch, int) or not LOWEST <= pitch < LOWEST + KEYS:
                sentence = f"{pitch!r:.20} is no pitch of a piano, from {LOWEST} to {LOWEST + KEYS - 1}"
                raise DataError(f"{where}, step {number + 1}: {sentence}", file)
            frames[number, pitch - LOWEST] = 1
    return frames


def written(frame: NDArray[Any]) -> str:
    """A frame as a line of text: its pitches, or a dash."""
    return " ".join(str(LOWEST + key) for key in np.flatnonzero(frame)) or "-"


def frames_of(text: str) -> Frame:
    """The frames of such lines; DataError if one is something else."""
    steps = []
    for number, line in enumerate(text.strip().splitlines(), 1):
        try:
            steps.append([] if line.strip() == "-" else [int(pitch) for pitch in line.split()])
        except ValueError:
            raise DataError(f"line {number}: pitches such as 60 64 67 were expected, or a dash for silence") from None
    return _piece(steps, "the beginning", "the prompt") if steps else np.zeros((0, KEYS), dtype=np.uint8)
