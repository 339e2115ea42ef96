"""What a person sees in a terminal: a progress bar, tables of scores; plain lines where no one watches."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from ..counts import format_count
from ..errors import escape_unprintable
from ..runs.json_output import make_record_json, print_line

if TYPE_CHECKING:
    from ..runs.tune import Trial
    from ..training.records import Record

Item = TypeVar("Item", bound=tuple[Any, ...])
NOTHING = {"value": None}  # of a length that a score was not told for
TOLD = 3  # scores at most that a baseline is said to be better by
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
    print_line(make_record_json(record))


class _Lines:
    """A line for each note and each validation."""

    steps = 0

    def __call__(self, record: "Record") -> None:
        if record.kind == "note":
            self.steps = record.details.get("steps", self.steps)
            notes.print(escape_unprintable(record.text))
        elif record.scores:
            line = str(record).replace("  ", f" of {self.steps:,}  ", 1)
            if record.step:  # before the first one nothing is known about the time
                line += f"  {record.seconds / record.step * (self.steps - record.step):.0f} s left"
            notes.print(escape_unprintable(line))


@contextmanager
def _bar() -> Iterator[Callable[["Record"], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30 if notes.width >= 110 else 12),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        # What does not fit is cut here, so that the bar and the time that is left stay.
        TextColumn(
            "{task.fields[numbers]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    with Progress(*columns, console=notes, expand=True) as progress:
        bar = progress.add_task("training", total=None, numbers="", visible=False)
        scores: dict[str, float] = {}

        def show(record: "Record") -> None:
            if record.kind == "note":
                notes.print(
                    escape_unprintable(record.text), soft_wrap=False
                )  # between words; files have a line for each note
                if record.details:
                    progress.update(bar, total=record.details["steps"])
                return
            scores.update(record.scores)
            numbers = escape_unprintable(str(replace(record, scores=scores)).split("  ", 1)[1])
            progress.update(bar, completed=record.step, numbers=numbers, visible=True)

        yield show


def show_progress(items: Iterable[Item], last: int) -> Iterator[Item]:
    """Pass on inputs with their answers and show how far they are, by their lines."""
    columns = (
        TextColumn("answering"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,} answered"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes) as progress:
        bar = progress.add_task("answering", total=last or None, count=0)
        for count, item in enumerate(items, 1):
            progress.update(bar, completed=item[0].line, count=count)
            yield item


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(score: dict[str, Any]) -> str:
    return "{:.3f} – {:.3f}".format(*score["interval"]) if score.get("interval") else "–"


def show_page(text: str) -> None:
    """A page of Markdown: set for a terminal, as it is for anything else."""
    from rich.markdown import Markdown

    console = Console(markup=False, emoji=False)
    if console.is_terminal:
        console.print(Markdown(text, hyperlinks=False))
    else:
        print(text, end="")


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Texts as they are: none of them is markup, and what a terminal would obey is shown."""
    shown = None if title is None else escape_unprintable(title)
    names = map(escape_unprintable, columns)
    headers = (Column(name, min_width=max(map(len, name.split()), default=0)) for name in names)
    table = Table(*headers, title=shown, title_justify="left", box=box.SIMPLE_HEAD)  # names are broken between words
    for row in rows:
        table.add_row(*map(escape_unprintable, row))
    width = None if sys.stdout.isatty() else WIDE
    Console(highlight=False, markup=False, emoji=False, width=width).print(table)


def show_scores(reports: Sequence[dict[str, Any]]) -> None:
    """A table of each score with its interval and its baselines; of several runs, one with the runs side by side."""
    if len(reports) > 1:
        compare_scores(reports)
        return
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
        title = f"{report['run']}: {format_count(report['examples'], 'example')} of {report['split']}{cut}"
        show_table(["score", "value", "95 % interval", *rivals, "better is"], rows, title)
        show_lengths(report["scores"])
        show_classes(report["scores"])
        if sentence := describe_defeat(report.get("validation_scores", {}), report["run"]):
            print(escape_unprintable(sentence))


def describe_defeat(scores: Mapping[str, Any], run: str) -> str:
    """By which scores on validation a baseline is better than the run by more than chance, and what to try; where that
    may be chance, that nobody can tell; nothing if by none. The test part does not judge: what is tried because of it
    would be chosen by it."""
    lost: dict[bool, list[str]] = {True: [], False: []}  # by whether it is clear
    for name, score in scores.items():
        if ahead := score.get("ahead"):
            best, interval = ahead["baseline"], ahead["interval"]
            values = f"{score['baselines'][best]:.3f} against {score['value']:.3f}"
            lost[bool(interval) and interval[0] > 0].append(f"{name} (by {best}, {values})")
            count = format_count(ahead["examples"], "example")
    if not any(lost.values()):
        return ""
    told = lost[True] or lost[False]
    more = f" and {format_count(len(told) - TOLD, 'more score')}" if len(told) > TOLD else ""
    listed = f"{', '.join(told[:TOLD])}{more}"
    if not lost[True]:
        return f"on validation a baseline looks better: {listed}, but {count} cannot tell whether that is chance"
    return (
        f"on validation a baseline is better: {listed}. More examples "
        f"or more steps (train.steps) may help; seqloom doctor {run} looks for what is wrong"
    )


def compare_scores(reports: Sequence[dict[str, Any]]) -> None:
    """Several runs in one table: a row for each score, a column for each run, and the best baseline of any."""
    names = list(dict.fromkeys(name for report in reports for name in report["scores"]))
    rows = []
    for name in names:
        scores = [report["scores"].get(name, {}) for report in reports]
        cells = [f"{one['value']:.3f} ({_interval(one)})" if one else "–" for one in scores]
        better = next(one["better"] for one in scores if one)
        known = [(rival, value) for one in scores for rival, value in one.get("baselines", {}).items()]
        rows.append([name, *cells, _best_baseline(known, better), better])
    show_table(["score (95 % interval)", *(report["run"] for report in reports), "best baseline", "better is"], rows)
    parts = {f"{format_count(report['examples'], 'example')} of {report['split']}" for report in reports}
    print(escape_unprintable("scored on " + "; ".join(sorted(parts))))
    if len({(report["task"], report["split"], report["examples"]) for report in reports}) > 1:
        print("these runs were scored on different examples, so their scores cannot be compared")


def _best_baseline(known: Iterable[tuple[str, float | None]], better: str) -> str:
    """Its name and value; nothing of a score that has no direction."""
    values = {name: value for name, value in known if value is not None}
    if not values or better not in ("higher", "lower"):
        return "–"
    name = (max if better == "higher" else min)(values, key=lambda name: values[name])
    return f"{name} {values[name]:.3f}"


def show_repeats(summary: dict[str, Any]) -> None:
    """Each score of several seeds or folds: mean, standard deviation, the ends, and the mean of the best baseline."""
    rows = []
    for name, score in summary["scores"].items():
        ends = f"{min(score['values']):.3f} – {max(score['values']):.3f}"
        spread = f"{score['mean']:.3f} ± {_number(score['std'])}"
        rows.append([name, spread, ends, _best_baseline(score["baselines"].items(), score["better"]), score["better"]])
    kind = "seeds" if "seeds" in summary else "folds"
    title = f"{summary['run']}: {len(summary[kind])} {kind}"
    show_table(["score", "mean ± standard deviation", "lowest – highest", "best baseline", "better is"], rows, title)


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


def format_checks(checks: dict[str, Any]) -> Iterator[str]:
    """What `generate --check` says, a line each."""
    shares = {name: value for name, value in checks.items() if isinstance(value, float)}
    yield f"of {format_count(checks['texts'], 'text')}: " + ", ".join(
        f"{value:.0%} {name}" for name, value in shares.items()
    )
    if "copied" not in checks:
        yield "the training texts are not at hand, so nothing is said about copying"
        return
    copied, worst = checks["copied"], checks["copied"]["longest run"]
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
            *(_format_value(trial.settings.get(name)) for name in names),
            _number(trial.value),
            trial.state,
            str(trial.folder),
        ]
        for trial in trials
    ]
    measure = next((trial.measure for trial in trials), "loss")
    show_table(["trial", *names, f"validation {measure}", "", "folder"], rows)
    if importances:
        widest = max(importances.values()) or 1.0
        bars = [[name, f"{share:.0%}", "█" * round(30 * share / widest)] for name, share in importances.items()]
        show_table(["setting", "importance", ""], bars)


def _format_value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
