"""`check`: a person's own cell or layer against what every layer has to keep."""

from pathlib import Path
from typing import Annotated

import typer

from ..runs.json_output import print_whole
from .options import Debug, Json


def check(
    file: Annotated[Path, typer.Argument(help="A Python file that defines cells or layers. It is run.")],
    name: Annotated[str, typer.Option(help="Only the class of this name.")] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check cells and layers of your own against the laws: padding, causality, gradients, learning."""
    from ..certify.own import check_file
    from .terminal import show_table

    findings = list(check_file(file, name))
    if as_json:
        print_whole([one._asdict() for one in findings])
    else:
        for subject in dict.fromkeys(one.subject for one in findings):
            rows = [
                [
                    one.law,
                    {True: "✓", False: "✗", None: "–"}[one.holds],
                    "" if one.gap is None else f"{one.gap:.1g}",
                    "" if one.limit is None else f"{one.limit:.1g}",
                    one.case,
                ]
                for one in findings
                if one.subject == subject
            ]
            show_table(["law", "", "gap", "limit", "smallest case that fails"], rows, subject)
        tried = [one for one in findings if one.holds is not None]
        print(f"{sum(bool(one.holds) for one in tried)} of {len(tried)} laws hold")
    raise typer.Exit(0 if all(one.holds is not False for one in findings) else 1)
