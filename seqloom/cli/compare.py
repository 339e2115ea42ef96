"""`compare`: variants of a recipe side by side, with a verdict."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..runs.json_output import print_whole
from ..stopping import Stop
from .options import Debug, Json


class Match(StrEnum):
    PARAMETERS = "parameters"
    TIME = "time"
    STEPS = "steps"


def compare(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes for all variants, such as data.train=a.csv.")
    ] = None,
    kinds: Annotated[str, typer.Option(help="Kinds of network, such as rnn,lstm,gru,transformer.")] = "",
    over: Annotated[
        list[str] | None, typer.Option(help="Another setting that variants differ in: model.depth=1,2. Again for more.")
    ] = None,
    match: Annotated[Match, typer.Option(help="What all variants have alike.")] = Match.PARAMETERS,
    budget: Annotated[
        str, typer.Option(help="The time of a run, such as 5m; without it, the recipe says how long to train.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each variant; a verdict takes 6 or more.")] = 6,
    score: Annotated[str, typer.Option(help="The score that counts; the first of the task if not given.")] = "",
    into: Annotated[Path | None, typer.Option(help="The folder; runs/compare-NAME if not given.")] = None,
    page: Annotated[Path | None, typer.Option(help="An HTML file to write about it, which needs no network.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare variants fairly; said again, it goes on, and several processes may share a folder."""
    stop: Stop = context.obj
    stop.watch(lambda: "stopped; the same command goes on")
    from ..config.ranges import parse_over
    from ..config.recipe import Recipe

    given = Recipe.read(recipe, *(overrides or []))
    overs = [parse_over(text, given) for text in over or []]
    from ..look.report.comparison import COLUMNS, list_rows, write_comparison_page
    from ..runs.compare import compare as compare_variants
    from .terminal import notes, show_table

    stop.check()
    names = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    try:
        comparison = compare_variants(
            given,
            into or Path("runs") / f"compare-{Path(recipe).stem}",
            kinds=names,
            over=overs,
            match=match.value,
            budget=budget,
            seeds=seeds,
            score=score,
            stop=stop,
            tell=notes.print,
        )
    finally:
        stop.check()
    summary = comparison.to_json()
    if page is not None:
        from ..look.charts.base import written

        written(page, write_comparison_page(summary))
    if as_json:
        print_whole(summary)
        return
    columns = [column.format(score=summary["score"]) for column in COLUMNS]
    show_table(columns, list(list_rows(summary)), f"{summary['folder']}: {summary['seeds']} seeds")
    print(summary["verdict"]["sentence"])
