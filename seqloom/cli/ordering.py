"""`score --shuffle` and `score --pairs`: whether order matters to a run, over a whole file."""

from dataclasses import asdict
from pathlib import Path

from ..counts import format_count
from ..errors import DataError
from ..runs.json_output import print_whole

SHOWN = 20  # pairs


def show_order(folder: Path, files: list[Path], as_json: bool) -> None:
    """Each score in order and shuffled."""
    from ..runs.run import load
    from .terminal import show_table

    report = load(folder).score_shuffled(*files)
    if as_json:
        print_whole(report)
        return
    rows = [
        [name, f"{one['ordered']:.3f}", f"{one['shuffled']:.3f}", f"{one['shuffled'] - one['ordered']:+.3f}"]
        for name, one in report["scores"].items()
    ]
    title = f"{folder}: {format_count(report['examples'], 'example')} of {report['split']}"
    show_table(["score", "in order", "shuffled", "change"], rows, title)


def show_pairs(folder: Path, file: str, as_json: bool) -> None:
    """The share of pairs that are right, and the first of them."""
    from ..runs.run import load
    from .terminal import show_table

    run = load(folder)
    answers = "source" in run.task.fields and bool(run.task.target.is_text)
    given, texts = read_pairs(file, run.recipe.data.encoding, 3 if answers else 2)
    report = run.score_pairs(texts, given if answers else None)
    if as_json:
        print_whole(
            {"run": str(folder), "right": report.says, "chance": report.chance}
            | report.score.to_json()
            | {"pairs": [asdict(one) for one in report.pairs]}
        )
        return
    rows = [
        [one.first, one.second, *(f"{value:.3f}" if isinstance(value, float) else value for value in one.results)]
        + ["✓" if one.right else "✗"]
        for one in report.pairs[:SHOWN]
    ]
    more = f" (the first {SHOWN})" if len(report.pairs) > SHOWN else ""
    show_table(
        ["first", "second", "of the first", "of the second", ""],
        rows,
        f"{format_count(len(report.pairs), 'pair')}{more}",
    )
    interval = (
        "" if report.score.interval is None else " (95 % interval {:.3f} – {:.3f})".format(*report.score.interval)
    )
    chance = "" if report.chance is None else f"; by chance {report.chance:.1f}"
    print(f"{report.says}: {report.score.value:.3f}{interval}{chance}")


def read_pairs(file: str, encoding: str, columns: int) -> tuple[list[str], list[tuple[str, str]]]:
    """The sources, where there is a column of them, and the pairs."""
    from ..data.formats.lines import find_line_fault, read_lines

    given, pairs = [], []
    for line in read_lines(file, encoding):
        if fault := find_line_fault(line, file, encoding):
            raise fault.error()
        if not line.text.strip():
            continue
        parts = line.text.split("\t")
        if len(parts) != columns:
            raise DataError(
                f"{format_count(columns, 'text')} with tabs between them were expected, not {len(parts)}",
                file,
                line.number,
            )
        given.append(parts[0])
        pairs.append((parts[-2], parts[-1]))
    return given, pairs
