"""Files that are either whole or not there, and reading that believes nothing.

Writing goes to a temporary name in the same folder, is synced, and then takes the place of the old file, so that a
kill or a power cut at any moment leaves the old content or the new one. Reading refuses in one sentence whatever is
not what it should be, and what is too large before it is read. Links are not followed, by either: a folder from
elsewhere could name any file of this machine. Knows no tensors: see `tensors`.
"""

import errno
import fcntl
import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar

from ..errors import RunError
from ..schemas import JsonShape, check_shape

Shaped = TypeVar("Shaped", bound=JsonShape)

MEGABYTE = 1 << 20
# The most bytes of a file that are read: sizes that a real run does not come near to. JSON takes many times as much
# memory as it has bytes, so it has less; weights have as much as there is memory.
SIZE_LIMITS = {"version": 4096, "recipe.toml": MEGABYTE, "task.json": 64 * MEGABYTE, "records.jsonl": 256 * MEGABYTE}
DEFAULT_SIZE_LIMIT = 16 * MEGABYTE
PARTIAL = ".partial"  # the ending of a file or folder that is still being written
LOCK = ".lock"


@contextmanager
def explain_errors(path: Path, trouble: str) -> Iterator[None]:
    """Say what the system refuses (disk full, read-only, not there) as one sentence about this path."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RunError(f"{path}: is a link, which is not followed: a run folder holds its files itself") from None
        raise RunError(f"{path}: {trouble} ({error.strerror or error})") from error


# --- writing --------------------------------------------------------------------------------------------------


def make_partial_path(path: Path) -> Path:
    """The name under which a file or folder is written until it is whole."""
    return path.with_name(f".{path.name}{PARTIAL}")


def write_synced(path: Path, data: bytes) -> None:
    """A new file, on the disk when this returns; what was there before is removed, a link is not followed."""
    path.unlink(missing_ok=True)
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Bring the names in this folder to the disk: a rename counts only after this."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """The file with this content, or as it was before. One writer at a time: see `lock_folder`."""
    with explain_errors(path, "cannot be written"):
        try:
            write_synced(make_partial_path(path), data)
            os.replace(make_partial_path(path), path)
        except BaseException:  # interrupted, too, it leaves nothing half-written
            remove_quietly(make_partial_path(path))
            raise
        sync_folder(path.parent)


def remove_quietly(path: Path) -> None:
    """Take away a temporary file after a failure, where a second failure would only hide the first."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in this folder. Only for its holder: see `lock_folder`."""
    with explain_errors(folder, "cannot be tidied"):
        for path in folder.glob(f".*{PARTIAL}"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def json_bytes(value: Any) -> bytes:
    """Readable JSON that `read_json` takes back; not a number is the caller's mistake."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


# --- reading --------------------------------------------------------------------------------------------------


def get_size_limit(path: Path) -> int:
    """The most bytes that a file of this name may have."""
    if path.suffix == ".safetensors":
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return SIZE_LIMITS.get(path.name, DEFAULT_SIZE_LIMIT)


@contextmanager
def open_limited(path: Path, most: int | None = None) -> Iterator[BufferedReader]:
    """A file to be read, of which nothing has been read yet and which has at most so many bytes."""
    with explain_errors(path, "cannot be read"):
        # Not waiting: a pipe would block for ever, before it could be seen that it is one.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status, most = os.fstat(descriptor), get_size_limit(path) if most is None else most
            if not S_ISREG(status.st_mode):
                raise RunError(f"{path}: is not a regular file")
            if status.st_size > most:
                raise RunError(f"{path}: has {status.st_size:,} bytes, but such a file has at most {most:,}")
            yield file


def check_folder(path: Path) -> None:
    """Refuse a link in the place of a folder within a run: what is written there would be written elsewhere."""
    if path.is_symlink():
        raise RunError(f"{path}: is a link, which is not followed: a run folder holds its files itself")


def read_bytes(path: Path, most: int | None = None) -> bytes:
    with open_limited(path, most) as file:
        return file.read()


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return parse_json(read_bytes(path), str(path))


def read_shaped(shape: type[Shaped], path: Path) -> Shaped:
    """The object in a JSON file, which is of this shape."""
    return check_shape(shape, read_json(path), str(path))


def parse_json(data: bytes, place: str) -> dict[str, Any]:
    """One JSON object without duplicate keys, numbers that are none, half characters or endless nesting."""
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_refuse_repeated, parse_constant=_refuse_constant, parse_float=_finite_number
        )
        if "\\ud" in text.lower():  # an escape may smuggle in half a surrogate pair, which nothing can print
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise RunError(f"{place}: is not UTF-8 text") from None
    except RecursionError:
        raise RunError(f"{place}: is nested too deeply") from None
    except ValueError as error:
        raise RunError(f"{place}: is not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise RunError(f"{place}: holds a JSON {type(value).__name__}, an object was expected")
    return value


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r:.80} stands there twice")
        result[key] = value
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.80} is too large a number")
    return number


def sha256(path: Path) -> str:
    """The SHA-256 sum of a file, in hexadecimal."""
    with open_limited(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- one at a time --------------------------------------------------------------------------------------------


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold this folder alone. The system lets go when the process ends, however it ends; the empty file stays."""
    with explain_errors(folder, "cannot be written"):
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{folder}: another process is training into this folder, wait until it ends") from None
        except OSError as error:
            raise RunError(f"{folder}: cannot be locked ({error.strerror or error})") from error
        yield
    finally:
        os.close(descriptor)
