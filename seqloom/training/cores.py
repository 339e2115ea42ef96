"""How many cores this process may use. Imports nothing that is slow."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def count_cores() -> int:
    """The cores that the system lets this process run on, or fewer where a container has a quota of their time."""
    return max(1, math.ceil(min(len(os.sched_getaffinity(0)), *read_quotas())))


def read_quotas(root: Path | None = None, own: Path | None = None) -> Iterator[float]:
    """The quotas, in cores, of this process's control group and of all above it; infinity where there is none."""
    yield math.inf
    try:
        lines = (own or OWN_CGROUP).read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            top = (root or CGROUPS) / controllers
            group = top / path.lstrip("/")
            for folder in (group, *group.parents) if group.is_relative_to(top) else (top,):
                if folder.is_relative_to(top):
                    yield _read_quota(folder)


def _read_quota(folder: Path) -> float:
    """Of one control group, as version 2 says it in one file, or version 1 in two."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((folder / name).read_text("utf-8") for name in names).split()
            return int(quota) / int(period) if int(quota) > 0 else math.inf
        except (OSError, ValueError, ZeroDivisionError):  # not there, or "max"
            continue
    return math.inf
