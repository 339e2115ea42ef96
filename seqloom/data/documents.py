"""Files to documents: texts without a source, each read from its own beginning.

- txt: the whole file, its paragraphs (blank lines lie between them) or its lines; line breaks within one are kept.
- abc: a tune; fasta: the letters of an entry.
- csv, tsv, jsonl, xlsx, parquet: what stands in one column.

Knows nothing of tokens. A document that is empty is none.
"""

from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import PurePath
from typing import Any

from seqloom.config.recipe import Data, Recipe
from seqloom.data.chunked_text import PIECE, TextContinuation, join_continuations
from seqloom.data.datasets import Dataset
from seqloom.data.files import digest_file, find_files_by_part
from seqloom.data.formats.abc import read_abc
from seqloom.data.formats.fasta import read_fasta
from seqloom.data.formats.lines import Fault, Line, find_line_fault, read_lines
from seqloom.data.formats.tables import Reading, SkippedRows, drop_faults, read_rows
from seqloom.data.readers import Example
from seqloom.data.schema import Schema
from seqloom.errors import DataError

ENDINGS = {
    **dict.fromkeys((".txt", ".md", ".log", ".text"), "txt"),
    **{".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".xlsx": "xlsx", ".parquet": "parquet", ".abc": "abc"},
    **dict.fromkeys((".fasta", ".fa", ".faa", ".fna"), "fasta"),
}


class Documents(Dataset):
    """Documents of files, by part."""

    def __init__(self, schema: Schema) -> None:
        self._schema, groups_by_part = schema, find_files_by_part(schema.data, "texts are")
        self._texts = {part: [file for group in groups for file in group] for part, groups in groups_by_part.items()}
        self.parts = tuple(self._texts)
        self.names = tuple(file for files in self._texts.values() for file in files)

    def content(self) -> dict[str, list[str]]:
        format = self._schema.data.format
        return {
            part: [entry for file in files for entry in (detect_format(file, format), digest_file(file))]
            for part, files in self._texts.items()
        }

    @classmethod
    def read_files(cls, files: Sequence[str], data: Data) -> Iterator[str]:
        """The documents of files, each whole."""
        return read_whole(files, data, SkippedRows())

    def read(self, part: str, skipped: SkippedRows) -> Iterator[Example]:
        keys = self._schema.with_keys().keys if part == "train" else {}
        if not keys:
            return read_documents(self._texts[part], self._schema.data, skipped)
        return read_keyed(self._texts[part], self._schema.data, tuple(keys.values()), skipped)


def detect_format(file: str, format: str) -> str:
    """The format as said, or as the ending of the file says."""
    if format in ("lines", "json"):
        raise DataError(f"data.format is {format}, but documents are read from {', '.join(ENDINGS.values())}", file)
    if format != "guess":
        return format
    name = PurePath(file.lower())
    ending = PurePath(name.stem).suffix if name.suffix == ".gz" else name.suffix
    if ending not in ENDINGS:
        says = f"the ending {ending} says" if ending else "the name says"
        known = ", ".join(dict.fromkeys(ENDINGS.values()))
        raise DataError(f"{says} nothing about the format; set data.format to one of {known}", file)
    return ENDINGS[ending]


def is_text(data: Data) -> bool:
    """Whether all that is read is one text from beginning to end, and not documents that have no order."""
    formats = {detect_format(file, data.format) for file in data.train[:1]} or {"txt"}
    return data.documents == "file" and formats == {"txt"}


def settle_documents(recipe: Recipe, examples: Any) -> Recipe:
    """The recipe for examples from Python: several texts are documents, each read from its own beginning."""
    train = examples.get("train") if isinstance(examples, Mapping) else examples
    several = isinstance(train, Sized) and not isinstance(train, str) and len(train) > 1
    if not several or recipe.task != "language" or not is_text(recipe.data):
        return recipe
    return recipe.changed("data.documents", "paragraphs")


def read_documents(files: Sequence[str], data: Data, skipped: SkippedRows) -> Iterator[Example]:
    """The documents of files, one after the other; what cannot be used is raised, or added to `skipped`.

    A long one comes in pieces, the later ones `TextContinuation`.
    """
    for file in files:
        yield from ((text,) for text in _read_texts(file, data, skipped))


def read_keyed(files: Sequence[str], data: Data, columns: tuple[str, ...], skipped: SkippedRows) -> Iterator[Example]:
    """The documents of tables, each with what stands in other columns."""
    reading = Reading.of(data, (data.target, *columns)).allow_blank((data.group,))
    for file in files:
        if detect_format(file, data.format) in ("txt", "abc", "fasta"):
            raise DataError(f"there is no column {columns[0]!r}: only tables have columns to divide texts by", file)
        yield from (row.values for row in read_rows([file], reading, skipped))


def read_whole(files: Sequence[str], data: Data, skipped: SkippedRows) -> Iterator[str]:
    """The documents of a file, each as one text."""
    return join_continuations(text for (text,) in read_documents(files, data, skipped))


def _read_texts(file: str, data: Data, skipped: SkippedRows) -> Iterator[str]:
    skip = data.on_bad_row == "skip"
    match detect_format(file, data.format):
        case "abc":
            return (tune.text for tune in read_abc(file, skipped, data.encoding, skip))
        case "fasta":
            return (entry.sequence for entry in read_fasta(file, skipped, data.encoding, skip))
        case "txt":
            return drop_faults(
                _split_documents(read_lines(file, data.encoding), file, data), file, skip, skipped, "document"
            )
    return (row.values[0] for row in read_rows([file], Reading.of(data, (data.target,)), skipped))


def _split_documents(lines: Iterator[Line], file: str, data: Data) -> Iterator[str | Fault]:
    """The documents of a text file. A line that is no text is a fault, and is left out of its document."""
    if data.documents == "file":
        yield from _read_as_one(lines, file, data)
        return
    document: list[str] = []
    for line in lines:
        if fault := find_line_fault(line, file, data.encoding):
            yield fault
            continue
        ends = data.documents == "lines" or not line.text.strip()
        if data.documents == "lines" or not ends:
            document.append(line.text)
        if ends:
            yield from _join_lines(document)
            document = []
    yield from _join_lines(document)


def _join_lines(document: list[str]) -> Iterator[str]:
    """The lines as one text, if there is something in it."""
    if text := "\n".join(document).strip():
        yield text


def _read_as_one(lines: Iterator[Line], file: str, data: Data) -> Iterator[str | Fault]:
    """All lines as one document with its white space, in pieces if it is long; what holds nothing else is none."""
    part: list[str] = []
    size, continues, filled = 0, False, False
    for line in lines:
        if fault := find_line_fault(line, file, data.encoding):
            yield fault
            continue
        part.append(line.text)
        size += len(line.text) + 1
        filled = filled or not line.text.isspace() and bool(line.text)
        if size >= PIECE and filled:
            yield _join_piece(part, continues)
            part, size, continues = [], 0, True
    if part and filled:
        yield _join_piece(part, continues)


def _join_piece(lines: list[str], continues: bool) -> str:
    text = "\n".join(lines)
    return TextContinuation(f"\n{text}") if continues else text
