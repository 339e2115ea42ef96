"""Polyphonic music in JSON, as the Bach chorales come: split → pieces → time steps → MIDI pitches.

`read_chorales` gives a truth value for each key and step. An error names the split, the piece and the step: JSON has no
lines worth naming.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqloom.data.formats.lines import find_line_fault, read_lines
from seqloom.errors import DataError

LOWEST, HIGHEST = 21, 108  # of a piano's 88 keys


class ChoralePiece(NamedTuple):
    split: str
    number: int  # within its split, from 1
    keys: npt.NDArray[np.bool_]  # (T, highest - lowest + 1): which sound


def read_chorales(
    file: str, lowest: int = LOWEST, highest: int = HIGHEST, encoding: str = "utf-8"
) -> Iterator[ChoralePiece]:
    """The pieces of a file in its order; a pitch outside of the range is refused."""
    assert 0 <= lowest <= highest <= 127
    for split, number, steps in _read_pieces(file, encoding):
        keys = np.zeros((len(steps), highest - lowest + 1), np.bool_)
        for place, step in enumerate(steps):
            for pitch in step:
                if not lowest <= pitch <= highest:
                    sentence = f"the pitch {pitch} is not between {lowest} and {highest}"
                    raise DataError(f"{_describe_place(split, number, place)}: {sentence}", file)
                keys[place, pitch - lowest] = True
        yield ChoralePiece(split, number, keys)


def _read_pieces(file: str, encoding: str) -> Iterator[tuple[str, int, list[list[int]]]]:
    """Every piece with its split and number, once its form is known to be right."""
    pieces_by_split = _parse(file, encoding)
    if not isinstance(pieces_by_split, dict) or not pieces_by_split:
        raise DataError("an object of splits was expected, each a list of pieces", file)
    for split, pieces in pieces_by_split.items():
        if not isinstance(pieces, list):
            raise DataError(f"{split[:40]!r} is not a list of pieces", file)
        for number, steps in enumerate(pieces, 1):
            if not isinstance(steps, list) or not steps:
                raise DataError(f"{split[:40]}, piece {number}: a list of time steps was expected", file)
            for place, step in enumerate(steps):
                if not isinstance(step, list) or not all(map(_is_whole, step)):
                    raise DataError(
                        f"{_describe_place(split, number, place)}: a list of MIDI pitches was expected", file
                    )
            yield split, number, [[int(pitch) for pitch in step] for step in steps]


def _is_whole(value: object) -> bool:
    """Whether this can be a pitch: 60 or 60.0, as some files have it, but not True."""
    return type(value) is int or (type(value) is float and value.is_integer())


def _parse(file: str, encoding: str) -> object:
    lines: list[str] = []
    for line in read_lines(file, encoding):
        if fault := find_line_fault(line, file, encoding):
            raise fault.error()
        lines.append(line.text)
    try:
        return json.loads("\n".join(lines))
    except json.JSONDecodeError as error:
        raise DataError(f"the file is not JSON ({error.msg}, column {error.colno})", file, error.lineno) from None
    except RecursionError:
        raise DataError("the JSON is nested too deeply", file) from None
    except ValueError:  # a number of thousands of digits
        raise DataError("the file holds a number that is too long to be a pitch", file) from None


def _describe_place(split: str, number: int, place: int) -> str:
    return f"{split[:40]}, piece {number}, step {place + 1}"
