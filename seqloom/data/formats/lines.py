"""Files to numbered lines of text: compression, encodings, line ends, and what a person got wrong about the file.

A line ends with a line feed; a carriage return before it, and a byte order mark in front of everything, are dropped.
What is wrong with the whole file is raised as DataError; what is wrong with one line is a `Fault` for the reader to
raise or count. Knows nothing of columns.
"""

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple, TextIO

from seqloom.errors import DataError

MAX_LINE = 1 << 25  # characters of a line: more is a file without lines, and would fill the memory
GZIP_MAGIC = b"\x1f\x8b"
# What files begin with that are no text as it is asked for, whatever their names say, and what reads them.
OTHERS = {
    b"\xff\xfe": "the file is written in UTF-16: data.encoding=utf-16 reads it",
    b"\xfe\xff": "the file is written in UTF-16: data.encoding=utf-16 reads it",
    b"PK\x03\x04": "the file is packed as a zip archive, as Excel files are: data.format=xlsx reads those",
    b"\xd0\xcf\x11\xe0": "the file is an Excel file of the old sort: save it as .xlsx or .csv",
    b"PAR1": "the file is a Parquet file: data.format=parquet reads it",
}
BAD_BYTE = 0xDC00  # plus the byte: code points that no decoder gives for good bytes


class Line(NamedTuple):
    number: int  # from 1
    text: str  # without its end


SKIP = "data.on_bad_row=skip leaves such rows out"


@dataclass(frozen=True)
class Fault:
    """What is wrong with one row: the reason it is counted under, and the sentence for a person."""

    reason: str
    sentence: str
    file: str
    line: int = 0  # 0: it is the file as a whole
    remedy: str = ""  # what mends it, said instead of leaving rows out

    def error(self, way_out: str = "") -> DataError:
        way_out = way_out and (self.remedy or way_out)
        return DataError(self.sentence + (f"; {way_out}" if way_out else ""), self.file, self.line or None)

    def place(self, name: str) -> str:
        """Where it is, in a file of this name."""
        return f"{name}, line {self.line}" if self.line else name


def _mark_bad_bytes(error: UnicodeError) -> tuple[str, int]:
    """Let a line with bytes that are no text be read to its end, so that one bad line does not spoil the file."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(chr(BAD_BYTE + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error("seqloom.mark", _mark_bad_bytes)


def read_lines(file: str, encoding: str) -> Iterator[Line]:
    """The lines of a file, one at a time; `find_line_fault` says whether one can be used."""
    with closing(_open(file, encoding)) as text:
        number = 0
        try:
            while line := text.readline(MAX_LINE):
                number += 1
                if number == 1:
                    line = line.removeprefix("\ufeff")
                if len(line) == MAX_LINE and not line.endswith("\n"):
                    _skip_line(text)
                yield Line(number, line.removesuffix("\n").removesuffix("\r"))
        except EOFError:
            raise DataError("the compressed file ends too early: it is incomplete", file, number + 1) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"the file's name ends in .gz, but it cannot be unpacked ({error})", file) from None
        except UnicodeError as error:
            raise DataError(f"the file cannot be read as {encoding} ({error})", file, number + 1) from None
        except OSError as error:
            raise DataError(f"the file cannot be read ({error.strerror or error})", file, number + 1) from None


def find_line_fault(line: Line, file: str, encoding: str) -> Fault | None:
    """What makes this line unusable, whatever its format."""
    number, text = line
    if len(text) >= MAX_LINE - 1:
        return Fault("line too long", f"the line is longer than {MAX_LINE:,} characters", file, number)
    if "\0" in text:
        return Fault("NUL byte", "the line holds a NUL byte, so this is hardly text", file, number)
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            byte = ord(text[error.start]) & 0xFF
            example = "; many files from Windows are data.encoding=cp1252" if encoding == "utf-8" else ""
            sentence = f"byte 0x{byte:02x} is not {encoding}; data.encoding says how the file is written{example}"
            return Fault(f"not {encoding}", sentence, file, number)
    return None


def check_file(file: str) -> Path:
    """The path of a file that is there and can be opened; DataError with the nearest name if it is not."""
    path = Path(os.path.expanduser(file))
    try:
        mode = path.stat().st_mode
        if S_ISDIR(mode):
            raise DataError("this is a folder, but one file was expected", file)
        if not S_ISREG(mode):
            raise DataError("this is not a plain file, and data is read more than once: save it to a file first", file)
        with path.open("rb"):
            return path
    except (FileNotFoundError, NotADirectoryError):
        pattern = "; one file is read here, and no pattern of names" if set("*?[") & set(path.name) else ""
        raise DataError(f"there is no such file{pattern or _suggest_name(path)}", file) from None
    except (OSError, ValueError) as error:  # a name that is too long, or holds what no name can
        reason = error.strerror if isinstance(error, OSError) else None
        raise DataError(f"the file cannot be read ({reason or error})", file) from None


def _suggest_name(path: Path) -> str:
    folder = path.parent
    if not os.path.isdir(folder):
        return f", and no folder {folder}"
    try:
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:  # a folder that may not be listed
        return ""
    close = get_close_matches(path.name, names, 1)
    return f"; the nearest name there is {close[0]}" if close else ""


def _open(file: str, encoding: str) -> TextIO:
    path, packed = _detect_compression(file)
    if encoding == "utf-8":
        begin = read_bytes(file, 4)
        if said := [sentence for magic, sentence in OTHERS.items() if begin.startswith(magic)]:
            raise DataError(said[0], file)
    try:
        if packed:
            return gzip.open(path, "rt", encoding=encoding, errors="seqloom.mark", newline="\n")
        return path.open("rt", encoding=encoding, errors="seqloom.mark", newline="\n")
    except LookupError:
        raise DataError(f"{encoding!r} is not a text encoding; utf-8 and latin-1 are examples", file) from None


def read_bytes(file: str, count: int) -> bytes:
    """The first `count` bytes of a file, unpacked if it is compressed, or all of them if it has fewer."""
    path, packed = _detect_compression(file)
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as raw:
            return raw.read(count)
    except EOFError:
        raise DataError("the compressed file ends too early: it is incomplete", file) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"the file's name ends in .gz, but it cannot be unpacked ({error})", file) from None
    except OSError as error:
        raise DataError(f"the file cannot be read ({error.strerror or error})", file) from None


def _detect_compression(file: str) -> tuple[Path, bool]:
    """The file's path, and whether it is compressed; its name and its content must say the same."""
    path = check_file(file)
    with path.open("rb") as start:
        magic = start.read(len(GZIP_MAGIC))
    packed = path.suffix.lower() == ".gz"
    if packed and magic not in (GZIP_MAGIC, b""):
        raise DataError("the file's name ends in .gz, but its content is not compressed", file)
    if magic == GZIP_MAGIC and not packed:
        raise DataError("the file is compressed with gzip, but its name does not end in .gz", file)
    return path, packed


def _skip_line(text: TextIO) -> None:
    """Read to the end of the line without keeping it."""
    while (rest := text.readline(MAX_LINE)) and not rest.endswith("\n"):
        pass
