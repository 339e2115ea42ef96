"""What this machine has, as far as it decides how fast seqloom is: versions, threads, kernels, memory, disk."""

import math
import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ..data.cache import find_cache_folder
from ..layers.fast.native import library
from ..training.cores import read_quotas

PACKAGES = ("seqloom", "torch", "numpy", "tokenizers", "safetensors", "pydantic")
CGROUP = Path("/sys/fs/cgroup")
Facts = dict[str, Any]


def describe_machine() -> Facts:
    """Facts by subject, as `doctor --machine --json` prints them; what the system does not tell is None."""
    kernels, quota = library.status(), min(read_quotas())
    return {
        "versions": {"python": platform.python_version()} | {name: find_version(name) for name in PACKAGES},
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor_quota": None if quota == math.inf else quota,
        "threads": {"torch": torch.get_num_threads(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")},
        "kernels": {
            "native": kernels.library is not None,
            "level": kernels.level,
            "reason": kernels.reason,
            "torch": torch.backends.cpu.get_cpu_capability(),
            "mkldnn": torch.backends.mkldnn.is_available(),
        },
        "devices": ["cpu", *["cuda"] * torch.cuda.is_available(), *["mps"] * torch.backends.mps.is_available()],
        "memory": {
            "total": read_memory("MemTotal"),
            "available": read_memory("MemAvailable"),
            "limit": read_memory_limit(),
        },
        "disk": {
            name: measure_free_space(path) for name, path in (("here", Path.cwd()), ("cache", find_cache_folder()))
        },
    }


def format_machine(facts: Facts) -> list[str]:
    """The facts for a person, a line each."""
    kernels, memory, threads = facts["kernels"], facts["memory"], facts["threads"]
    quota = facts["processor_quota"]
    limit = "no quota" if quota is None else f"quota {quota:g}"
    variable = threads["OMP_NUM_THREADS"]
    lines = {
        "versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version),
        "system": facts["system"],
        "processors": f"{facts['processors']} ({limit})",
        "threads": f"{threads['torch']}" + (f" (OMP_NUM_THREADS={variable})" if variable else ""),
        "kernels": (f"native, {kernels['level']}: " if kernels["native"] else "plain: ") + kernels["reason"],
        "torch": f"{kernels['torch']}, oneDNN {'yes' if kernels['mkldnn'] else 'no'}; {', '.join(facts['devices'])}",
        "memory": f"{format_bytes(memory['available'])} of {format_bytes(memory['total'])} available"
        + ("" if memory["limit"] is None else f", limit {format_bytes(memory['limit'])}"),
        "disk": ", ".join(f"{format_bytes(free)} free {place}" for place, free in list_disks(facts["disk"])),
    }
    return [f"{name:<11}{line}" for name, line in lines.items()]


def list_disks(disk: Facts) -> list[tuple[str, int | None]]:
    return [("here" if name == "here" else "for the cache", free) for name, free in disk.items()]


def find_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def format_bytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 1e9:,.1f} GB"


def read_first(*paths: Path) -> str | None:
    """The text of the first file that is there."""
    for path in paths:
        try:
            return path.read_text("ascii").strip()
        except (OSError, UnicodeError):
            continue
    return None


def read_memory_limit(root: Path = CGROUP) -> int | None:
    """Bytes that the control group may use."""
    limit = read_first(root / "memory.max", root / "memory" / "memory.limit_in_bytes")
    # Version 1 writes "no limit" as a number beyond all memory.
    return int(limit) if limit is not None and limit.isdigit() and int(limit) < sys.maxsize // 2 else None


def read_memory(name: str) -> int | None:
    for line in (read_first(Path("/proc/meminfo")) or "").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def measure_free_space(folder: Path) -> int | None:
    """Bytes free where the folder is, or would be."""
    for path in (folder, *folder.absolute().parents):
        try:
            return shutil.disk_usage(path).free
        except OSError:
            continue
    return None
