"""Parquet files to rows of texts, a batch at a time: what `readers` does for csv, with a row's number for its line.

Texts, numbers, truth values, dates and times become text; a column of lists, structures or bytes is refused. Needs
pyarrow.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from seqloom.data.formats.lines import Fault, check_file
from seqloom.data.formats.tables import ESCAPED, Reading, Row, Skipped, kept, place_of, stripped
from seqloom.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

BATCH = 4096  # rows in memory at once


def read_parquet(file: str, reading: Reading, skipped: Skipped) -> Iterator[Row]:
    """The rows of a file, with the columns that `reading` asks for."""
    rows = _rows(file, reading)
    found = (stripped(row, reading) if isinstance(row, Row) else row for row in rows)
    return kept(found, file, reading.skip, skipped)


def _rows(file: str, reading: Reading) -> Iterator[Row | Fault]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    path = check_file(file)
    try:
        with ParquetFile(path) as table:
            names = _names(table, reading.columns, file)
            number = 0
            for batch in table.iter_batches(BATCH, columns=names):
                for values in zip(*(_texts(batch, name, file) for name in names), strict=True):
                    number += 1
                    yield _row(values, reading, file, number)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        [reason, *_] = str(error).splitlines() or ["it is damaged"]
        raise DataError(f"the file cannot be read as Parquet ({reason[:200]})", file) from None


def _names(table: "ParquetFile", columns: tuple[str, ...], file: str) -> list[str]:
    """The names of the asked columns, which may be given by number."""
    schema = table.schema_arrow
    names = [schema.names[place_of(name, list(schema.names), file, None)] for name in columns]
    for name in names:
        if schema.names.count(name) > 1:
            raise DataError(f"the file has the column {name!r} more than once", file)
    return names


def _texts(batch: "pyarrow.RecordBatch", name: str, file: str) -> list[str | None]:
    """A column as texts: as it stands, or as Arrow writes it (true, 1.5, 2013-01-31)."""
    import pyarrow
    from pyarrow import types

    column = batch.column(name)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if (
        types.is_nested(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    ):
        raise DataError(f"the column {name!r} is {kind}, but texts or numbers were expected", file)
    return column.cast(pyarrow.large_string()).to_pylist()


def _row(values: tuple[str | None, ...], reading: Reading, file: str, number: int) -> Row | Fault:
    texts: list[str] = []
    for name, value in zip(reading.columns, values, strict=True):
        if value is None and name in reading.blank:
            value = ""
        if value is None:
            return Fault(f"{name!r} is null", f"{name!r} is null, but a text was expected", file, number)
        if ESCAPED.search(value):
            return Fault(f"{name!r} is not text", f"{name!r} holds a NUL, so this is hardly text", file, number)
        texts.append(value)
    return Row(tuple(texts), file, number)
