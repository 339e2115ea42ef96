"""The lessons, run as the notebooks that are made of them: code in one namespace, commands in this process.

Trainings are cut to a few steps and scored on few examples; the exercises are solved by the solutions that ship with
the course. In full, the commands of a lesson are run by `docs/course_pictures.py`.
"""

import json
import re
import shlex

import pytest

from seqloom.course import DOCS, find_lesson, list_lessons, make_notebook, split_page, write_course
from seqloom.data import samples
from seqloom.errors import SeqloomError

from .preloaded import score_few

LESSONS = list_lessons()
PARTS = ["The idea", "The equations", "In code", "Train it", "Look", "Exercises", "What research says today"]
STEPS = 3


def shorten(command: str) -> list[str]:
    """The words of a command behind `seqloom`; a training with few steps."""
    program, *words = shlex.split(command)
    assert program == "seqloom", f"a lesson types nothing but seqloom: {command}"
    if words[0] != "train":
        return words
    kept = [word for word in words if not word.startswith(("train.steps=", "train.warmup=", "train.validate_every="))]
    return [*kept, f"train.steps={STEPS}", f"train.validate_every={STEPS}"]


def run_cell(source: str, names: dict[str, object], typed) -> None:
    if file := re.match(r"%%writefile (\S+)", source):
        with open(file[1], "w", encoding="utf-8") as written:
            written.write((DOCS / "course" / "solutions" / file[1]).read_text("utf-8"))
    elif source.startswith("!"):
        for command in re.split(r"^!", source, flags=re.MULTILINE)[1:]:
            out, err, code = typed(*shorten(command))
            assert code == 0, f"{command}\n{out}{err}"
    else:
        exec(compile(source, "lesson", "exec"), names)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)
def test_every_cell_of_the_lesson_runs(lesson, typed, monkeypatch):
    few = {name: score_few(make) for name, make in samples.SAMPLES.items()}
    monkeypatch.setattr(samples, "SAMPLES", few)
    names: dict[str, object] = {}
    for cell in make_notebook(lesson)["cells"]:
        if cell["cell_type"] == "code":
            run_cell(cell["source"], names, typed)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)
def test_every_lesson_has_all_its_parts(lesson):
    page = lesson.read()
    assert page.startswith(f"# {lesson.number}. {lesson.title}\n")
    assert re.findall(r"^## (.*)", page, re.MULTILINE) == PARTS
    blocks = list(split_page(page))
    code = "\n".join(block.text for block in blocks if block.language == "python")
    assert 10 <= len([line for line in code.splitlines() if line.strip()]) <= 40 and "assert" in code
    commands = "\n".join(block.text for block in blocks if block.language == "console")
    assert "$ seqloom train " in commands and "$ seqloom look " in commands
    shown = re.findall(r"\.\./pictures/course/(\S+)\)", page)
    assert shown and set(shown) <= set(re.findall(r"--out (\S+)", commands))
    exercises = page[page.index("## Exercises") : page.index("## What research")]
    assert len(re.findall(r"^\d\. \*\*", exercises, re.MULTILINE)) == 2
    assert "$ seqloom check " in exercises


def test_there_are_twelve_lessons_and_every_solution_is_one_of_an_exercise():
    assert [lesson.number for lesson in LESSONS] == list(range(1, 13))
    asked = {file for lesson in LESSONS for file in re.findall(r"seqloom check (\S+)", lesson.read())}
    assert asked == {path.name for path in (DOCS / "course" / "solutions").glob("*.py")}


def test_notebooks_hold_the_whole_page_and_are_written_with_what_they_show(tmp_path):
    for path, lesson in zip(write_course(tmp_path / "made"), LESSONS, strict=True):
        notebook = json.loads(path.read_text("utf-8"))
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        ids = [cell["id"] for cell in notebook["cells"]]
        assert len(ids) == len(set(ids))
        text = "\n".join(cell["source"] for cell in notebook["cells"])
        plain = [line for line in lesson.read().splitlines() if line.strip() and "```" not in line]
        assert all(
            line.strip().removeprefix("$ ").replace("../pictures/course/", "pictures/") in text for line in plain
        )
        for picture in re.findall(r"\]\((pictures/\S+)\)", text):
            assert (tmp_path / "made" / picture).is_file()
        for file in re.findall(r"solutions/\S+\.py", text):
            assert (tmp_path / "made" / file).is_file()


def test_the_command_lists_prints_and_writes(typed, tmp_path):
    out, _, code = typed("course")
    assert code == 0 and all(lesson.title in out for lesson in LESSONS)
    listed = json.loads(typed("course", "--json")[0])
    assert [one["title"] for one in listed] == [lesson.title for lesson in LESSONS]
    assert typed("course", 3)[0] == LESSONS[2].read()
    typed("course", "--into", "lessons")
    assert len(list((tmp_path / "lessons").glob("*.ipynb"))) == len(LESSONS)


@pytest.mark.parametrize("number", [0, 13, -1])
def test_a_lesson_that_is_not_there_is_refused(number):
    with pytest.raises(SeqloomError, match="there are 1 to 12"):
        find_lesson(number)


def test_a_file_in_the_way_is_left_alone(typed, tmp_path):
    (tmp_path / "taken").write_text("mine")
    _, err, code = typed("course", "--into", "taken")
    assert code == 2 and "a folder was expected" in err and (tmp_path / "taken").read_text() == "mine"


def test_fences_are_split_from_prose_and_lose_their_indent():
    page = "a\n```text\nx = 1\n```\nb\n\n    ```console\n    $ one \\\n        two\n    ```\nc"
    assert [(block.language, block.text) for block in split_page(page)] == [
        ("", "a\n```text\nx = 1\n```\nb"),
        ("console", "$ one \\\n    two"),
        ("", "c"),
    ]
