"""What a person sees in a terminal: a progress bar, tables of scores; plain lines where no one watches."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import printable
from ..runs.json_output import print_line, record_json

if TYPE_CHECKING:
    from ..runs.tune import Trial
    from ..training.records import Record

NOTHING = {"value": None}  # of a length that a score was not told for
CLASSES = 30  # of a table of classes, at most
WIDE = 160  # where nobody watches, a row stays on its line
# Nothing that is printed is markup: names come from files, and "[/bold]" is one as well as any other.
notes = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def follow(records: Iterable["Record"], as_json: bool) -> "Record | None":
    """Show training as it goes: JSON lines for programs, a bar on a terminal, lines otherwise; its last record, if that
    is the end."""
    last = None
    with _bar() if notes.is_terminal and not as_json else nullcontext(_print_json if as_json else _Lines()) as show:
        for record in records:
            show(record)
            last = record
    return last if last is not None and last.kind == "end" else None


def _print_json(record: "Record") -> None:
    print_line(record_json(record))


class _Lines:
    """A line for each note and each validation."""

    steps = 0

    def __call__(self, record: "Record") -> None:
        if record.kind == "note":
            self.steps = record.details.get("steps", self.steps)
            notes.print(printable(record.text))
        elif record.scores:
            left = record.seconds / record.step * (self.steps - record.step)
            line = str(record).replace("  ", f" of {self.steps:,}  ", 1)
            notes.print(printable(f"{line}  {left:.0f} s left"))


@contextmanager
def _bar() -> Iterator[Callable[["Record"], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[numbers]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes) as progress:
        bar = progress.add_task("training", total=None, numbers="", visible=False)
        scores: dict[str, float] = {}

        def show(record: "Record") -> None:
            if record.kind == "note":
                notes.print(printable(record.text))
                if record.details:
                    progress.update(bar, total=record.details["steps"])
                return
            scores.update(record.scores)
            numbers = printable(str(replace(record, scores=scores)).split("  ", 1)[1])
            progress.update(bar, completed=record.step, numbers=numbers, visible=True)

        yield show


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(score: dict[str, Any]) -> str:
    return "{:.3f} – {:.3f}".format(*score["interval"]) if score.get("interval") else "–"


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Texts as they are: none of them is markup, and what a terminal would obey is shown."""
    shown = None if title is None else printable(title)
    table = Table(*map(printable, columns), title=shown, title_justify="left", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*map(printable, row))
    width = None if sys.stdout.isatty() else WIDE
    Console(highlight=False, markup=False, emoji=False, width=width).print(table)


def show_scores(reports: Sequence[dict[str, Any]]) -> None:
    """One table a run: each score with its interval and its baselines."""
    for report in reports:
        rivals = list(dict.fromkeys(name for score in report["scores"].values() for name in score["baselines"]))
        rows = [
            [
                name,
                f"{score['value']:.3f}",
                _interval(score),
                *(_number(score["baselines"].get(rival)) for rival in rivals),
                score["better"],
            ]
            for name, score in report["scores"].items()
        ]
        cut = f", {report['cut']:,} of them cut to data.max_length" if report.get("cut") else ""
        title = f"{report['run']}: {report['examples']:,} examples of {report['split']}{cut}"
        show_table(["score", "value", "95 % interval", *rivals, "better is"], rows, title)
        show_lengths(report["scores"])
        show_classes(report["scores"])


def show_lengths(scores: dict[str, Any]) -> None:
    """The same scores by how long what was read is, where there is something to tell."""
    split = {name: score["by_length"] for name, score in scores.items() if score.get("by_length")}
    if not split:
        return
    first = next(iter(split.values()))
    rows = [
        [length, f"{one['examples']:,}", *(_number(bins.get(length, NOTHING)["value"]) for bins in split.values())]
        for length, one in first.items()
    ]
    show_table(["length of the source", "examples", *split], rows)


def show_classes(scores: dict[str, Any]) -> None:
    """Precision, recall and F1 of each class and what it is most often taken for, where the answers are classes."""
    for score in scores.values():
        if not (classes := score.get("classes")):
            continue
        names, matrix = list(classes), score.get("confusion") or []
        order = sorted(names, key=lambda name: -classes[name]["examples"])
        rows = []
        for name in order[:CLASSES]:
            one = classes[name]
            mistaken = _most_mistaken(names, matrix, names.index(name))
            rates = (f"{one[rate]:.3f}" for rate in ("precision", "recall", "f1"))
            rows.append([name, f"{one['examples']:,}", *rates, mistaken])
        more = f" (the {CLASSES} most frequent of {len(names)} classes)" if len(names) > CLASSES else ""
        calibration = score.get("calibration")
        title = f"expected calibration error {calibration['error']:.3f}{more}" if calibration else more
        show_table(["class", "examples", "precision", "recall", "F1", "most often taken for"], rows, title)


def _most_mistaken(names: list[str], matrix: list[list[int]], row: int) -> str:
    counts = matrix[row] if matrix else []
    others = {name: count for place, (name, count) in enumerate(zip(names, counts, strict=False)) if place != row}
    name = max(others, key=others.__getitem__, default="")
    return f"{name} ({others[name]:,})" if name and others[name] else "–"


def format_checks(found: dict[str, Any]) -> Iterator[str]:
    """What `generate --check` says, a line each."""
    shares = {name: value for name, value in found.items() if isinstance(value, float)}
    yield f"of {found['texts']:,} texts: " + ", ".join(f"{value:.0%} {name}" for name, value in shares.items())
    if "copied" not in found:
        yield "the training texts are not at hand, so nothing is said about copying"
        return
    copied, worst = found["copied"], found["copied"]["longest run"]
    yield (
        f"{copied['whole']:.0%} stand whole in the training texts; the longest copied run is {worst['longest']:,} of "
        f"{worst['length']:,} characters, on average {copied['mean share']:.0%} of a text"
    )


def show_search(trials: Sequence["Trial"], importances: dict[str, float]) -> None:
    """The trials of a search over settings, the best first, and a figure of what mattered."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    rows = [
        [
            str(trial.number),
            *(_short(trial.settings.get(name)) for name in names),
            _number(trial.loss),
            trial.state,
            str(trial.folder),
        ]
        for trial in trials
    ]
    show_table(["trial", *names, "validation loss", "", "folder"], rows)
    if importances:
        widest = max(importances.values()) or 1.0
        bars = [[name, f"{share:.0%}", "█" * round(30 * share / widest)] for name, share in importances.items()]
        show_table(["setting", "importance", ""], bars)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
