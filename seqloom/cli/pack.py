"""`pack`: a run as one page."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..runs.begun import check_begun
from ..runs.json_output import print_whole
from .options import Debug, Json


def pack(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    into: Annotated[Path, typer.Option(help="A new file, which ends with .html.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a run as one page that opens without a server or a network, and answers in the browser."""
    check_begun(run)
    from ..pack import pack as pack_run
    from ..runs.run import load

    summary = pack_run(load(run, device="cpu"), into)
    if as_json:
        print_whole(summary)
    else:
        print(describe(summary))


def describe(summary: dict[str, Any]) -> str:
    """What was written, and how far it is from the run."""
    from ..pack.save import describe_parity

    known = summary["largest_difference"] is not None
    parity = describe_parity(summary) if known else "there were no examples to compare its answers with"
    first = f"{summary['file']}: {summary['bytes'] / 1e6:.2f} MB; open it in a browser"
    return "\n".join([first, parity, *summary["notes"]])
