"""Parquet files as tables of texts, a batch at a time; a row's number stands for its line.

Texts, numbers, truth values, dates and times become text, and what is missing an empty one; a column of lists,
structures or bytes is refused. Needs pyarrow.
"""

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from seqloom.data.formats.delimited import Record
from seqloom.data.formats.lines import Fault, check_file
from seqloom.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import pyarrow

BATCH = 4096  # rows in memory at once


def list_columns(file: str) -> list[str]:
    """The names of all columns."""
    with _open(file) as content:
        return list(_open_parquet(content, file).schema_arrow.names)


def list_plain_columns(file: str) -> tuple[list[str], list[str]]:
    """The names of the columns that `read_parquet` can read, and of all others."""
    with _open(file) as content:
        schema = _open_parquet(content, file).schema_arrow
        plain = [field.name for field in schema if _is_plain(field.type)]
        return plain, [name for name in schema.names if name not in plain]


def count_rows(file: str) -> int:
    with _open(file) as content:
        return int(_open_parquet(content, file).metadata.num_rows)


def read_parquet(file: str, names: Sequence[str], columns: Sequence[str]) -> Iterator[Record | Fault]:
    """The rows of a file that has columns of these names; those that nobody wants are not read and stay empty."""
    places = [names.index(name) for name in columns]
    with _open(file) as content:
        table, number = _open_parquet(content, file), 0
        import pyarrow

        try:
            for batch in table.iter_batches(BATCH, columns=list(columns)):
                for values in zip(*(_format_column(batch, name, file) for name in columns), strict=True):
                    number += 1
                    fields = [""] * len(names)
                    for place, value in zip(places, values, strict=True):
                        fields[place] = value
                    nul = next((name for name, value in zip(columns, values, strict=True) if "\0" in value), "")
                    sentence = f"{nul!r} holds a NUL, so this is hardly text"
                    yield Fault(f"{nul!r} is not text", sentence, file, number) if nul else Record(fields, number)
        except (pyarrow.ArrowException, OSError, UnicodeError) as error:
            raise _describe_damage(error, file) from None


def _open(file: str) -> IO[bytes]:
    path = check_file(file)
    return _unpack(path, file) if path.suffix.lower() == ".gz" else path.open("rb")


def _unpack(path: Path, file: str) -> IO[bytes]:
    """The content of a compressed file on the disk: its end is read first."""
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        with gzip.open(path) as packed:
            shutil.copyfileobj(packed, unpacked)
    except (OSError, EOFError, zlib.error) as error:
        unpacked.close()
        raise DataError(f"the file's name ends in .gz, but it cannot be unpacked ({error})", file) from None
    return unpacked


def _open_parquet(content: IO[bytes], file: str) -> "pyarrow.parquet.ParquetFile":
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    try:
        return ParquetFile(content)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        raise _describe_damage(error, file) from None


def _describe_damage(error: Exception, file: str) -> DataError:
    [reason, *_] = str(error).splitlines() or ["it is damaged"]
    return DataError(f"the file cannot be read as Parquet ({reason[:200]})", file)


def _format_column(batch: "pyarrow.RecordBatch", name: str, file: str) -> list[str]:
    """A column as texts: as it stands, or as Arrow writes it (true, 1.5, 2013-01-31)."""
    import pyarrow
    from pyarrow import types

    column = batch.column(name)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_plain(column.type):
        raise DataError(f"the column {name!r} is {column.type}, but texts or numbers were expected", file)
    return ["" if value is None else value for value in column.cast(pyarrow.large_string()).to_pylist()]


def _is_plain(kind: "pyarrow.DataType") -> bool:
    """Whether values of this type can be written as texts."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return not (types.is_nested(kind) or binary)
