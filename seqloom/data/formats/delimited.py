"""Lines to records: the fields of csv, tab-separated, two-part and parallel lines, all columns as they stand.

A line that cannot be a record is a `Fault` in its place. Knows no column by its name; that is `readers`.
"""

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from seqloom.counts import format_count
from seqloom.data.formats.lines import MAX_LINE, Fault, Line, find_line_fault, read_lines
from seqloom.errors import DataError

PAIR = ["source", "target"]  # what the two columns of files without a header are called

# What the csv module says, and what a person should read.
CSV_FAULTS = {
    "unexpected end of data": ("unclosed quote", "a quote that is opened in this row is never closed"),
    "field larger than field limit": (
        "unclosed quote",
        f"a quoted field goes on for more than {MAX_LINE:,} characters",
    ),
    "expected after": (
        "misplaced quote",
        "a quoted field goes on after its closing quote (a quote inside of quotes is written twice)",
    ),
    "new-line character seen": ("carriage return", "a carriage return stands in the middle of the row"),
}


class Record(NamedTuple):
    """A row as it stands in the file, all columns."""

    fields: list[str]
    line: int


def skip_blank_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines that have anything but blanks on them."""
    return (line for line in lines if line.text.strip(" "))


def read_pairs(lines: Iterable[Line], separator: str, encoding: str, file: str) -> Iterator[Record | Fault]:
    """Two fields a line, between them the separator where it first occurs."""
    for line in skip_blank_lines(lines):
        source, mark, target = line.text.partition(separator)
        if fault := find_line_fault(line, file, encoding):
            yield fault
        elif separator == "\t" and "\t" in target:  # a further column, which is no part of the target
            cells = line.text.split("\t")
            sentence = f"the line has {len(cells)} columns ({_format_cells(cells)}), but source and target are two"
            choice = "data.format=tsv data.source=1 data.target=2 chooses by number"
            yield Fault("more than two columns", f"{sentence}: {choice}", file, line.number)
        elif not mark:
            sentence = f"the separator {separator!r} does not occur in the line; data.separator says what it is"
            yield Fault("no separator", sentence, file, line.number)
        else:
            yield Record([source, target], line.number)


def _format_cells(cells: list[str]) -> str:
    return " | ".join(cell.strip()[:20] for cell in cells[:5]) + (" | …" if len(cells) > 5 else "")


def read_tabs(lines: Iterable[Line], encoding: str, file: str) -> Iterator[Record | Fault]:
    """Fields between tabs."""
    for line in skip_blank_lines(lines):
        yield find_line_fault(line, file, encoding) or Record(line.text.split("\t"), line.number)


def read_parallel(source: str, target: str, encoding: str) -> Iterator[Record | Fault]:
    """Line n of one file beside line n of the other; an empty line is a fault, or the others would shift."""
    counts = [0, 0]
    for pair in zip_longest(read_lines(source, encoding), read_lines(target, encoding)):
        fields: list[str] = []
        faults: list[Fault] = []
        for side, (line, file) in enumerate(zip(pair, (source, target), strict=True)):
            if line is None:
                continue
            counts[side] = line.number
            fields.append(line.text)
            if fault := find_line_fault(line, file, encoding):
                faults.append(fault)
            elif not line.text.strip():
                faults.append(Fault(f"empty {PAIR[side]}", "the line is empty", file, line.number))
        if len(fields) == 2:  # else the files are no pair, which is said at their end
            yield faults[0] if faults else Record(fields, counts[0])
    if counts[0] != counts[1]:
        sentence = (
            f"the file has {format_count(counts[0], 'line')}, but {target} has {counts[1]:,}: parallel "
            "files have as many"
        )
        raise DataError(sentence, source)


class _Feed:
    """Lines for the csv module, which remembers those of the row it is at, so that they can be read again."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = iter(lines)
        self.again: deque[Line] = deque()
        self.taken: list[Line] = []

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = self.again.popleft() if self.again else next(self.lines)
        self.taken.append(line)
        return line.text + "\n"

    def plain(self) -> Iterator[Line]:
        """Lines up to the next one that only the csv module can read; that one is left for it."""
        while line := self.again.popleft() if self.again else next(self.lines, None):
            if '"' in line.text or "\r" in line.text:
                self.again.appendleft(line)
                return
            yield line


def read_csv(lines: Iterable[Line], encoding: str, file: str, separator: str = ",") -> Iterator[Record | Fault]:
    """Fields between commas or another character, some in quotes, as the csv module reads them."""
    if csv.field_size_limit() < MAX_LINE:  # the module's own, small limit holds for the whole process
        csv.field_size_limit(MAX_LINE)
    feed = _Feed(lines)
    reader = csv.reader(feed, strict=True, delimiter=separator)
    while True:
        for line in feed.plain():  # nearly all of most files, and splitting takes half the time
            if line.text.strip(" "):
                yield find_line_fault(line, file, encoding) or Record(line.text.split(separator), line.number)
        feed.taken = []
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            first, *others = feed.taken
            # After a quote that is closed nowhere, or far away, the lines behind it are most likely rows in order.
            feed.again.extendleft(reversed(others))
            reasons = (reason_and_sentence for start, reason_and_sentence in CSV_FAULTS.items() if start in str(error))
            reason, sentence = next(reasons, ("not csv", f"the row is not csv ({error})"))
            yield Fault(reason, sentence, file, first.number)
            continue
        if not "".join(fields).strip(" ") and len(fields) < 2:
            continue  # nothing on the line
        faults = (find_line_fault(line, file, encoding) for line in feed.taken)
        yield next(filter(None, faults), None) or Record(fields, feed.taken[0].number)
