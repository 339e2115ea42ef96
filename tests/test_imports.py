"""Imports only go downwards, and the command line starts without what is slow to load."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "seqloom"

# From top to bottom: a part may import itself and what stands on a lower line; parts of one line do not know another.
LEVELS = (
    ("__main__",),
    ("demo",),
    ("cli",),
    ("serve", "pack", "course"),
    ("stopping",),
    ("__init__", "certify"),
    ("runs",),
    ("tasks", "look", "exchange"),
    ("fields", "training", "architectures", "metrics", "baselines"),
    ("models", "search", "data"),
    ("batch",),
    ("layers",),
)
# Known to all but the layers, which are to be usable on their own; here too each knows only what stands below it.
SETTINGS = ("config", "schemas", "arguments", "arrays", "counts", "errors")

SLOW = ("torch", "numpy", "altair", "vl_convert", "sacrebleu", "rapidfuzz", "babel", "tokenizers", "safetensors")

DEPTH = {part: depth for depth, line in enumerate(LEVELS) for part in line}


def part_of(module: str) -> str:
    """The part of the package a module belongs to: seqloom.data.readers → data; seqloom itself → __init__."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def module_of(file: Path) -> str:
    return ".".join(("seqloom", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imported(source: str, module: str, is_package: bool) -> Iterator[str]:
    """Every module of seqloom that the source imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "seqloom")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")
                above = above[: len(above) - node.level + is_package]
                base = ".".join([*above, base]).rstrip(".")
            if base == "seqloom":
                yield from (f"seqloom.{a.name}" if is_part(a.name) else "seqloom" for a in node.names)
            elif base.startswith("seqloom."):
                yield base


def is_part(name: str) -> bool:
    return name in DEPTH or name in SETTINGS


def may_import(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    if (ours, theirs) == ("config", "architectures"):
        return True  # whose settings are part of a recipe
    if ours in SETTINGS:
        return theirs in SETTINGS and SETTINGS.index(ours) < SETTINGS.index(theirs)
    if theirs in SETTINGS:
        return ours != "layers"
    return theirs in DEPTH and DEPTH[ours] < DEPTH[theirs]


def upward_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    ours = part_of(module)
    return [found for found in imported(source, module, is_package) if not may_import(ours, part_of(found))]


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_downwards_only(file):
    module = module_of(file)
    assert is_part(part_of(module)), f"say in LEVELS where {part_of(module)} stands"
    assert upward_imports(file.read_text("utf-8"), module, file.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("seqloom.layers.cells", "from seqloom.errors import SeqloomError"),
        ("seqloom.layers.cells", "from ..models import Batch"),
        ("seqloom.data.readers", "def f():\n    import seqloom.tasks.seq2seq"),
        ("seqloom.data.readers", "from .. import search"),
        ("seqloom.search", "from . import architectures"),
        ("seqloom.training.loop", "from seqloom.runs import load"),
        ("seqloom.runs.run", "from ..cli import main"),
        ("seqloom.schemas", "from .config.recipe import Recipe"),
        ("seqloom.errors", "from .layers import base"),
        ("seqloom.tasks.seq2seq", "from seqloom import load"),
    ],
)
def test_an_import_upwards_is_seen(module, source):
    assert len(upward_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("seqloom.layers.cells", "import torch\nfrom .base import Layer\nfrom seqloom.layers import state"),
        ("seqloom.data.readers", "from ..errors import DataError\nfrom .ragged import Ragged"),
        ("seqloom.tasks.seq2seq", "from .. import architectures, search\nfrom ..config.recipe import Recipe"),
        ("seqloom.demo", "from seqloom import load"),
    ],
)
def test_an_import_downwards_is_allowed(module, source):
    assert upward_imports(source, module) == []


def test_a_package_resolves_its_own_relative_imports():
    assert list(imported("from .base import Layer", "seqloom.layers", is_package=True)) == ["seqloom.layers.base"]
    assert list(imported("from .. import errors", "seqloom.layers", is_package=True)) == ["seqloom.errors"]


@pytest.mark.parametrize("module", ["seqloom", "seqloom.errors", "seqloom.config.recipe", "seqloom.cli.main"])
def test_what_the_command_line_needs_at_once_loads_nothing_slow(module):
    program = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in json.loads(answer.stdout)} & set(SLOW) == set()


def test_help_answers_and_names_every_command():
    answer = subprocess.run([sys.executable, "-m", "seqloom", "--help"], capture_output=True, text=True, check=True)
    for command in ("recipes", "config", "train", "score", "predict"):
        assert command in answer.stdout
