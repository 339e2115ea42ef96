"""The course: lessons whose code and commands run, in the terminal and as notebooks. Reading them needs no torch."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .errors import DataError, SeqloomError

PACKED = Path(__file__).parent / "docs"  # in an installed package; else the documentation beside it
DOCS = PACKED if PACKED.is_dir() else Path(__file__).parent.parent / "docs"
FENCE = re.compile(r"( *)```(\w*)")
PICTURES = "../pictures/course/"


class Lesson(NamedTuple):
    number: int
    title: str
    path: Path

    def read(self) -> str:
        return self.path.read_text("utf-8")


class Block(NamedTuple):
    """A piece of a page: prose, or what a fence holds."""

    language: str  # of a fence: python, console, text; nothing for prose
    text: str


def list_lessons() -> list[Lesson]:
    paths = sorted((DOCS / "course").glob("[0-9]*.md"))
    titles = [path.read_text("utf-8").partition("\n")[0].partition(". ")[2] for path in paths]
    return [Lesson(number, title, path) for number, (title, path) in enumerate(zip(titles, paths, strict=True), 1)]


def find_lesson(number: int) -> Lesson:
    lessons = list_lessons()
    if not 1 <= number <= len(lessons):
        raise SeqloomError(f"there is no lesson {number}; there are 1 to {len(lessons)}")
    return lessons[number - 1]


def split_page(page: str) -> Iterator[Block]:
    """Prose and fences in turns. What a fence holds loses the indent of the fence."""
    prose: list[str] = []
    lines = iter(page.splitlines())
    for line in lines:
        fence = FENCE.match(line)
        if fence is None or fence[2] == "text":  # equations are part of the prose
            prose.append(line)
            if fence:
                prose += take_fence(lines, fence[1])
                prose.append(f"{fence[1]}```")
            continue
        if any(prose):
            yield Block("", "\n".join(prose).strip("\n"))
        prose = []
        yield Block(fence[2], "\n".join(line.removeprefix(fence[1]) for line in take_fence(lines, fence[1])))
    if any(prose):
        yield Block("", "\n".join(prose).strip("\n"))


def take_fence(lines: Iterator[str], indent: str) -> list[str]:
    """The lines up to the end of a fence."""
    lines_inside = []
    for line in lines:
        if line.rstrip() == f"{indent}```":
            break
        lines_inside.append(line)
    return lines_inside


# --- notebooks ----------------------------------------------------------------------------------------------------


def make_notebook(lesson: Lesson) -> dict[str, Any]:
    """A lesson in Jupyter's format: code and commands are cells to run, an exercise has a cell to write it in."""
    cells: list[dict[str, Any]] = []
    for block in split_page(lesson.read()):
        if block.language == "python":
            cells.append(code_cell(len(cells), block.text))
        elif block.language == "console":
            commands = list_commands(block.text)
            for file in re.findall(r"^seqloom check (\S+)", "\n".join(commands), re.MULTILINE):
                cells.append(
                    code_cell(len(cells), f"%%writefile {file}\n# Your solution. One of ours: solutions/{file}")
                )
            cells.append(code_cell(len(cells), "\n".join(f"!{command}" for command in commands)))
        else:
            text = block.text.replace(PICTURES, "pictures/")
            cells.append({"cell_type": "markdown", "id": f"cell-{len(cells)}", "metadata": {}, "source": text})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def code_cell(number: int, source: str) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": source}
    return {**cell, "execution_count": None, "outputs": []}


def list_commands(console: str) -> list[str]:
    """The commands of a console block, each with the lines it goes on in."""
    return [command.rstrip() for command in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]]


def write_course(folder: Path) -> list[Path]:
    """All lessons as notebooks, and beside them their pictures and the solutions of the exercises."""
    if folder.exists() and not folder.is_dir():
        raise DataError("is a file, a folder was expected", folder)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(DOCS / "pictures" / "course", folder / "pictures", dirs_exist_ok=True)
    shutil.copytree(DOCS / "course" / "solutions", folder / "solutions", dirs_exist_ok=True)
    written = []
    for lesson in list_lessons():
        path = folder / f"{lesson.path.stem}.ipynb"
        path.write_text(json.dumps(make_notebook(lesson), indent=1, ensure_ascii=False) + "\n", "utf-8")
        written.append(path)
    return written
