"""Collections of tunes in ABC notation: where each begins and ends, its header fields, its music as text.

A tune begins with a line X: and ends at an empty line; the line K: ends its header. Text between tunes is passed over.
What the music means is in `score`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from seqloom.data.formats.lines import Fault, Line, find_line_fault, read_lines
from seqloom.data.formats.tables import SkippedRows, drop_faults

FIELD = re.compile(r"([A-Za-z]):(?![|:])\s*(.*)")  # but `d:|` is music


class Tune(NamedTuple):
    fields: tuple[tuple[str, str], ...]  # of the header, in order: ("X", "1"), ("T", "Alexander's"), … ("K", "D")
    body: str  # the lines behind K:
    file: str
    line: int  # of X:

    def field(self, letter: str) -> str:
        """What the header says behind this letter, or nothing."""
        return next((text for name, text in self.fields if name == letter), "")

    @property
    def text(self) -> str:
        """The tune as a file holds it, without comments in the header."""
        header = [f"{letter}:{value}" for letter, value in self.fields if letter != "%"]
        return "\n".join([*header, self.body])

    @property
    def body_line(self) -> int:
        """Where the body begins; every header line is a field."""
        return self.line + len(self.fields)


def read_abc(file: str, skipped: SkippedRows, encoding: str = "utf-8", skip: bool = False) -> Iterator[Tune]:
    """The tunes of a file; those without a key or without music are raised, or added to `skipped`."""
    return drop_faults(_split_tunes(read_lines(file, encoding), file, encoding), file, skip, skipped, "tune")


def parse_tune(text: str, name: str = "the tune") -> Tune:
    """The first tune in a text, such as a generated one; DataError if there is none."""
    lines = (Line(number, line) for number, line in enumerate(text.split("\n"), 1))
    return next(drop_faults(_split_tunes(lines, name, "utf-8"), name, False, SkippedRows()))


def _split_tunes(lines: Iterator[Line], file: str, encoding: str) -> Iterator[Tune | Fault]:
    block: list[Line] = []
    for line in lines:
        if line.text.startswith("X:") or not line.text.strip():
            if block:
                yield _read_tune(block, file, encoding)
            block = [line] if line.text.startswith("X:") else []
        elif block:
            block.append(line)
    if block:
        yield _read_tune(block, file, encoding)


def _read_tune(block: list[Line], file: str, encoding: str) -> Tune | Fault:
    fields: list[tuple[str, str]] = []
    for place, line in enumerate(block):
        if fault := find_line_fault(line, file, encoding):
            return fault
        text = line.text.partition("%")[0].rstrip()
        field = FIELD.fullmatch(text)
        fields.append((field[1], field[2]) if field else ("%", ""))  # a comment or a directive keeps its line
        if text and not field and not text.startswith("+:"):
            sentence = f"a header field such as T: or K: was expected, not {text[:40]!r}"
            return Fault("no header field", sentence, file, line.number)
        if field and field[1] == "K":
            return _make_tune(fields, block[place + 1 :], file, encoding, block[0].number)
    return Fault("no key", "the tune has no line K:, which ends its header", file, block[0].number)


def _make_tune(fields: list[tuple[str, str]], body: list[Line], file: str, encoding: str, start: int) -> Tune | Fault:
    if fault := next(filter(None, (find_line_fault(line, file, encoding) for line in body)), None):
        return fault
    text = "\n".join(line.text for line in body)
    if not text.strip():
        return Fault("no music", "the tune ends behind its header", file, start)
    return Tune(tuple(fields), text, file, start)
