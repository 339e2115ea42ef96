"""Finds the library of native kernels: in the package, where its build has put one, or in the user's cache, built there
once. Where neither can be, everything runs on PyTorch's own operations, and `status` says why.
"""

import ctypes
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from . import build

VARIABLE = "SEQLOOM_NATIVE"  # 0 turns native kernels off; the name of a level takes that one
_wanted: ContextVar[bool] = ContextVar("wanted", default=True)
_loading = Lock()
_status: "Status | None" = None


@dataclass(frozen=True)
class Status:
    """Which kernels are active, and why no others."""

    library: ctypes.CDLL | None
    level: str  # of the processor, as `build.LEVELS` has them
    reason: str  # where the library is from; without one, why there is none

    def __str__(self) -> str:
        return f"native kernels for {self.level}" if self.library is not None else f"plain kernels: {self.reason}"


@contextmanager
def use_native(enabled: bool) -> Iterator[None]:
    """Inside of this, and in this thread alone, kernels are native where they can be, or plain."""
    before = _wanted.set(enabled)
    try:
        yield
    finally:
        _wanted.reset(before)


def is_enabled() -> bool:
    """Whether native kernels are to be used here, and can be."""
    return _wanted.get() and status().library is not None


def status() -> Status:
    """Found out once a process, when it is first asked for."""
    global _status
    if _status is None:
        with _loading:  # the second of two threads waits for what the first one finds
            _status = _status or find_library()
    return _status


def find_library() -> Status:
    variable = os.environ.get(VARIABLE, "")
    level = build.choose_level(variable)
    if variable == "0":
        return Status(None, level, f"{VARIABLE}=0 turns native kernels off")
    try:
        path, origin = locate(level)
        library = ctypes.CDLL(str(path))
        check_symbols(library, level)
    except build.BuildError as error:
        return Status(None, level, str(error))
    except OSError as error:
        return Status(None, level, f"the library cannot be loaded ({error})")
    os.register_at_fork(after_in_child=lambda: use_one_thread(library, level))
    return Status(library, level, origin)


def locate(level: str) -> tuple[Path, str]:
    """The file of the library, and in words where it is from."""
    prebuilt = Path(__file__).parent / build.name_library()
    if prebuilt.is_file():
        return prebuilt, "part of the installed package"
    folder = cache_folder()
    key = f"{build.machine()}-{level}-{build.source_key()}-{build.compiler_key(build.find_compiler())}"
    try:
        make_private_folder(folder)
        return find_intact(folder, key) or add_to_cache(folder, key, level), f"built once into {folder}"
    except OSError as error:
        raise build.BuildError(f"{folder} cannot hold the library ({error.strerror or error})") from None


def cache_folder() -> Path:
    """In SEQLOOM_CACHE, or in `seqloom` in the user's folder of caches."""
    if own := os.environ.get("SEQLOOM_CACHE"):
        return Path(own, "native")
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "seqloom", "native")


def make_private_folder(folder: Path) -> None:
    """Code is loaded from this folder: nobody but the user may write into it, nor rename what leads to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise build.BuildError(f"{folder} is not a folder of this user")
    if info.st_mode & 0o022:
        raise build.BuildError(f"{folder} can be written into by others")


def find_intact(folder: Path, key: str) -> Path | None:
    """The library of that key, if it is the user's own and still what its name says: the name ends in its hash."""
    for path in sorted(folder.glob(f"{key}-*.so")):
        with suppress(OSError):
            info = path.lstat()
            own = stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o022
            if own and path.name == f"{key}-{hash_of(path)}.so":
                return path
    return None


def add_to_cache(folder: Path, key: str, level: str) -> Path:
    """Build the library and give it its name in one move: of two processes, one's work is replaced by the other's."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as own:
        library = Path(own, "library.so")
        build.build(library, [level])
        path = folder / f"{key}-{hash_of(library)}.so"
        os.replace(library, path)
        return path


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_symbols(library: ctypes.CDLL, level: str) -> None:
    if not hasattr(library, f"{level}_panel_float"):
        raise build.BuildError(f"the library has no kernels for {level}")


def use_one_thread(library: ctypes.CDLL, level: str) -> None:
    """A forked child has lost the threads of its parent, and OpenMP's would wait for them forever."""
    for real in ("float", "double"):
        getattr(library, f"{level}_use_one_thread_{real}")()
