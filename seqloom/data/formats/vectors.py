"""Word vectors from GloVe and word2vec text files: a word a line, then its numbers between blanks.

Only the words that are asked for are kept, so a file of millions of lines takes no more memory than they do. A first
line of two whole numbers (word2vec) says how many words and numbers there are. A word may hold blanks, as some in
GloVe do: the numbers are counted from the end. Of a word that comes twice the first counts.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqloom.counts import format_count
from seqloom.data.formats.lines import Line, read_lines
from seqloom.errors import DataError

LARGEST = float(np.finfo(np.float32).max)
HEADER = re.compile(r"([0-9]{1,12}) ([0-9]{1,6})")


@dataclass(frozen=True)
class Vectors:
    values: npt.NDArray[np.float32]  # (V, D) in the order of the words asked for; zeros where a word was not found
    covered: npt.NDArray[np.bool_]  # (V,)
    lines: int  # words in the file

    @property
    def share(self) -> float:
        """How many of the words that were asked for the file has."""
        return float(self.covered.mean()) if len(self.covered) else 0.0


def read_vectors(file: str, words: Sequence[str], encoding: str = "utf-8") -> Vectors:
    """The vectors of these words; a line of another width than the first is refused."""
    places = {word: place for place, word in enumerate(words)}
    filled = (line for line in read_lines(file, encoding) if line.text.strip())
    promised, width, lines = _read_width(filled, file)
    values = np.zeros((len(words), width), np.float32)
    covered = np.zeros(len(words), np.bool_)
    count = 0
    for line in lines:
        count += 1
        word, numbers = _split(line, width, file)
        place = places.get(word)
        if place is not None and not covered[place]:
            values[place] = _parse_vector(numbers, word, file, line.number)
            covered[place] = True
    if promised is not None and count != promised:
        raise DataError(f"the first line promises {format_count(promised, 'word')}, but the file has {count:,}", file)
    return Vectors(values, covered, count)


def _read_width(lines: Iterator[Line], file: str) -> tuple[int | None, int, Iterator[Line]]:
    """How many words are promised, how many numbers a word has by the first of them, and the lines of words."""
    first = next(lines, None)
    promised = stated = None
    if first and (header := HEADER.fullmatch(first.text.strip())):
        promised, stated = int(header[1]), int(header[2])
        first = next(lines, None)
    if first is None:
        raise DataError("the file has no words", file)
    width = stated or _count_numbers(first.text)
    if not width:
        raise DataError("a word and its numbers were expected, between blanks", file, first.number)
    _split(first, width, file)
    return promised, width, _prepend(first, lines)


def _prepend(first: Line, lines: Iterator[Line]) -> Iterator[Line]:
    yield first
    yield from lines


def _count_numbers(text: str) -> int:
    """How many fields are numbers, from the end, the first field being a word whatever it looks like."""
    fields = text.rstrip().split(" ")[1:]
    return next((back for back, field in enumerate(reversed(fields)) if not _is_number(field)), len(fields))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _split(line: Line, width: int, file: str) -> tuple[str, list[str]]:
    """A word and its numbers, not yet read."""
    word, *numbers = line.text.rstrip().rsplit(" ", width)
    if len(numbers) == width and (" " not in word or not _is_number(word.rpartition(" ")[2])):
        return word, numbers
    count = _count_numbers(line.text)
    raise DataError(f"the word has {format_count(count, 'number')}, but {width} were expected", file, line.number)


def _parse_vector(numbers: list[str], word: str, file: str, line: int) -> list[float]:
    for number in numbers:
        if not _is_number(number) or abs(float(number)) > LARGEST:
            raise DataError(f"the vector of {word[:40]!r} holds {number[:40]!r}, which is not a number", file, line)
    return [float(number) for number in numbers]
