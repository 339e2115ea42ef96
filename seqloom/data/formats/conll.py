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

from seqloom.counts import format_count
from seqloom.data.formats.lines import Fault, Line, find_line_fault, read_lines
from seqloom.data.formats.tables import SkippedRows, drop_faults, find_column
from seqloom.errors import DataError

NAMES = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
WORD_ID = re.compile(r"[1-9][0-9]*")
OTHER_ID = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")


class Sentence(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...]  # as many, or none if none was asked for
    line: int  # of its first word


@dataclass(frozen=True)
class ConllReading:
    word: str = "1"
    tag: str = "last"  # nothing: words alone
    format: str = "guess"  # columns or conllu; guessed by the ending .conllu
    encoding: str = "utf-8"
    skip: bool = False


def read_conll(file: str, reading: ConllReading, skipped: SkippedRows) -> Iterator[Sentence]:
    """The sentences of a file; those that cannot be used are raised, or added to `skipped`."""
    return drop_faults(parse_conll(file, reading), file, reading.skip, skipped, "sentence")


def parse_conll(file: str, reading: ConllReading) -> Iterator[Sentence | Fault]:
    """The sentences of a file, and faults in the place of those that cannot be used."""
    universal = reading.format == "conllu"
    if reading.format == "guess":
        universal = file.lower().removesuffix(".gz").endswith(".conllu")
    lines = read_lines(file, reading.encoding)
    return _read_universal(lines, reading, file) if universal else _read_columns(lines, reading, file)


def _split_blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines between empty ones."""
    for filled, block in groupby(lines, lambda line: bool(line.text.strip())):
        if filled:
            yield list(block)


def _read_columns(lines: Iterable[Line], reading: ConllReading, file: str) -> Iterator[Sentence | Fault]:
    places: tuple[int, ...] | None = None
    width = 0
    for block in _split_blocks(lines):
        block = [line for line in block if not line.text.startswith("-DOCSTART-")]
        if not block:
            continue
        rows = [line.text.split("\t") if "\t" in line.text else line.text.split() for line in block]
        fault = _find_fault(block, file, reading.encoding)
        if fault is None and places is None:  # the first good line says how many columns there are
            width = len(rows[0])
            places = _find_columns(reading, [str(number) for number in range(1, width + 1)], file, block[0].number)
        yield fault or _make_sentence(block, rows, places, width, file)


def _read_universal(lines: Iterable[Line], reading: ConllReading, file: str) -> Iterator[Sentence | Fault]:
    places = _find_columns(reading, NAMES, file, None)
    for block in _split_blocks(lines):
        block = [line for line in block if not line.text.startswith("#")]
        rows = [line.text.split("\t") for line in block]
        words = [(line, row) for line, row in zip(block, rows, strict=True) if not OTHER_ID.fullmatch(row[0])]
        if fault := _find_fault(block, file, reading.encoding):
            yield fault
        elif other := [(line, row) for line, row in words if len(row) > 1 and not WORD_ID.fullmatch(row[0])]:
            line, row = other[0]
            sentence = f"the line begins with {row[0][:40]!r}, but a word's number was expected"
            yield Fault("no number", sentence, file, line.number)
        elif words:
            yield _make_sentence([line for line, _ in words], [row for _, row in words], places, len(NAMES), file)


def _find_columns(reading: ConllReading, names: list[str], file: str, line: int | None) -> tuple[int, ...]:
    """Where words and, if they are asked for, tags stand."""
    word, *tags = (
        len(names) - 1 if name == "last" else find_column(name.lower(), names, file, line)
        for name in (reading.word, reading.tag)
        if name
    )
    if not tags:
        return (word,)
    [tag] = tags
    if word == tag:
        raise DataError(f"words and tags are both taken from column {word + 1}", file, line)
    return word, tag


def _find_fault(block: list[Line], file: str, encoding: str) -> Fault | None:
    return next(filter(None, (find_line_fault(line, file, encoding) for line in block)), None)


def _make_sentence(
    block: list[Line], rows: list[list[str]], places: tuple[int, ...] | None, width: int, file: str
) -> Sentence | Fault:
    assert places is not None
    for line, row in zip(block, rows, strict=True):
        if len(row) != width:
            sentence = f"the line has {format_count(len(row), 'column')}, but {width} were expected"
            return Fault("wrong number of columns", sentence, file, line.number)
        for which, place in zip(("word", "tag"), places, strict=False):
            if not row[place].strip():
                return Fault(f"empty {which}", f"the {which} of the line is empty", file, line.number)
    words, *tags = (tuple(row[place].strip() for row in rows) for place in places)
    return Sentence(words, tags[0] if tags else (), block[0].number)
