"""One side of many rows as they were read, texts or arrays, on the disk: taken out, measured, and told apart."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.data.cache import release
from seqloom.data.ragged import Ragged, Rows, Texts, split_rows
from seqloom.data.schema import Raw

HASHED = 1 << 23  # bytes of one long text that are hashed at once

Side = Texts | Ragged


def take_raws(side: Side, rows: Rows) -> list[Raw]:
    selected = side.take(rows)
    return selected.to_list() if isinstance(selected, Texts) else list(selected)


def measure_rows(raw: Mapping[str, Side], rows: Rows) -> Rows:
    """The approximate size of each row in bytes."""
    sizes = np.zeros(len(rows), dtype=np.int64)
    for side in raw.values():
        width = 1 if isinstance(side, Texts) else side.values.itemsize * int(np.prod(side.values.shape[1:]))
        sizes += side.lengths[rows] * width
    return sizes


def release_sides(raw: Mapping[str, Side]) -> None:
    """Free the memory that was taken to read them; the disk has them still."""
    release(*(side.bytes if isinstance(side, Texts) else side.values for side in raw.values()))


def compute_digests(raw: Mapping[str, Side], rows: Rows, sides: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each row that tells rows apart: equal rows have equal ones."""
    chosen, digests = {side: raw[side] for side in sides}, np.empty(len(rows), dtype=np.uint64)
    for piece in split_rows(measure_rows(chosen, rows)):
        if len(piece) == 1 and len(chosen) == 1 and isinstance(side := raw[sides[0]], Texts):
            digests[piece] = digest_long(side, int(rows[piece[0]]))
        else:
            texts = [_encode_rows(side, rows[piece]) for side in chosen.values()]
            digests[piece] = [_digest(row) for row in zip(*texts, strict=True)]
        release_sides(chosen)
    return digests


def digest_long(texts: Texts, row: int) -> int:
    """The same of a text that may be too long to be held whole."""
    digest = hashlib.blake2b(digest_size=8)
    start, stop = texts.offsets[row : row + 2].tolist()
    for first in range(start, stop, HASHED):
        digest.update(texts.bytes[first : min(first + HASHED, stop)].tobytes())
        release(texts.bytes)
    return int.from_bytes(digest.digest(), "little")


def _encode_rows(side: Side, rows: Rows) -> list[bytes]:
    selected = side.take(rows)
    flat = selected.bytes if isinstance(selected, Texts) else selected.values
    return [flat[start:stop].tobytes() for start, stop in zip(selected.offsets[:-1], selected.offsets[1:], strict=True)]


def _digest(row: Iterable[bytes]) -> int:
    return int.from_bytes(hashlib.blake2b(b"\0".join(row), digest_size=8).digest(), "little")
