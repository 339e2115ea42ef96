"""Sheets of Excel files as tables of texts: the first one, or FILE.xlsx#SHEET. Needs openpyxl."""

import datetime
import zipfile
from collections.abc import Iterator
from typing import Any

from seqloom.data.formats.delimited import Record
from seqloom.data.formats.lines import check_file
from seqloom.errors import DataError, MissingExtra

MOST_BYTES = 1 << 31  # of all that is packed in the file: more is a trap for the memory


def read_xlsx(name: str, notes: list[str]) -> Iterator[Record]:
    """The rows of a sheet, each with as many cells as the first; empty rows are passed over."""
    file, _, sheet_name = name.partition("#")
    book = _open(file)
    try:
        if sheet_name and sheet_name not in book.sheetnames:
            raise DataError(f"there is no sheet {sheet_name!r}; there are {', '.join(book.sheetnames)}", file)
        if not sheet_name and len(book.sheetnames) > 1:
            others = ", ".join(book.sheetnames[1:])
            notes.append(f"{file}: the sheet {book.sheetnames[0]} was read, not {others} (FILE.xlsx#SHEET)")
        width = 0
        for number, cells in enumerate(book[sheet_name or book.sheetnames[0]].iter_rows(values_only=True), 1):
            texts = [format_cell(cell) for cell in cells]
            if any(texts):
                width = width or _count_filled(texts)
                yield Record(texts[: max(width, _count_filled(texts))] + [""] * (width - len(texts)), number)
    finally:
        book.close()


def _open(file: str) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtra("openpyxl", "excel") from None
    path = check_file(file)
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > MOST_BYTES:
                raise DataError(f"the file unpacks to more than {MOST_BYTES:,} bytes", file)
        return load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except DataError:
        raise
    except Exception as error:  # a damaged file raises nearly anything: KeyError, BadZipFile, ParseError …
        [reason, *_] = str(error).splitlines() or ["it is damaged"]
        raise DataError(f"the file cannot be read as an Excel file ({reason[:100]})", file) from None


def _count_filled(texts: list[str]) -> int:
    """How many cells there are up to the last that holds something."""
    return max((place for place, text in enumerate(texts, 1) if text), default=0)


def format_cell(value: object) -> str:
    """A cell as text: whole numbers without a point, times in ISO 8601, nothing for an empty one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ") if value.time() != datetime.time() else value.date().isoformat()
    return str(value)
