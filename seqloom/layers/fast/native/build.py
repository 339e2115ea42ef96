"""Compiles the C sources beside this file into one library. Knows only the standard library: the package's own build
(`hatch_build.py`) loads this file by its path, before anything is installed.

Every level of processor is compiled by itself, under names that begin with the level's, so that one library serves all
processors of its architecture: `choose_level` says at run time which names to call.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ("-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-Wno-psabi")
# What each level of x86-64 asks of the compiler, the best last; other architectures have the baseline alone.
LEVELS = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mprefer-vector-width=512"),
    "vnni": (
        *("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mprefer-vector-width=512"),
        "-mavx512vnni",
    ),
}
# The features in /proc/cpuinfo that a level stands on.
FEATURES = {
    "baseline": set[str](),
    "avx2": {"avx2", "fma"},
    "avx512": {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq"},
    "vnni": {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"},
}


class BuildError(Exception):
    """Why there is no library: one sentence without a full stop."""


def machine() -> str:
    """The architecture of this process, which on 64-bit hardware may be a 32-bit one."""
    name = platform.machine().lower()
    return "x86_64" if name in ("x86_64", "amd64") and sys.maxsize > 2**32 else name


def levels() -> list[str]:
    """Those of this architecture, the best last."""
    return list(LEVELS) if machine() == "x86_64" else ["baseline"]


def choose_level(at_most: str = "") -> str:
    """The best level that this processor and its system have, and no better one than `at_most` if that is one."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return "baseline"
    features = next((set(line.split()) for line in lines if line.startswith("flags")), set[str]())
    known = [level for level in levels() if FEATURES[level] <= features]
    return at_most if at_most in known else known[-1]


def source_files() -> list[Path]:
    return sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])


def source_key() -> str:
    """Changes whenever the sources, or the way they are compiled, do."""
    parts = [b"%s %d " % (path.name.encode(), path.stat().st_size) + path.read_bytes() for path in source_files()]
    return hashlib.sha256(b"\0".join([*parts, Path(__file__).read_bytes()])).hexdigest()[:16]


def name_library() -> str:
    """What the library in a wheel is called: one that was built from other sources has another name."""
    return f"kernels-{machine()}-{source_key()}.so"


def find_compiler() -> list[str]:
    """The C compiler that CC names, or cc, with the arguments that CC has."""
    command = shlex.split(os.environ.get("CC") or "cc") or ["cc"]
    path = shutil.which(command[0])
    if path is None:
        raise BuildError(f"no C compiler {command[0]!r} was found")
    return [os.path.realpath(path), *command[1:]]


def compiler_key(compiler: Sequence[str]) -> str:
    """Changes with the compiler, without asking it for its version: that would cost each start a process."""
    info = os.stat(compiler[0])
    about = [*compiler, str(info.st_size), str(info.st_mtime_ns)]
    return hashlib.sha256("\0".join(about).encode()).hexdigest()[:8]


def build(target: Path, names: Sequence[str]) -> None:
    """Compile the sources for these levels into the file `target`; what is made on the way lies beside it."""
    compiler, folder = find_compiler(), target.parent
    # GCC's threads are those of the OpenMP library that PyTorch has loaded; clang's would need one of their own.
    threads = ["-fopenmp"] if is_gcc(compiler) else []
    jobs = [("fallback", "fallback", list[str]())]
    for level in names:
        for real in ("float", "double"):
            jobs.append(
                ("kernels", f"{level}-{real}", [*LEVELS[level], f"-DLEVEL={level}", f"-DREAL_IS_{real.upper()}"])
            )

    def compile_one(job: tuple[str, str, list[str]]) -> str:
        source, name, options = job
        result = str(folder / f"{name}.o")
        run([*compiler, *FLAGS, *threads, *options, "-c", str(SOURCES / f"{source}.c"), "-o", result])
        return result

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(compile_one, jobs))
    # Without -fopenmp: linked apart from OpenMP's own library.
    run([*compiler, "-shared", *objects, "-o", str(target), "-lm"])
    target.chmod(0o644)


def is_gcc(compiler: Sequence[str]) -> bool:
    done = subprocess.run([*compiler, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, timeout=60)
    return "__GNUC__" in done.stdout and "__clang__" not in done.stdout


def run(command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["it said nothing"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise BuildError(f"the C compiler failed ({first})") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"the C compiler could not be run ({error})") from None
