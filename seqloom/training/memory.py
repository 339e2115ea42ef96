"""Memory that stays with the process from step to step, instead of going back to the system and coming again."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Of glibc's <malloc.h>: from how much free memory at the end some is given back, from which size on blocks are mapped,
# and how many of them.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
NEVER = 2**31 - 1
# What glibc arrives at by itself once large blocks were freed; it no longer adapts after any of them has been set.
USUAL = {TRIM_THRESHOLD: 64 << 20, MMAP_THRESHOLD: 32 << 20, MMAP_MAX: 65536}


@contextmanager
def keep_memory() -> Iterator[None]:
    """While this lasts, what is freed is kept for what is needed next. Otherwise a large tensor is mapped anew each
    time, and the system clears every page of it: a seventh of a training step of an LSTM with 25,600 words in a batch.
    Nothing changes where the C library is not glibc."""
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(library, "gnu_get_libc_version"):
        yield
        return
    library.mallopt(TRIM_THRESHOLD, NEVER)
    library.mallopt(MMAP_MAX, 0)
    try:
        yield
    finally:
        for setting, value in USUAL.items():
            library.mallopt(setting, value)
        library.malloc_trim(0)
