"""`data`: what a recipe reads, before anything is trained."""

import textwrap
from typing import Annotated

import typer

from ..runs.json_output import print_whole
from .options import Debug, Json

WIDTH = 80


def data(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, such as data.train=pairs.tsv.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read the data of a recipe and show it: examples as the model sees them, and a report. Nothing is trained."""
    from ..config.recipe import Recipe
    from ..errors import escape_unprintable

    read = Recipe.read(recipe, *(overrides or []))
    read.check_data()
    from ..data.headers import check_data

    check_data(read.data)
    from ..runs.data_report import data_json, describe_all
    from ..runs.start import declare_with_start
    from ..tasks.auto import settle
    from .terminal import notes

    for sentence in read.notes:
        notes.print(escape_unprintable(sentence))
    settled, sentence, _ = settle(read)
    task, prepared = declare_with_start(settled)[0].prepare(settled.resolved(), lambda sentence: None)
    if as_json:
        print_whole(data_json(task, prepared) | {"settings": settled.resolved().model_dump(mode="json")})
        return
    for line in (*[sentence] * bool(sentence), *describe_all(task, prepared)):
        flush = not line.startswith(" ")
        print(textwrap.fill(escape_unprintable(line), WIDTH, subsequent_indent="    ", drop_whitespace=flush))
