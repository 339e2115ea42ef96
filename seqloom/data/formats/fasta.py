"""FASTA files: `>` and a name, then the letters of a protein or of DNA on as many lines as they need.

The name is the first word behind `>`. Letters stay as they are written, `*`, `-` and `.` among them; white space and
lines that begin with `;` are dropped.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from seqloom.data.formats.lines import Fault, find_line_fault, read_lines
from seqloom.data.formats.tables import SkippedRows, drop_faults

STRANGE = re.compile(r"[^A-Za-z*.\-]")


class Entry(NamedTuple):
    name: str  # "" if the line has only `>`
    sequence: str
    line: int  # of its name


def read_fasta(file: str, skipped: SkippedRows, encoding: str = "utf-8", skip: bool = False) -> Iterator[Entry]:
    """The entries of a file; those that cannot be used are raised, or added to `skipped`."""
    return drop_faults(_read_entries(file, encoding), file, skip, skipped, "entry")


def _read_entries(file: str, encoding: str) -> Iterator[Entry | Fault]:
    name, start = "", 0  # no entry has begun
    letters: list[str] = []
    fault: Fault | None = None  # the first one within the entry
    for line in read_lines(file, encoding):
        bad = find_line_fault(line, file, encoding)
        if line.text.startswith(">"):
            if start or fault:
                yield fault or _make_entry(name, letters, file, start)
            name, start, letters, fault = (line.text[1:].split() or [""])[0], line.number, [], bad
            continue
        text = "" if line.text.startswith(";") else "".join(line.text.split())
        if text and not start and not fault:
            sentence = "letters stand before the first line that begins with > and a name"
            fault = bad or Fault("no name", sentence, file, line.number)
        elif not bad and (strange := STRANGE.search(text)):
            sentence = f"{strange[0]!r} is no letter of a protein or of DNA"
            bad = Fault("strange letter", sentence, file, line.number)
        fault = fault or bad
        letters.append(text)
    if start or fault:
        yield fault or _make_entry(name, letters, file, start)


def _make_entry(name: str, letters: list[str], file: str, line: int) -> Entry | Fault:
    sequence = "".join(letters)
    if sequence:
        return Entry(name, sequence, line)
    return Fault("empty sequence", f"the entry {name[:40]!r} has no letters", file, line)
