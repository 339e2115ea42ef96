"""Every command and every code block of the README and of the documentation, as a reader would run them.

The blocks of a page run in order in one copy of the project, so that what one trains the next can use. A fence says
what is done with a block: `console` runs the lines after "$ " (further lines of a command end in a backslash before
them or begin with "> "), `bash` and `python` run whole, the kinds in `SHOWN` are only shown. Samples have fewer
examples than a reader's, trainings smaller batches and fewer validations. Output is not compared, but for one thing:
where a page shows "error: …", the command must fail with exit code 2 and say exactly that.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from . import preloaded

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "docs" / "course"  # `tests/test_course.py` runs its lessons, in one process and with few steps
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in WRITTEN if page.parent != COURSE]
SHOWN = ("text", "toml", "json", "make")

# Not run, and why. Any other `make` line is tried with --dry-run: that its target exists is what can be said here.
SKIPPED = {
    "git clone": "the project is already here",
    "pip install": "the package is already installed",
}
MADE = {
    ".git",
    ".venv",
    "site",
    "dist",
    "notebooks",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
}


def not_copied(folder: str, names: list[str]) -> set[str]:
    """What tools and trainings leave behind; `seqloom/runs` is no such thing."""
    return MADE & set(names) | ({"runs"} & set(names) if Path(folder) == ROOT else set())


@dataclass
class Command:
    """Something to run, where it stands, and the error sentences that are shown for it."""

    line: int
    text: str
    language: str = "bash"
    errors: list[str] = field(default_factory=list)


def commands_of(page: str) -> list[Command]:
    found = []
    for line, language, body in fences(page):
        if language == "console":
            found += console_commands(line, body)
        elif language in ("bash", "python"):
            found.append(Command(line, "\n".join(body), language))
        else:
            assert language in SHOWN, f"line {line}: a block must say what it is, not {language!r}"
    return found


def fences(page: str) -> list[tuple[int, str, list[str]]]:
    """Line number, first word of the info string and lines of every fenced block."""
    found: list[tuple[int, str, list[str]]] = []
    inside = None
    for number, line in enumerate(page.splitlines(), 1):
        mark = re.match(r"( *)```(.*)$", line)
        if mark and inside is None:
            inside, words = len(mark[1]), mark[2].split()
            found.append((number, words[0] if words else "", []))
        elif mark:
            inside = None
        elif inside is not None:
            found[-1][2].append(line[inside:])
    assert inside is None, f"line {found[-1][0]}: this block never ends"
    return found


def console_commands(start: int, lines: list[str]) -> list[Command]:
    found: list[Command] = []
    goes_on = False
    for number, line in enumerate(lines, start + 1):
        if line.startswith("$ "):
            found.append(Command(number, line[2:]))
            goes_on = True
        elif goes_on and (line.startswith("> ") or found[-1].text.endswith("\\")):
            found[-1].text += "\n" + line.removeprefix("> ")
        else:
            goes_on = False
            if line.startswith("error: "):
                found[-1].errors.append(line)
    assert found, f"line {start}: a console block without a command"
    return found


def is_skipped(command: Command) -> bool:
    return command.language == "bash" and command.text.startswith(tuple(SKIPPED))


def run(command: Command, folder: Path, seqloom: Path) -> subprocess.CompletedProcess[str]:
    text = re.sub(r"^make\b", "make --dry-run", command.text, flags=re.MULTILINE)
    programs = {"bash": ["bash", "-eu", "-c", text], "python": [seqloom, "-c", command.text]}
    here = os.pathsep.join([str(seqloom.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        programs[command.language],
        cwd=folder,
        env={**os.environ, "PATH": here, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )


def check(command: Command, folder: Path, page: str, seqloom: Path) -> None:
    answer = run(command, folder, seqloom)
    told = f"{page}, line {command.line}: {command.text}\n{answer.stdout}{answer.stderr}"
    assert answer.returncode == (2 if command.errors else 0), told
    for error in command.errors:
        assert error in answer.stderr.splitlines(), told


@pytest.fixture(scope="module")
def seqloom(tmp_path_factory) -> Iterator[Path]:
    with preloaded.start(tmp_path_factory.mktemp("preloaded")) as program:
        yield program


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_code_block_of_the_page_runs(page, tmp_path, seqloom):
    commands = [command for command in commands_of(page.read_text("utf-8")) if not is_skipped(command)]
    folder = shutil.copytree(ROOT, tmp_path / "project", ignore=not_copied, symlinks=True)
    for command in commands:
        check(command, folder, page.name, seqloom)


def test_every_picture_of_the_pages_is_there_and_small_and_every_one_that_is_there_is_shown():
    shown = {
        (page.parent / name).resolve()
        for page in WRITTEN
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    pictures = ROOT / "docs" / "pictures"
    assert shown == {path for path in pictures.rglob("*.*") if path.parent != pictures / "views"} and len(shown) >= 10
    assert all(path.stat().st_size < 150_000 for path in shown)


def test_blocks_are_found_with_their_commands():
    page = "\n".join(
        [
            "```console",
            "$ echo one \\",
            "    two",
            "one two",
            "$ cat <<END",
            "> three",
            "> END",
            "> not a command",
            "```",
            "- indented",
            "  ```python",
            "  if True:",
            "      print(4)",
            "  ```",
            "```text",
            "$ rm everything",
            "```",
            "```bash",
            "cd /",
            "ls",
            "```",
        ]
    )
    assert [(c.line, c.language, c.text) for c in commands_of(page)] == [
        (2, "bash", "echo one \\\n    two"),
        (5, "bash", "cat <<END\nthree\nEND\nnot a command"),
        (11, "python", "if True:\n    print(4)"),
        (18, "bash", "cd /\nls"),
    ]


@pytest.mark.parametrize("page", ["```\nls\n```", "```ruby\nputs 1\n```", "```console\nls\n```", "```bash\nls"])
def test_a_block_nobody_would_run_is_refused(page):
    with pytest.raises(AssertionError):
        commands_of(page)


@pytest.mark.parametrize(
    "page",
    [
        "```console\n$ false\n```",
        "```bash\nfalse\ntrue\n```",
        "```python\nraise SystemExit(1)\n```",
        "```console\n$ make no-such-target\n```",
        "```console\n$ true\nerror: shown but not said\n```",
        "```console\n$ echo error: other words >&2; exit 2\nerror: these words\n```",
    ],
)
def test_a_block_that_does_not_do_what_it_shows_is_seen(page, tmp_path, seqloom):
    shutil.copy(ROOT / "Makefile", tmp_path)
    [command] = commands_of(page)
    with pytest.raises(AssertionError, match="page, line"):
        check(command, tmp_path, "page", seqloom)


def test_a_shown_error_is_compared_and_make_is_not_really_run(tmp_path, seqloom):
    (tmp_path / "Makefile").write_text("test:\n\ttouch ran\n")
    check(Command(1, "make test"), tmp_path, "page", seqloom)
    check(Command(2, "echo error: so >&2; exit 2", errors=["error: so"]), tmp_path, "page", seqloom)
    assert not (tmp_path / "ran").exists()


def test_only_what_is_listed_is_skipped():
    assert is_skipped(Command(1, "pip install 'seqloom[samples]'"))
    assert not is_skipped(Command(1, "seqloom recipes"))
    assert not is_skipped(Command(1, "pip install", language="python"))
