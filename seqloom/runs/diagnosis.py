"""What ails a run: from its folder, its training examples and, if it has been trained, its model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arguments import check_path
from ..errors import SeqloomError
from ..layers.cells import MakeCell
from ..tasks.task import Task, TaskData
from ..training.manifests import read_manifest
from .folder import RECORDS, WEIGHTS, check_version, read_recipe, read_records, read_report, read_scores, read_task

if TYPE_CHECKING:
    from ..look.doctor.findings import Finding

TRIAL_SECONDS = 15.0  # seconds that the trials of a diagnosis may take


class Diagnosis(list["Finding"]):
    """What ails a run, the worst first; `notes` say what could not be looked at."""

    notes: Sequence[str] = ()


def diagnose(
    folder: Path | str,
    cell: MakeCell | None = None,
    examples: object = None,
    seconds: float = TRIAL_SECONDS,
) -> Diagnosis:
    """What ails a run, the worst first, also one that broke off: from its records, its scores, its training examples
    and, where it has not learned, from short trials that take about so many `seconds` in all.

    The examples are read again where the recipe says; those that came from Python have to be given again. Where they
    are not at hand, the records have to do.
    """
    folder = check_path("the run folder", folder)
    check_version(folder)
    if WEIGHTS in read_manifest(folder):
        from .run import load

        return load(folder, cell, "cpu").diagnose(examples, seconds)
    from .report import prepare_own_data

    task = read_task(folder, read_recipe(folder), cell)
    return examine(folder, task, None, lambda: prepare_own_data(folder, task, examples), seconds)


def examine(folder: Path, task: Task, model: Any, prepare: Callable[[], TaskData], seconds: float) -> Diagnosis:
    """What ails a run of which these parts are there."""
    from ..look.doctor.diagnosis import diagnose as judge
    from .checkup import RunFacts, examine_run

    records, notes = read_records(folder / RECORDS)
    report = read_scores(folder)
    scores = report.get("validation_scores") or report.get(
        "scores", {}
    )  # the test part chooses nothing, nor does advice
    known = RunFacts([record for record in records if record["kind"] != "note"], scores, read_report(folder))
    prepared = None
    try:
        prepared = prepare()
    except SeqloomError as error:
        notes.append(f"the training examples are not at hand, so only the records are looked at: {error}")
    diagnosis = Diagnosis(judge(examine_run(task, known, model, prepared, seconds)))
    diagnosis.notes = notes
    return diagnosis
