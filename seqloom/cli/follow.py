"""`predict --follow`: a run is fed line by line from standard input, and answers each as it comes."""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..counts import format_count
from ..errors import DataError
from ..runs.json_output import make_answers_json, print_line

if TYPE_CHECKING:
    from ..runs.run import Run
    from ..tasks.results import Predictions

STDIN = "standard input"


def follow_stdin(loaded: "Run", show: "Callable[[str, Predictions], None]", as_json: bool) -> None:
    """Answer every line of standard input. An empty line begins another sequence, but in a text that goes on."""
    follower, parse, waits = loaded.follow(), make_parser(loaded), False
    for number, line in enumerate(read_stdin(), 1):
        if not line.strip() and not keeps_line_ends(loaded):
            follower.restart()
            if not as_json:
                print(flush=True)
            continue
        try:
            piece = parse(line)
            if piece is None:  # a header
                continue
            predictions = follower.read(piece)
        except DataError as error:
            raise DataError(error.sentence, STDIN, number) from None
        if as_json:
            missing = {"waits_for": follower.missing} if follower.missing else {}
            print_line({"input": line.rstrip("\n")} | make_answers_json(predictions) | missing)
        elif predictions:
            show(line.rstrip("\n"), predictions)
        elif not waits:
            waits = True
            print(f"there are answers from {format_count(follower.missing, 'more element')} on", file=sys.stderr)


def read_stdin() -> Iterator[str]:
    """Lines with their ends, as they come."""
    for number, line in enumerate(iter(sys.stdin.buffer.readline, b""), 1):
        try:
            yield line.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise DataError("is not UTF-8 text", STDIN, number) from None


def keeps_line_ends(loaded: "Run") -> bool:
    """Whether the end of a line is part of the text that is read."""
    task = loaded.task
    return task.writer is not None and task.shape.one_text


def make_parser(loaded: "Run") -> Callable[[str], Any]:
    """How a line becomes a piece: a text, or a row of numbers; None for a header."""
    if not loaded.task.shape.reads_text:
        return RowParser(loaded)
    return (lambda line: line) if keeps_line_ends(loaded) else (lambda line: line.rstrip("\n"))


class RowParser:
    """Rows of numbers, whose columns a first line may name."""

    def __init__(self, loaded: "Run") -> None:
        fields = loaded.task.fields
        self.columns = list(fields["series"].columns) if "series" in fields else list(loaded.recipe.data.source)
        self.places: list[int] | None = None

    def __call__(self, line: str) -> list[list[float]] | None:
        mark = next((mark for mark in "\t;," if mark in line), None)
        alone = mark is None and len(self.columns) == 1  # whose name may have blanks
        cells = [line.strip()] if alone else [cell.strip() for cell in line.strip().split(mark)]
        if self.places is None and set(self.columns) <= set(cells):
            self.places = [cells.index(name) for name in self.columns]
            return None
        if self.places is not None and len(cells) > max(self.places):
            cells = [cells[place] for place in self.places]
        return [[to_number(cell) for cell in cells]]


def to_number(cell: str) -> float:
    if cell.lower() in ("", "na", "nan", "null"):
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        raise DataError(f"{cell[:40]!r} is not a number") from None
