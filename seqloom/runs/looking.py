"""A run looked into: one input with its answer, and the page about all of it."""

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arguments import check_text
from ..config.recipe import Recipe
from ..errors import RunError, SeqloomError
from ..look import Look, RunContext
from ..look.charts.base import write_chart
from ..look.doctor.findings import Finding
from ..look.history import History
from ..look.measures.attention import Picture
from ..look.report.page import write_page
from ..models import Batch, device_of
from . import report as reports
from .folder import RECORDS, read_records, read_scores
from .snapshots import load_snapshots

if TYPE_CHECKING:
    from .run import Run

BATCHES = 4  # of training examples, for what needs many


def look_into(run: "Run", raw: Any, answer: str | None, examples: object) -> Look:
    """What happens inside while the model answers this input, or one of its own, or is given this answer."""
    raw = pick_input(run, examples) if raw is None else run.task.shape.accept_input(raw)
    best = run.predict(raw)[0] if answer is None else None
    answer, exact = (best.output, best.exact) if best else (check_text("the answer", answer),) * 2
    shown, task = run.task.shape.inspect(raw, exact), run.task
    around = RunContext(
        history=run.history,
        load_batches=lambda: read_some_batches(run, examples),
        picture=None if shown.picture is None else Picture(shown.picture, run.recipe.model.patch),
        search=(lambda: run.record_beam(raw)) if task.shape.searches else None,
        forecast=(lambda: reports.make_forecast_fan(task, run.model, raw)) if run.recipe.task == "forecast" else None,
        snapshots=lambda: load_snapshots(run, []),
    )
    model = run.net if device_of(run.net).type == "cpu" else deepcopy(run.net).cpu()
    title = f"{raw if isinstance(raw, str) else 'the input'} → {answer}"
    parts = shown.batch, shown.elements, shown.answers
    return Look(model, parts, title, shown.input_symbols, shown.output_symbols, around)


def pick_input(run: "Run", examples: object) -> Any:
    """The first example of the run's own test part."""
    _, chosen = run.pick_examples(1, examples)
    if not chosen:
        raise RunError(f"{run.folder}: its data has no example to show; give an input")
    return chosen[0].input if chosen[0].inspected is None else chosen[0].inspected


def read_history(folder: Path, recipe: Recipe) -> History:
    """What the run remembers of its training."""
    records, damage = read_records(folder / RECORDS)
    scores = read_scores(folder).get("scores", {})
    return History(recipe, [record for record in records if record["kind"] != "note"], scores, damage)


def read_some_batches(run: "Run", examples: object) -> list[Batch]:
    """Some of what was trained on, if it is at hand."""
    try:
        prepared = run.read_own_data(examples)
    except SeqloomError:
        return []
    return [run.task.shape.batch(prepared, rows) for rows in run.task.shape.order(prepared, 0)[:BATCHES]]


def write_report(run: "Run", path: Path, look: Look, examples: object) -> Path:
    """One page about all of a run, looked into on one input."""
    try:
        findings: list[Finding] | str = run.diagnose(examples)
    except SeqloomError as error:
        findings = f"It could not be examined: {error}."
    answered = reports.answer_examples(run, examples)
    content = reports.collect_page(run.folder, run.task, look, read_scores(run.folder), answered, findings)
    return write_chart(path, write_page(content))
