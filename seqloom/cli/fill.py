"""`fill`: the words that fit into the blanks of a text."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..runs.json_output import print_line
from .options import Debug, Json


def fill(
    run: Annotated[Path, typer.Argument(help="A run folder of the task pretrain.")],
    text: Annotated[str, typer.Argument(help='A text with blanks, such as "The ___ is a bird."')],
    best: Annotated[int, typer.Option(min=1, max=10_000, help="How many words are shown for each blank.")] = 5,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fill the blanks of a text: words with their probabilities, the most probable first."""
    from ..runs.run import load

    blanks = load(run).fill(text, best)
    if as_json:
        print_line({"input": text, "blanks": [[asdict(word) for word in words] for words in blanks]})
        return
    for number, words in enumerate(blanks, 1):
        if len(blanks) > 1:
            print(f"blank {number}")
        for word in words:
            print(f"  {word.probability:6.1%}  {word.output}")
