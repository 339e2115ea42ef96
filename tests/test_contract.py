"""The table of capabilities is the one its data gives, and what it names is there."""

import ast
import importlib
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import typer

from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.look.views import VIEWS
from seqloom.runs.studies import STUDIES
from tools import contract

ROOT = Path(__file__).resolve().parent.parent
GROUPS, ENTRIES = contract.read_entries()
COMMANDS = typer.main.get_command(build_app()).commands
OWN = re.compile("[A-Z]+")  # what stands for a person's own
LAST = {
    "S": 5,
    "D": 12,
    "C": 13,
    "L": 5,
    "A": 9,
    "T": 9,
    "Q": 4,
    "G": 9,
    "R": 9,
    "E": 7,
    "P": 7,
    "V": 17,
    "U": 5,
    "X": 15,
}


def check_command(line: str) -> None:
    """A command line whose command, options, view, study, recipe and settings exist."""
    _, name, *words = shlex.split(line)
    command = COMMANDS[name]
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    unknown = [word for word in words if word.startswith("--") and word not in options]
    assert not unknown, f"{line}: {name} has no {unknown}"
    if "--view" in words:
        assert words[words.index("--view") + 1] in VIEWS, line
    if name == "study":
        assert words[0] in STUDIES, line
    if name in ("train", "tune", "compare", "data", "config") and not OWN.fullmatch(words[0]):
        settings = [word for word in words[1:] if "=" in word and not OWN.fullmatch(word.partition("=")[2])]
        own = [word.partition("=")[0] for word in words[1:] if OWN.fullmatch(word.partition("=")[2])]
        recipe = Recipe.read(words[0], *settings)
        for setting in own:
            section, _, key = setting.partition(".")
            assert key == "from" or hasattr(getattr(recipe, section), key), line


def check_python(name: str) -> None:
    """A dotted name whose module can be imported and has it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return
    raise AssertionError(f"{name} is not there")


@cache
def names_of(file: str) -> set[str]:
    """The test functions of a file."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def check_test(named: str) -> None:
    file, _, function = named.partition("::")
    assert (ROOT / file).is_file(), named
    assert names_of(file) and (not function or function in names_of(file)), named


def test_every_capability_has_its_line_and_no_other():
    expected = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
    assert sorted(ENTRIES) == sorted(expected) and list(GROUPS) == list(LAST)
    for name, entry in ENTRIES.items():
        assert set(entry) <= {"what", "use", "tests", "open"} and entry["what"], name
        assert ("open" in entry) or (entry["use"] and entry["tests"]), f"{name} says neither how nor what is missing"


def test_the_page_is_the_one_that_its_data_gives():
    page = (ROOT / "docs" / "contract.md").read_text("utf-8")
    assert page == contract.write_page(GROUPS, ENTRIES), "python tools/contract.py writes it anew"


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_named_is_there(name):
    for use in ENTRIES[name]["use"]:
        check_command(use) if use.startswith("seqloom ") else check_python(use)
    for test in ENTRIES[name]["tests"]:
        check_test(test)


@pytest.mark.parametrize(
    ("check", "named"),
    [
        (check_command, "seqloom fly RUN"),
        (check_command, "seqloom look RUN --view nothing"),
        (check_command, "seqloom predict RUN --wings 2"),
        (check_command, "seqloom train seq2seq model.wings=2"),
        (check_command, "seqloom train nothing"),
        (check_command, "seqloom study nothing"),
        (check_python, "seqloom.fly"),
        (check_test, "tests/test_nothing.py"),
        (check_test, "tests/test_contract.py::test_nothing"),
    ],
)
def test_what_is_not_there_is_noticed(check, named):
    with pytest.raises((AssertionError, KeyError, AttributeError, RecipeError)):
        check(named)
