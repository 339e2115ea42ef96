"""Answers as a table beside their inputs: csv, tsv, jsonl or parquet. The file is whole, or it is not there."""

import csv
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..counts import format_count
from ..data.files import expand
from ..errors import DataError, MissingExtra
from ..tasks.results import Predictions
from ..training.files import explain_errors, make_partial_path, remove_quietly, sync_folder
from .json_output import to_line

GROUP = 4096  # rows of a row group in a Parquet file
BROKEN = str.maketrans({"\t": " ", "\n": " ", "\r": " "})

Row = Mapping[str, Any]


class TableWriter(ABC):
    """Rows with the same columns, written as they come."""

    def __init__(self, file: IO[bytes], columns: Sequence[str]) -> None:
        self.file, self.columns = file, list(columns)
        self.notes: list[str] = []  # what the format could not hold

    @abstractmethod
    def write(self, row: Row) -> None: ...

    def finish(self) -> None:  # noqa: B027 - most have nothing left to do
        """Write what is still held."""

    def cells(self, row: Row) -> list[str]:
        return [to_cell(row.get(name)) for name in self.columns]


class CsvWriter(TableWriter):
    def __init__(self, file: IO[bytes], columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        self._rows = csv.writer(EncodedFile(file), lineterminator="\n")
        self._rows.writerow(columns)

    def write(self, row: Row) -> None:
        self._rows.writerow(self.cells(row))


class TsvWriter(TableWriter):
    """Quotation marks are characters like any other here, so that a tab or a line break cannot stand in a cell."""

    broken = 0

    def __init__(self, file: IO[bytes], columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        self._write(self.columns)

    def write(self, row: Row) -> None:
        self._write(self.cells(row))

    def _write(self, cells: Sequence[str]) -> None:
        whole = [cell.translate(BROKEN) for cell in cells]
        self.broken += sum(one != own for one, own in zip(whole, cells, strict=True))
        self.file.write(("\t".join(whole) + "\n").encode())

    def finish(self) -> None:
        if self.broken:
            self.notes.append(
                f"{format_count(self.broken, 'cell')} with tabs or line breaks, which a tsv file cannot hold: "
                "they are blanks there"
            )


class JsonlWriter(TableWriter):
    """Values as they are: nested ones too."""

    def write(self, row: Row) -> None:
        self.file.write((to_line(dict(row)) + "\n").encode())


class ParquetWriter(TableWriter):
    """Columns of numbers where the first rows have numbers, else of texts."""

    def __init__(self, file: IO[bytes], columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        self._held: list[Row] = []
        self._writer: Any = None
        try:
            import pyarrow.parquet
        except ImportError:
            raise MissingExtra("pyarrow", "parquet") from None
        self._arrow = pyarrow

    def write(self, row: Row) -> None:
        self._held.append(dict(row))
        if len(self._held) >= GROUP:
            self._write_group()

    def _write_group(self) -> None:
        arrow = self._arrow
        if self._writer is None:
            numbers = {
                name for name in self.columns if all(type(row.get(name)) in (float, type(None)) for row in self._held)
            }
            kinds = [(name, arrow.float64() if name in numbers else arrow.string()) for name in self.columns]
            self._schema = arrow.schema(kinds)
            self._writer = arrow.parquet.ParquetWriter(self.file, self._schema)
        columns = [
            arrow.array(
                [own.get(name) if kind.type == arrow.float64() else to_text(own.get(name)) for own in self._held],
                kind.type,
            )
            for name, kind in zip(self.columns, self._schema, strict=True)
        ]
        self._writer.write_table(arrow.Table.from_arrays(columns, schema=self._schema))
        self._held = []

    def finish(self) -> None:
        if self._held or self._writer is None:
            self._write_group()
        self._writer.close()


WRITERS: dict[str, type[TableWriter]] = {
    ".csv": CsvWriter,
    ".tsv": TsvWriter,
    ".jsonl": JsonlWriter,
    ".parquet": ParquetWriter,
}


class EncodedFile:
    """A binary file that takes text."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def to_cell(value: Any) -> str:
    return to_text(value) or ""


def to_text(value: Any) -> str | None:
    """A value as the text of a cell; what is nested, as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def check_table(path: Path, names: Sequence[str]) -> None:
    """Refuse a name that no table can be written to, before anybody waits for it."""
    if path.suffix.lower() not in WRITERS:
        raise DataError(f"the ending is {path.suffix or 'none'}, but one of {', '.join(WRITERS)} was expected", path)
    if path.is_dir():
        raise DataError("this is a folder, but a file was expected", path)
    if not path.parent.is_dir():
        raise DataError("there is no folder for it", path)
    inputs = [file for name in names if name != "-" for file in expand(name)] if path.exists() else []
    if any(os.path.exists(file) and os.path.samefile(path, file) for file in inputs):
        raise DataError("this is the file of the inputs: the answers need another name", path)


@contextmanager
def write_table(path: Path, columns: Sequence[str]) -> Iterator[TableWriter]:
    """A table under a temporary name, which takes its own when everything has been written."""
    part = make_partial_path(path)
    with explain_errors(path, "cannot be written"):
        try:
            with open(part, "wb") as file:
                writer = WRITERS[path.suffix.lower()](file, columns)
                yield writer
                writer.finish()
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            remove_quietly(part)
            raise
        sync_folder(path.parent)


def answer_rows(predictions: Predictions, best: int, classes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The best answers to one input as rows: the second and further ones in columns of their own, with their number.
    After them the probability of every class, where those are wanted."""
    rows = predictions[0].rows()
    if len(rows) > 1:
        return rows
    [first], columns = rows, list(rows[0])
    for rank in range(2, best + 1):
        [other] = predictions[rank - 1].rows() if rank <= len(predictions) else [{}]
        first |= {f"{name}_{rank}": other.get(name) for name in columns}
    probabilities = predictions.probabilities
    return [first | {f"probability of {name}": probabilities[name] for name in classes}]
