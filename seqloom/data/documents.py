"""Files to documents: texts without a source, each read from its own beginning.

- txt: the whole file, its paragraphs (blank lines lie between them) or its lines; line breaks within one are kept.
- abc: a tune; fasta: the letters of an entry.
- csv, tsv, jsonl, xlsx, parquet: what stands in one column.

Knows nothing of tokens. A document that is empty is none.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from seqloom.config.recipe import Data
from seqloom.data.chunked_text import PIECE, Onward, whole
from seqloom.data.datasets import Dataset
from seqloom.data.files import digest, find_files_by_part
from seqloom.data.formats.abc import read_abc
from seqloom.data.formats.fasta import read_fasta
from seqloom.data.formats.lines import Fault, Line, fault_of, read_lines
from seqloom.data.formats.tables import Reading, Skipped, kept, read_rows
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
        self._schema, found = schema, find_files_by_part(schema.data, "texts are")
        self._texts = {part: [file for group in groups for file in group] for part, groups in found.items()}
        self.parts = tuple(self._texts)
        self.names = tuple(file for files in self._texts.values() for file in files)

    def content(self) -> dict[str, list[str]]:
        format = self._schema.data.format
        return {
            part: [entry for file in files for entry in (format_of(file, format), digest(file))]
            for part, files in self._texts.items()
        }

    @classmethod
    def read_files(cls, files: Sequence[str], data: Data) -> Iterator[str]:
        """The documents of files, each whole."""
        return read_whole(files, data, Skipped())

    def read(self, part: str, skipped: Skipped) -> Iterator[Example]:
        return read_documents(self._texts[part], self._schema.data, skipped)


def format_of(file: str, format: str) -> str:
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
    formats = {format_of(file, data.format) for file in data.train[:1]} or {"txt"}
    return data.documents == "file" and formats == {"txt"}


def read_documents(files: Sequence[str], data: Data, skipped: Skipped) -> Iterator[Example]:
    """The documents of files, one after the other; what cannot be used is raised, or added to `skipped`.

    A long one comes in pieces, the later ones `Onward`.
    """
    for file in files:
        yield from ((text,) for text in _texts(file, data, skipped))


def read_whole(files: Sequence[str], data: Data, skipped: Skipped) -> Iterator[str]:
    """The same, each whole."""
    return whole(text for (text,) in read_documents(files, data, skipped))


def _texts(file: str, data: Data, skipped: Skipped) -> Iterator[str]:
    skip = data.on_bad_row == "skip"
    match format_of(file, data.format):
        case "abc":
            return (tune.text for tune in read_abc(file, skipped, data.encoding, skip))
        case "fasta":
            return (entry.sequence for entry in read_fasta(file, skipped, data.encoding, skip))
        case "txt":
            return kept(_cut(read_lines(file, data.encoding), file, data), file, skip, skipped, "documents")
    return (row.values[0] for row in read_rows([file], Reading.of(data, (data.target,)), skipped))


def _cut(lines: Iterator[Line], file: str, data: Data) -> Iterator[str | Fault]:
    """The documents of a text file. A line that is no text is a fault, and is left out of its document."""
    if data.documents == "file":
        yield from _one(lines, file, data)
        return
    document: list[str] = []
    for line in lines:
        if fault := fault_of(line, file, data.encoding):
            yield fault
            continue
        ends = data.documents == "lines" or not line.text.strip()
        if data.documents == "lines" or not ends:
            document.append(line.text)
        if ends:
            yield from _joined(document)
            document = []
    yield from _joined(document)


def _joined(document: list[str]) -> Iterator[str]:
    """The lines as one text, if there is something in it."""
    if text := "\n".join(document).strip():
        yield text


def _one(lines: Iterator[Line], file: str, data: Data) -> Iterator[str | Fault]:
    """All lines as one document with its white space, in pieces if it is long; what holds nothing else is none."""
    part: list[str] = []
    size, begun, filled = 0, False, False
    for line in lines:
        if fault := fault_of(line, file, data.encoding):
            yield fault
            continue
        part.append(line.text)
        size += len(line.text) + 1
        filled = filled or not line.text.isspace() and bool(line.text)
        if size >= PIECE and filled:
            yield _piece(part, begun)
            part, size, begun = [], 0, True
    if part and filled:
        yield _piece(part, begun)


def _piece(lines: list[str], begun: bool) -> str:
    text = "\n".join(lines)
    return Onward(f"\n{text}") if begun else text
