"""`compare`: variants of a recipe side by side, with a verdict."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..counts import format_count
from ..runs.json_output import print_whole
from ..stopping import Stop
from .options import Debug, Json, expand_groups

if TYPE_CHECKING:
    from ..config.recipe import Recipe
    from ..runs.compare import Design


class Match(StrEnum):
    PARAMETERS = "parameters"
    TIME = "time"
    STEPS = "steps"


@dataclass(frozen=True)
class DesignOptions:
    """How the recipe is varied, and what its variants have alike."""

    kinds: Annotated[str, typer.Option(help="Kinds of network, such as rnn,lstm,gru,transformer.")] = ""
    over: Annotated[
        list[str] | None,
        typer.Option(help="Another setting that variants differ in: model.depth=1,2; repeat for more."),
    ] = None
    match: Annotated[Match, typer.Option(help="What is equal for all variants.")] = Match.PARAMETERS
    budget: Annotated[
        str, typer.Option(help="The time of a run, such as 5m; without it, the recipe says how long to train.")
    ] = ""
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each variant; a verdict takes 6 or more.")] = 6

    def design(self, recipe: "Recipe") -> "Design":
        from ..config.ranges import parse_over

        over = [parse_over(text, recipe) for text in self.over or []]
        kinds = [kind.strip() for kind in self.kinds.split(",") if kind.strip()]
        for kind in kinds:
            recipe.override(f"model.kind={kind}")
        from ..runs.compare import Design

        return Design(kinds, over, self.match.value, self.budget, self.seeds)


@expand_groups
def compare(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    design: DesignOptions,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes for all variants, such as data.train=a.csv.")
    ] = None,
    score: Annotated[str, typer.Option(help="The score that counts; the first of the task if not given.")] = "",
    into: Annotated[Path | None, typer.Option(help="The folder; runs/compare-NAME if not given.")] = None,
    page: Annotated[Path | None, typer.Option(help="An HTML file to write about it, which needs no network.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare variants fairly. The same command continues; several processes may share a folder."""
    stop: Stop = context.obj
    stop.watch(lambda: "stopped; the same command goes on")
    from ..config.recipe import Recipe

    base, folder = Recipe.read(recipe, *(overrides or [])), into or Path("runs") / f"compare-{Path(recipe).stem}"
    settled = design.design(base)
    from ..runs.compare import read_comparison, train_variants
    from .terminal import notes

    stop.check()
    try:
        for record in train_variants(base, folder, settled, stop=stop):
            notes.print(str(record))
    finally:
        stop.check()
    show_comparison(read_comparison(folder, score).to_json(), page, as_json)


def show_comparison(summary: dict[str, Any], page: Path | None, as_json: bool) -> None:
    from ..look.report.comparison import COLUMNS, list_rows, write_comparison_page
    from .terminal import show_table

    if page is not None:
        from ..look.charts.base import write_chart

        write_chart(page, write_comparison_page(summary))
    if as_json:
        print_whole(summary)
        return
    columns = [column.format(score=summary["score"]) for column in COLUMNS]
    show_table(columns, list(list_rows(summary)), f"{summary['folder']}: {format_count(summary['seeds'], 'seed')}")
    print(summary["verdict"]["sentence"])
