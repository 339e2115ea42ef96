"""Flat arrays in `.npy` files that grow row by row and are mapped into memory afterwards, and the cache folder they
lie in.

An entry of the cache is a folder that is complete or not there: it is written under another name and renamed. Whoever
writes holds a lock on that folder, so that what a crash has left can be told from another process's work and swept
away. Safe to delete at any time; on POSIX what is mapped stays readable. Knows nothing of what the arrays mean.
"""

import fcntl
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Rows, compute_offsets
from seqloom.errors import DataError

BUILDING = "seqloom-building-"
INDEX = "index.json"
HEADER = 128  # bytes in front of the elements


class FlatWriter:
    """Rows of unequal length, appended to `NAME.npy`, with `NAME-offsets.npy` written at the end.

    Appended pieces are large, so the file is opened for each: nothing is left open when something goes wrong between.
    """

    def __init__(self, folder: Path, name: str, dtype: np.dtype[Any], shape: tuple[int, ...] = ()) -> None:
        self._path = folder / f"{name}.npy"
        self._offsets = folder / f"{name}-offsets.npy"
        self._dtype, self._shape = dtype, shape  # of one element
        self._lengths: list[Rows] = [np.empty(0, dtype=np.int64)]
        self._starts: list[NDArray[np.bool_]] = [np.empty(0, dtype=np.bool_)]
        self._total = 0
        self._path.write_bytes(bytes(HEADER))

    def append(self, values: NDArray[Any], lengths: Rows, starts: NDArray[np.bool_] | None = None) -> None:
        """Rows; where `starts` is false, what is given goes on with the row before it."""
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._lengths.append(lengths)
        self._starts.append(np.ones(len(lengths), dtype=np.bool_) if starts is None else starts)
        self._total += len(values)

    @property
    def offsets(self) -> Rows:
        """Where each row begins, and where the last one ends."""
        return compute_offsets(np.concatenate(self._lengths))[np.append(np.concatenate(self._starts), True)]

    def finish(self) -> None:
        """Put the length, known only now, into the header."""
        fields = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._total, *self._shape)}
        text = repr(fields).encode("ascii").ljust(HEADER - 11) + b"\n"
        with self._path.open("r+b") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        np.save(self._offsets, self.offsets)


def open_flat(folder: Path, name: str) -> tuple[NDArray[Any], Rows]:
    """What a FlatWriter has written, mapped; ValueError or OSError if it is damaged."""
    values, offsets = (
        np.asarray(np.load(folder / f"{part}.npy", mmap_mode="r", allow_pickle=False))
        for part in (name, f"{name}-offsets")
    )
    if not values.ndim or offsets.ndim != 1 or offsets.dtype != np.int64:
        raise ValueError(f"{name} is not a flat array with offsets")
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(values):
        raise ValueError(f"the offsets of {name} do not belong to it")
    return values, offsets


def release(*arrays: NDArray[Any]) -> None:
    """Let go of what was read of arrays that are mapped: the file has it still, and the memory is free."""
    for array in arrays:
        base: Any = array
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "_mmap", None) or getattr(base, "base", None)
        if base is not None:
            base.madvise(mmap.MADV_DONTNEED)


def find_cache_folder() -> Path:
    """Where prepared data is kept: SEQLOOM_CACHE, or `seqloom` in the user's folder of caches."""
    if own := os.environ.get("SEQLOOM_CACHE"):
        return Path(own)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(caches) / "seqloom"


def read_index(entry: Path) -> dict[str, Any] | None:
    """The index of an entry, or None if the entry is not there, or any of its files has another size than it says."""
    try:
        index = json.loads((entry / INDEX).read_bytes())
        sizes = index["sizes"].items()
        whole = all((entry / name).stat().st_size == size for name, size in sizes)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return index if whole else None


def write_index(folder: Path, index: dict[str, Any]) -> None:
    """Complete an entry, and have it on the disk before anything says that it is complete."""
    files = sorted(path for path in folder.iterdir() if path.suffix == ".npy")
    sizes = {path.name: path.stat().st_size for path in files}
    (folder / INDEX).write_text(json.dumps(index | {"sizes": sizes}, ensure_ascii=False), encoding="utf-8")
    for path in (*files, folder / INDEX, folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def discard(entry: Path) -> None:
    """Remove an entry that is damaged; one that has gone, or may not be removed, is left alone."""
    with suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=BUILDING, dir=entry.parent))
        with suppress(FileNotFoundError):
            os.rename(entry, aside / entry.name)  # at once, so that nobody finds half of it
        shutil.rmtree(aside)


@contextmanager
def open_entry(entry: Path) -> Iterator[Path]:
    """A folder to write an entry into; at the end it takes its name, unless another process was faster.

    Where the cache cannot be written, the folder is a temporary one, which is gone at the end.
    """
    cache = entry.parent
    where = cache if _is_writable(cache) else Path(tempfile.gettempdir())
    sweep(where)
    folder, lock = _claim(where)
    try:
        yield folder
        if where == cache:
            _publish(folder, entry)
    except BrokenPipeError:  # whoever was told of the progress has gone: not our matter
        raise
    except OSError as error:
        raise DataError(
            f"prepared data cannot be kept in {where} ({error.strerror or error}); SEQLOOM_CACHE names another folder"
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # no longer there if it took its name
        os.close(lock)


def sweep(cache: Path) -> None:
    """Remove what processes that are gone have left unfinished."""
    for folder in cache.glob(f"{BUILDING}*"):
        with suppress(OSError):  # another process works on it, or sweeps it too
            lock = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _is_writable(cache: Path) -> bool:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # some network disks cannot
            return True
    except OSError:
        return False


def _claim(cache: Path) -> tuple[Path, int]:
    """A new folder and the lock on it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=BUILDING, dir=cache))
        with suppress(FileNotFoundError):  # swept away before it was locked
            lock = _lock(folder, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _lock(folder: Path, how: int) -> int:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _publish(folder: Path, entry: Path) -> None:
    try:
        os.rename(folder, entry)
    except OSError:
        if not entry.is_dir():  # it is not that another process was faster
            raise
