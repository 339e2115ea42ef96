"""Setting up: what it says when it cannot, and that every package it asks for is pinned."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What of the project setting it up needs."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/install.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def install(clone: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/install.py", "samples"],
        cwd=clone,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def test_without_a_network_it_says_what_to_do(clone):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    answer = install(clone, **nowhere, PIP_EXTRA_INDEX_URL="", PIP_RETRIES="1", NO_PROXY="127.0.0.1")
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert re.search(r"^error: PyTorch", answer.stderr, re.MULTILINE)
    assert re.search(r"^try:   check the network", answer.stderr, re.MULTILINE)
    assert (clone / ".venv" / "install.log").exists()


def test_a_package_without_a_wheel_is_refused(clone):
    """Building would need whatever its author had at hand; a cache of ours once hid that."""
    source = clone / "packages" / "torch-2.13.0.tar.gz"
    source.parent.mkdir()
    source.write_bytes(b"")
    only_source = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(source.parent), "PIP_CONFIG_FILE": os.devnull}
    answer = install(clone, **only_source)
    assert answer.returncode == 1
    assert re.search(r"^try:   a pinned package has no wheel", answer.stderr, re.MULTILINE)


def test_every_package_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.match(r"[\w.-]+", one).group().lower() for one in asked} - {"seqloom"}
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert names <= pinned


def test_every_pin_takes_the_first_python_3_11():
    """Debian's Python is 3.11.2; a package that wants 3.11.5 would stop the set-up there."""
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    wanted = {name: metadata(name).get("Requires-Python") for name in pinned if is_installed(name)}
    assert len(wanted) > 80
    assert [name for name, need in wanted.items() if need and not SpecifierSet(need).contains("3.11.0")] == []


def is_installed(name: str) -> bool:
    try:
        return bool(metadata(name))
    except PackageNotFoundError:  # a platform's own, such as colorama on Windows
        return False
