"""Set this folder up in .venv, as `make` does: the pinned packages as wheels, then seqloom itself, editable.

    python3 tools/install.py samples,look

Needs nothing but Python's standard library. One line a stage; what pip says goes to .venv/install.log.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV, LOG = ROOT / ".venv", ROOT / ".venv" / "install.log"
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
# Wheels only: what has to be built first may work here, by grace of a cache or a compiler, and fail elsewhere.
# pip compiles on one core, which takes as long as all the rest of its work: it is done below, on all of them.
INSTALL = [*PIP, "install", "--constraint", "constraints.txt", "--only-binary", ":all:", "--no-compile"]
COMPILE = "import compileall, sysconfig; compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0)"


def main(extras: str) -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 (an older Python is just what is looked for)
        fail(
            f"seqloom needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}",
            "make PYTHON=python3.11",
        )
    began = time.monotonic()
    if not (VENV / "bin" / "pip").exists():  # the last file that making one writes
        run_stage("an environment of its own (.venv)", [sys.executable, "-m", "venv", "--clear", str(VENV)])
    # torch comes first and alone: constraints.txt says why. hatchling builds seqloom below, without isolation, so that
    # the pinned version does it and not whatever is newest today.
    run_stage("PyTorch for the processor (some 200 MB)", [*INSTALL, "torch", "hatchling"])
    run_stage(f"seqloom and what it needs ({extras})", [*INSTALL, "--no-build-isolation", "--editable", f".[{extras}]"])
    run_stage("compiling their code", [str(VENV / "bin" / "python"), "-c", COMPILE])
    run_stage("checking that the packages fit together", [*PIP, "check"])
    count = sum(1 for _ in (VENV / "lib").glob("python*/site-packages/*.dist-info"))
    print(f"Set up in {format_duration(time.monotonic() - began)}: {count} packages in {VENV}", flush=True)


def run_stage(title: str, command: list[str]) -> None:
    print(f"  {title} …", end=" ", flush=True)
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if VENV.is_dir():
        with LOG.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    if done.returncode:
        print("failed", flush=True)
        lines = [line for line in done.stdout.splitlines() if not line.startswith("WARNING")]
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        fail("\n       ".join([f"{title}: this did not work", *errors[-5:]]), suggest_remedy(done.stdout))
    print(format_duration(time.monotonic() - began), flush=True)


def suggest_remedy(said: str) -> str:
    if "ensurepip" in said:
        return "install the package that holds Python's venv module (on Debian: apt-get install python3-venv)"
    if any(word in said for word in ("Connection", "Temporary failure", "timed out", "Retry", "SSLError")):
        return (
            "check the network, or set https_proxy or PIP_INDEX_URL if you need one, then type the same command again"
        )
    if "No space left" in said:
        return "free about 2 GB, then type the same command again"
    if "ResolutionImpossible" in said or "No matching distribution" in said:
        return "a pinned package has no wheel for this Python on this machine: make PYTHON=python3.11, or another index"
    return "rm -rf .venv, then type the same command again; if it fails in the same place, report the log"


def fail(what: str, todo: str) -> None:
    where = f"\nlog:   {LOG}" if LOG.exists() else ""
    raise SystemExit(f"error: {what}\ntry:   {todo}{where}")


def format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


if __name__ == "__main__":
    main(*sys.argv[1:])
