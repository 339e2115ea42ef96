"""`look`, `doctor` and `study`: what happens inside a run, what ails it, and well-known claims tried out."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..errors import RecipeError
from ..runs.begun import check_begun
from ..runs.json_output import print_whole
from .options import Debug, Json

Part = Annotated[
    str,
    typer.Option(help="One part of the model in the view: decoder.cross, encoder.self, encoder.1; all if not given."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="With --view probe: a file of labels of your own; on each line an input, a tab, and one label or one for "
        "each element."
    ),
]


def look(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    text: Annotated[
        str | None,
        typer.Argument(help="An input, or a file for a model that reads no text; one of the run's own if not given."),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(help="The view; all is one page with every view that fits; if not given, one that fits."),
    ] = None,
    part: Part = "",
    answer: Annotated[str | None, typer.Option(help="The answer to look at; the model's own if not given.")] = None,
    tag: Annotated[str | None, typer.Option(help="The language or style, for a model trained with data.tag.")] = None,
    labels: Labels = None,
    out: Annotated[Path | None, typer.Option(help="The file: .html .svg .png .json; with --view all, .html.")] = None,
    debug: Debug = False,
) -> None:
    """Draw what happens inside a run while it answers an input: one view, or a page with all."""
    check_begun(run)
    from ..look.charts.base import save
    from ..runs.run import load

    loaded = load(run)
    if labels is not None:
        if view not in (None, "probe") or text is not None:
            raise RecipeError("--labels is for the view probe, on the inputs of that file alone")
        from ..look.charts.tokens import probe_chart
        from ..runs.probing import read_labels

        inputs, label_names = read_labels(labels, loaded.recipe.data.encoding)
        print(save(probe_chart(loaded.probe(inputs, label_names)), out or Path("probe.html")))
        return
    raw = text if text is None or loaded.task.shape.reads_text else loaded.task.read_first_input(text)
    raw = raw if tag is None else (raw, tag)
    if view == "all" and part:
        raise RecipeError(f"--view all shows every part, so --part {part} does not go with it")
    if view == "all":
        page = out or Path(f"{run.resolve().name}.html")
        if page.suffix != ".html":
            raise RecipeError(f"{page}: --view all writes one page, whose name ends in .html")
        print(loaded.report(page, raw, answer))
        return
    for note in loaded.history.notes:
        print(note, file=sys.stderr)
    looked = loaded.look(raw, answer)
    if view is None:
        view = looked.best_view
        others = ", ".join(name for name in looked.views if name != view)
        print(f"this is the view {view}; --view draws another: {others}, all", file=sys.stderr)
    print(save(looked.draw(view, part=part), out or Path(f"{view}.html")))


def doctor(
    run: Annotated[Path | None, typer.Argument(help="A run folder; its training need not be finished.")] = None,
    machine: Annotated[
        bool, typer.Option("--machine", help="This machine instead: versions, threads, kernels, memory, disk.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=0, help="Seconds for short training trials if the model has not learned; 0 is none.")
    ] = 15.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Diagnose a run: problems, worst first, each with its measurement and the setting to change."""
    if machine == (run is not None):
        raise RecipeError("doctor examines either a run folder or, with --machine, this machine")
    if run is None:
        from ..runs.machine import describe_machine, format_machine

        facts = describe_machine()
        print_whole(facts) if as_json else print(*format_machine(facts), sep="\n")
        return
    check_begun(run)
    from ..runs.run import diagnose
    from .terminal import notes

    diagnosis = diagnose(run, seconds=seconds)
    for note in diagnosis.notes:
        notes.print(note)
    if as_json:
        print_whole([asdict(finding) for finding in diagnosis])
        return
    for number, finding in enumerate(diagnosis, 1):
        print(f"{number}. {finding.name}: {finding.says} {finding.why}")
        print(f"   type: {finding.change}" if finding.change else "   no setting of the model helps here")
    if not diagnosis:
        print("nothing stands out")


STUDIES = ("vanishing", "taming", "labels")


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="labels: what more labels would give, on your own data. vanishing: how far back each architecture "
            "remembers. taming: what makes a deep Transformer trainable."
        ),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes for every variant, such as train.steps=50.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="The folder of the runs and pictures; runs/study-NAME if not given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Study a well-known claim: a recipe trained in several ways, side by side in one chart."""
    if name not in STUDIES:  # before anything is imported that takes seconds
        raise RecipeError(f"there is no study {name!r}; there are {', '.join(STUDIES)}")
    from ..runs.studies import show_study, train_study
    from .terminal import notes, show_table

    folder = into or Path("runs") / f"study-{name}"
    for record in train_study(name, folder, *(overrides or [])):
        if record.scores or record.kind == "note":
            notes.print(str(record))
    rows = show_study(name, folder)
    if as_json:
        print_whole(rows)
        return
    show_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    print(f"runs, pictures and results.json are in {folder}")
