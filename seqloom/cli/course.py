"""`course`: the lessons, listed, read in the terminal, or written as notebooks. None of it needs torch."""

from pathlib import Path
from typing import Annotated

import typer

from ..runs.json_output import print_whole
from .options import Debug, Json


def course(
    lesson: Annotated[int | None, typer.Argument(help="The number of a lesson; all are listed if not given.")] = None,
    into: Annotated[
        Path | None, typer.Option(help="Write all lessons as notebooks into this folder, with pictures and solutions.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Twelve lessons on sequence modeling, with code and commands to run: list them, read one, write notebooks."""
    from ..course import find_lesson, list_lessons, write_course
    from .terminal import show_page, show_table

    if lesson is not None:
        show_page(find_lesson(lesson).read())
    elif into is not None:
        written = write_course(into)
        if as_json:
            print_whole([str(path) for path in written])
        else:
            print(f"{len(written)} notebooks are in {into}, with pictures and solutions beside them")
    elif as_json:
        print_whole([{"number": one.number, "title": one.title, "file": str(one.path)} for one in list_lessons()])
    else:
        show_table(["lesson", "title"], [[str(one.number), one.title] for one in list_lessons()])
        print("\nseqloom course NUMBER prints a lesson; seqloom course --into FOLDER writes all as notebooks.")
