"""One long text that is never held whole: read, learned from and encoded in pieces, which are one again on the disk.

A piece ends before a line break, so that nothing that is cut at white space is cut otherwise than in the whole text.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from seqloom.data.cache import release
from seqloom.data.ragged import Rows, Texts

PIECE = 1 << 20  # characters of a piece, about
LINE_SEARCH = 1 << 16  # bytes in which the next line break is looked for at once
MAX_HELD = 64  # pieces that are looked at before their memory is let go of: the system maps far more than is looked at


class TextContinuation(str):
    """A text that goes on from the one before it: its first character is the line break between them."""


def join_continuations(texts: Iterable[str]) -> Iterator[str]:
    """Texts with what goes on joined again."""
    parts: list[str] = []
    for text in texts:
        if parts and not isinstance(text, TextContinuation):
            yield "".join(parts)
            parts = []
        parts.append(text)
    if parts:
        yield "".join(parts)


def split_into_pieces(texts: Texts, rows: Rows, size: int = PIECE) -> tuple[Texts, NDArray[np.bool_]]:
    """Rows that lie together, in pieces of about `size` bytes, and which pieces begin a row."""
    places: list[int] = []
    starts: list[bool] = []
    for row in rows.tolist():
        start, stop = int(texts.offsets[row]), int(texts.offsets[row + 1])
        begins = [start]
        while (cut := _find_line_break(texts.bytes, begins[-1] + size, stop)) < stop:
            begins.append(cut)
            if len(begins) % MAX_HELD == 0:
                release(texts.bytes)
        places += begins
        starts += [True] + [False] * (len(begins) - 1)
    release(texts.bytes)
    ends = texts.offsets[rows[-1:] + 1].tolist()
    return Texts(texts.bytes, np.array(places + ends or [0], dtype=np.int64)), np.array(starts, dtype=np.bool_)


def _find_line_break(text: NDArray[np.uint8], place: int, stop: int) -> int:
    """The place of the first line break from here on, or the end."""
    for start in range(place, stop, LINE_SEARCH):
        offset = text[start : min(start + LINE_SEARCH, stop)].tobytes().find(b"\n")
        if offset >= 0:
            return start + offset
    return stop
