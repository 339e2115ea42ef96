"""Faults at the k-th call into the file system: a kill, after which nothing more happens, or a refusal."""

import builtins
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seqloom.training import files

CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir")


class Killed(BaseException):
    """What no handler expects, as a kill."""


class Faults:
    """Lets `allowed` calls pass; the next one raises and, if the fault lasts, all after it."""

    def __init__(self, allowed: int, fault: BaseException, lasting: bool) -> None:
        self.allowed, self.fault, self.lasting, self.count = allowed, fault, lasting, 0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def perhaps(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == self.allowed + 1 or (self.lasting and self.count > self.allowed):
                raise self.fault
            return call(*arguments, **options)

        return perhaps


def at_every_call(
    prepare: Callable[[], Callable[[], None]], fault: BaseException, lasting: bool = True
) -> Iterator[BaseException | None]:
    """Prepare the disk, act, and yield the error that came out, or none; again with the fault one call later.

    The last round is the one in which the fault came too late to be met.
    """
    for allowed in range(10_000):
        act = prepare()
        came: BaseException | None = None
        faults = Faults(allowed, fault, lasting)
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, faults.around(getattr(os, name)))
            patch.setattr(files, "open", faults.around(builtins.open), raising=False)
            try:
                act()
            except BaseException as error:
                came = error
        yield came
        if faults.count <= allowed:
            assert came is None
            return


def events(act: Callable[[], None]) -> list[tuple[str, str]]:
    """What is synced (by name), renamed (by the new name) and removed, in this order."""
    seen: list[tuple[str, str]] = []
    fsync, replace, unlink, rmdir = os.fsync, os.replace, os.unlink, os.rmdir

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        seen.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))

    def renamed(old: Any, new: Any) -> None:
        replace(old, new)
        seen.append(("rename", Path(new).name))

    def removed(call: Callable[..., None]) -> Callable[..., None]:
        def remove(path: Any, **options: Any) -> None:
            call(path, **options)
            seen.append(("remove", Path(path).name))

        return remove

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "replace", renamed)
        patch.setattr(os, "unlink", removed(unlink))
        patch.setattr(os, "rmdir", removed(rmdir))
        act()
    return seen
