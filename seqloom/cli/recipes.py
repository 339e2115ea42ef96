"""`recipes` and `config`: what can be trained, and every setting of it. Neither needs torch."""

import sys
from typing import Annotated

import typer

from ..runs.json_output import print_whole
from .options import Debug, Json


def recipes(as_json: Json = False, debug: Debug = False) -> None:
    """What can be trained: built-in recipes with their size, time and data."""
    from ..config.builtin import builtin, describe

    listing = {name: describe(name)._asdict() for name in builtin()}
    if as_json:
        print_whole(listing)
        return
    from .terminal import show_table

    columns = ["recipe", "what it does", "model", "data", "time"]
    show_table(
        columns, [[name, *(about[key] for key in ("title", "size", "data", "time"))] for name, about in listing.items()]
    )
    print("\nseqloom config NAME shows every setting; seqloom train NAME trains it.")


def config(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, such as model.kind=lstm.")] = None,
    as_json: Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of the settings of its task.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Print every setting of a recipe, its value and what it does: TOML that trains the same model."""
    from ..config.recipe import Recipe

    configured = Recipe.read(recipe, *(overrides or []))
    for note in configured.notes:
        print(note, file=sys.stderr)
    if schema:
        print_whole(configured.schema())
    elif as_json:
        print_whole(configured.resolved().model_dump(mode="json"))
    else:
        print(configured.to_toml(comments=True), end="")
