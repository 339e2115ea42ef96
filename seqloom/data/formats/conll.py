"""Sentences of words with a tag each: CoNLL columns, and CoNLL-U of the Universal Dependencies.

- columns: a word a line, its columns between tabs or blanks, an empty line behind a sentence; -DOCSTART- is skipped.
- CoNLL-U: ten columns between tabs, comments; the ranges of multiword tokens (1-2) and empty nodes (1.1) are skipped.

Columns are asked for by number, from 1, as `last`, and in CoNLL-U by name. A sentence with a bad line is a fault.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from seqloom.data.formats.lines import Fault, Line, fault_of, read_lines
from seqloom.data.formats.tables import Skipped, kept, place_of
from seqloom.errors import DataError

NAMES = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
WORD_ID = re.compile(r"[1-9][0-9]*")
OTHER_ID = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")


class Sentence(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...]  # as many
    line: int  # of its first word


@dataclass(frozen=True)
class ConllReading:
    word: str = "1"
    tag: str = "last"
    format: str = "guess"  # columns or conllu; guessed by the ending .conllu
    encoding: str = "utf-8"
    skip: bool = False


def read_conll(file: str, reading: ConllReading, skipped: Skipped) -> Iterator[Sentence]:
    """The sentences of a file; those that cannot be used are raised, or added to `skipped`."""
    universal = reading.format == "conllu"
    if reading.format == "guess":
        universal = file.lower().removesuffix(".gz").endswith(".conllu")
    lines = read_lines(file, reading.encoding)
    found = _universal(lines, reading, file) if universal else _columns(lines, reading, file)
    return kept(found, file, reading.skip, skipped, "sentences")


def _blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines between empty ones."""
    for filled, block in groupby(lines, lambda line: bool(line.text.strip())):
        if filled:
            yield list(block)


def _columns(lines: Iterable[Line], reading: ConllReading, file: str) -> Iterator[Sentence | Fault]:
    places: tuple[int, int] | None = None
    width = 0
    for block in _blocks(lines):
        block = [line for line in block if not line.text.startswith("-DOCSTART-")]
        if not block:
            continue
        rows = [line.text.split("\t") if "\t" in line.text else line.text.split() for line in block]
        fault = _faults(block, file, reading.encoding)
        if fault is None and places is None:  # the first good line says how many columns there are
            width = len(rows[0])
            places = _places(reading, [str(number) for number in range(1, width + 1)], file, block[0].number)
        yield fault or _sentence(block, rows, places, width, file)


def _universal(lines: Iterable[Line], reading: ConllReading, file: str) -> Iterator[Sentence | Fault]:
    places = _places(reading, NAMES, file, None)
    for block in _blocks(lines):
        block = [line for line in block if not line.text.startswith("#")]
        rows = [line.text.split("\t") for line in block]
        words = [(line, row) for line, row in zip(block, rows, strict=True) if not OTHER_ID.fullmatch(row[0])]
        if fault := _faults(block, file, reading.encoding):
            yield fault
        elif other := [(line, row) for line, row in words if len(row) > 1 and not WORD_ID.fullmatch(row[0])]:
            line, row = other[0]
            sentence = f"the line begins with {row[0][:40]!r}, but a word's number was expected"
            yield Fault("no number", sentence, file, line.number)
        elif words:
            yield _sentence([line for line, _ in words], [row for _, row in words], places, len(NAMES), file)


def _places(reading: ConllReading, names: list[str], file: str, line: int | None) -> tuple[int, int]:
    word, tag = (
        len(names) - 1 if name == "last" else place_of(name.lower(), names, file, line)
        for name in (reading.word, reading.tag)
    )
    if word == tag:
        raise DataError(f"words and tags are both taken from column {word + 1}", file, line)
    return word, tag


def _faults(block: list[Line], file: str, encoding: str) -> Fault | None:
    return next(filter(None, (fault_of(line, file, encoding) for line in block)), None)


def _sentence(
    block: list[Line], rows: list[list[str]], places: tuple[int, int] | None, width: int, file: str
) -> Sentence | Fault:
    assert places is not None
    word, tag = places
    for line, row in zip(block, rows, strict=True):
        if len(row) != width:
            sentence = f"the line has {len(row)} columns, but {width} were expected"
            return Fault("wrong number of columns", sentence, file, line.number)
        if not row[word].strip() or not row[tag].strip():
            which = "word" if not row[word].strip() else "tag"
            return Fault(f"empty {which}", f"the {which} of the line is empty", file, line.number)
    words, tags = (tuple(row[place].strip() for row in rows) for place in (word, tag))
    return Sentence(words, tags, block[0].number)
