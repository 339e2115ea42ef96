"""`export`: a run for other programs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..counts import format_count
from ..runs.begun import check_begun
from ..runs.export import FORMATS, export_run
from ..runs.json_output import print_whole
from .options import Debug, Json


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="|".join(FORMATS), help="ONNX graphs, plain PyTorch code, or a folder that transformers loads."
        ),
    ],
    into: Annotated[Path, typer.Option(help="A new folder for the files.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a run in a form that other programs read; what has no such form is refused with the reason."""
    check_begun(run)
    summary = export_run(run, to, into)
    if as_json:
        print_whole(summary)
        return
    print("\n".join([describe(summary), *summary["notes"]]))


def describe(summary: dict[str, Any]) -> str:
    """What was written, in a line."""
    size = sum(summary["files"].values()) / 1e6
    line = f"{summary['folder']}: {', '.join(summary['files'])} ({size:.2f} MB)"
    if summary.get("checks"):
        gap = max(one["gap"] for one in summary["checks"])
        line += f"; equal to the run at {format_count(len(summary['checks']), 'size')}, to {gap:.1g}"
    return line
