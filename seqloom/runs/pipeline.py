"""A training from its beginning to its final scores, in a run folder: prepared, begun or taken up again, told, kept."""

import json
import resource
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..arguments import described, path
from ..config.recipe import Recipe, Train, seconds
from ..errors import RecipeError, RunError
from ..layers.cells import MakeCell
from ..tasks import TASKS
from ..tasks.base import Feed, Prepared, Scored, Task, Tell
from ..training.checkpoints import Checkpoints
from ..training.devices import Machine, choose_device, choose_machine
from ..training.events import Events
from ..training.files import json_bytes, lock_folder, read_json, sweep, write_atomically
from ..training.loop import fit
from ..training.manifests import MANIFEST, read_manifest, replace, write_manifest
from ..training.parallelism import measure_parallelism
from ..training.probe import Stopped, estimate_seconds, fit_steps_to_time
from ..training.processes import ProcessGroup, join_process_group, shutdown
from ..training.records import Record
from ..training.tensors import load_weights, read_tensors, tensor_bytes, weights_of
from ..training.watching import MakeWatch
from .folder import (
    CARD,
    RECORDS,
    SCORES,
    SETTLED,
    WEIGHTS,
    append_line,
    changed_at,
    check_cell,
    forget_records,
    make_room,
    read_data,
    report_of,
    same_recipe,
    write_settled,
)
from .json_output import defined, record_json, scores_json, to_line
from .model_card import card, data_lines


def silent(line: str) -> None:
    """Tell nobody."""


def train(
    recipe: Recipe | None,
    into: Path | str,
    *,
    examples: object = None,
    resume: bool = False,
    cell: MakeCell | None = None,
    changed_data: bool = False,
    tell: Tell = silent,
    stop: threading.Event | None = None,
) -> Iterator[Record]:
    """Train into a folder and tell what happens; with `resume`, go on where the folder's newest checkpoint stands.

    `examples` from Python take the place of the recipe's files: a list of (source, target), a data frame with the
    recipe's columns, or either by part: {"train": …, "validation": …, "test": …}. Resuming needs them again.
    Data that has changed since the run began is refused, unless `changed_data` allows it: then the next epoch begins.
    A `cell` of one's own takes the place of the recipe's recurrent one; `load` needs it again.
    Set `stop` to end after the step that is under way, with a checkpoint; while trial steps say what is to come, with
    nothing. A run that has come to its end is scored on the test part before the iterator ends.
    """
    if recipe is not None and not isinstance(recipe, Recipe):
        raise RecipeError(f"the recipe is {described(recipe)}, but a Recipe was expected, as Recipe.read gives it")
    folder, ranks = path("the run folder", into), join_process_group()
    if not ranks.first:
        run_worker(ranks, cell, stop)
        return
    begun = resume and (folder / MANIFEST).exists()
    if recipe is None and not begun:
        raise RunError(f"{folder}: there is nothing to go on with: it holds no run that has begun")
    if not begun:
        make_room(folder, resume)
    with lock_folder(folder):
        sweep(folder)
        if begun:
            recipe = same_recipe(folder, recipe)
        assert recipe is not None
        task, prepared = load_data(folder, recipe, examples, begun, changed_data, tell)
        task.cell = cell
        try:
            model = build_and_write_header(folder, task, prepared, begun, ranks.count, tell, stop)
        except Stopped:
            return
        if begun and SCORES in read_manifest(folder):
            ranks.share(json_bytes({}))
            tell(f"{folder} is finished: nothing is left to train")
            return
        changed = changed_at(folder)
        told = {"data": prepared.fingerprint, "changed": changed, "known": None if changed < 0 else task.saved()}
        ranks.share(json_bytes(told | {"recipe": task.recipe.model_dump(mode="json")}))
        ended = False
        for record in kept_records(folder, task, prepared, model, tell, stop, ranks):
            ended = record.kind == "end"
            yield record
        shutdown()
        if ended:
            finish(folder, task, prepared, model, tell)


def run_worker(ranks: ProcessGroup, cell: MakeCell | None, stop: threading.Event | None) -> None:
    """Be one of several processes, but not the first: train as it says, and leave everything else to it."""
    try:
        asked = json.loads(ranks.share())
    except RuntimeError:  # what torch says when the other side is gone; the reason, the first process has told
        raise RunError("the first process ended before the training began") from None
    if asked:
        recipe = Recipe.of(asked["recipe"])
        task, prepared = TASKS[recipe.task].form(recipe).prepare(recipe, silent, known=asked["known"])
        if prepared.fingerprint != asked["data"]:
            raise RunError(f"process {ranks.rank} finds other data than the first one: the files must be the same")
        task.cell = cell
        objective, settings = task.objective(task.build().to(choose_device(recipe.train.device))), task.recipe.train
        feed, changed, watch = Feed(task, prepared), asked["changed"], choose_watch(settings)
        for _ in fit(objective, feed, settings, dict, stop=stop, ranks=ranks, changed=changed, watch=watch):
            pass
    shutdown()


def load_data(
    folder: Path, recipe: Recipe, examples: object, begun: bool, changed_data: bool, tell: Tell
) -> tuple[Task, Prepared]:
    """The data, read; of a run that has begun, the same as then."""
    if examples is None:
        recipe.check_data()
    choose_device(recipe.train.device)  # what is not there is said before anything is waited for
    if begun:
        return read_again(folder, recipe, examples, changed_data, tell)
    return TASKS[recipe.task].form(recipe).prepare(recipe.resolved(), tell, examples)


def build_and_write_header(
    folder: Path,
    task: Task,
    prepared: Prepared,
    begun: bool,
    processes: int,
    tell: Tell,
    stop: threading.Event | None,
) -> nn.Module:
    """Everything before step 1: the model is built, and what will not change any more is written."""
    settings = task.recipe.train
    if begun:
        check_cell(folder, task.cell)
    machine = choose_machine(settings.device, settings.precision, processes)
    task.recipe = task.recipe.changed("train.device", machine.device).changed("train.precision", machine.precision)
    torch.manual_seed(settings.seed)
    model = task.build()  # drawn on the processor, so that it is the same everywhere
    task.begin(model, tell if not begun else silent)
    model.to(choose_device(machine.device))
    if not begun:
        begin(folder, Feed(task, prepared, stop), model, machine, processes, tell)
    return model


def begin(folder: Path, feed: Feed, model: nn.Module, machine: Machine, processes: int, tell: Tell) -> None:
    """Write what will not change any more, once trial steps have said what is to come, and tell that."""
    task, prepared = feed.task, feed.prepared
    settings = task.recipe.train
    if settings.time:
        tell(f"measuring how many steps fit into {settings.time}")
        task.recipe = with_steps(feed, model)
    if tell is silent:
        write_settled(folder, task, prepared, model, {"machine": machine.to_json()})
        return
    ways = measure_parallelism(task.objective(model), feed, settings, processes)
    about = {"machine": machine.to_json(), "ways": None if ways is None else ways.to_json()}
    lines = [*estimate_cost(feed, model), f"training in {machine}", *([str(ways)] if ways else [])]
    write_settled(folder, task, prepared, model, about)
    for line in lines:
        tell(line)


def read_again(folder: Path, recipe: Recipe, examples: object, allowed: bool, tell: Tell) -> tuple[Task, Prepared]:
    """The data of a run that goes on: as it was, or if that is allowed, changed, but read as the run has learned to."""
    form, known, saved = (
        TASKS[recipe.task].form(recipe),
        read_data(folder),
        read_json(folder / "task.json"),
    )
    changes = [change.model_dump() for change in known.changes]
    task, prepared = form.prepare(recipe, tell, examples, saved if changes else None)
    if known.fingerprint == prepared.fingerprint:
        return task, prepared
    if not allowed:
        raise RunError(
            f"{folder}: the data has changed since this run began; go on with it all the same with --changed-data, or "
            "begin anew in another folder"
        )
    task, prepared = form.prepare(recipe, tell, examples, saved)
    newest = Checkpoints(folder / "checkpoints").newest()
    changes = [*changes, {"step": newest.step if newest else 0, "fingerprint": known.fingerprint}]
    about = {"fingerprint": prepared.fingerprint, "report": report_of(task, prepared), "changes": changes}
    replace(folder, "data.json", json_bytes(about))
    tell(f"the data has changed: after step {changes[-1]['step']} this run is trained on what is there now")
    return task, prepared


def estimate_cost(feed: Feed, model: nn.Module) -> Iterator[str]:
    """What somebody wants to know before they wait: the data in numbers, the model's size, the time and the memory."""
    task = feed.task
    yield from (line.replace("**", "") for line in data_lines(report_of(task, feed.prepared)))
    settings = task.recipe.train
    whole = estimate_seconds(task.objective(model), feed, settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 10)
    size = sum(parameter.numel() for parameter in model.parameters())
    yield (
        f"{size:,} parameters; {settings.steps:,} steps take about {format_duration(whole)} here, "
        "validations not counted; "
        f"{peak:,.0f} MB of memory so far"
    )


def format_duration(seconds: float) -> str:
    """A time, as a person says it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{rest} s" if not minutes else f"{minutes} min {rest} s" if minutes < 60 else f"{minutes / 60:.1f} h"


def with_steps(feed: Feed, model: nn.Module) -> Recipe:
    """The recipe with its time budget turned into steps, and steps between validations."""
    task, recipe = feed.task, feed.task.recipe
    steps, every = fit_steps_to_time(
        seconds(recipe.train.time),
        task.objective(model),
        feed,
        recipe.train,
        lambda: task.validate(model, feed.prepared),
    )
    return recipe.changed("train.steps", steps).changed("train.validate_every", every).resolved()


def kept_records(
    folder: Path,
    task: Task,
    prepared: Prepared,
    model: nn.Module,
    tell: Tell,
    stop: threading.Event | None,
    ranks: ProcessGroup,
) -> Iterator[Record]:
    """Train; every record goes into the folder before it is told, and the best weights do."""
    settings = task.recipe.train
    checkpoints = Checkpoints(folder / "checkpoints", settings.keep_checkpoints)
    records = fit(
        task.objective(model),
        Feed(task, prepared),
        settings,
        lambda: task.validate(model, prepared),
        checkpoints,
        stop,
        ranks,
        changed_at(folder),
        choose_watch(settings),
    )
    first = True
    with closing(Events(folder)) as events:
        for record in records:
            if first:
                for reason in checkpoints.skipped_checkpoints:
                    tell(f"a damaged checkpoint is passed over: {reason}")
                forget_records(folder / RECORDS, record.step, tell)
                first = False
            if record.best:
                replace(folder, WEIGHTS, tensor_bytes(weights_of(model)))
            append_line(folder / RECORDS, to_line(record_json(record)), synced=bool(record.scores))
            events.add(record)
            yield record


def choose_watch(settings: Train) -> MakeWatch | None:
    """Who looks at the weights while they are learned, if anybody is to."""
    if not settings.watch_every:
        return None
    from ..look.watching import Watching

    return Watching


def finish(folder: Path, task: Task, prepared: Prepared, model: nn.Module, tell: Tell) -> None:
    """Score the best weights on the test part, write the card, vouch for everything."""
    if not (folder / WEIGHTS).exists():
        raise RunError(
            f"{folder}: no validation gave a finite loss, so there are no weights to keep; lower train.learning_rate"
        )
    load_weights(model, read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    model.eval()
    # Where nothing was kept apart for the test, what was validated on is the best there is, and said to be that.
    parts = {part: task.examples(prepared, part) for part in ("test", "validation")}
    part = "test" if len(parts["test"]) else "validation"
    tell(f"scoring on {len(parts[part]):,} {part} examples")
    scores = task.score(model, parts[part])
    if lacking := scores.keys() - defined(scores).keys():
        tell(f"not defined on these examples, and left out: {', '.join(sorted(lacking))}")
    result = report(folder, task, part, parts[part], scores)
    write_atomically(folder / SCORES, json_bytes(result))
    write_atomically(folder / CARD, card(folder, task.recipe, result, report_of(task, prepared)).encode())
    write_manifest(folder, [*SETTLED, WEIGHTS, RECORDS, SCORES, CARD])


def report(folder: Path, task: Task, split: str, examples: Sequence[Any], scores: dict[str, Scored]) -> dict[str, Any]:
    """Scores as they are stored and as `score --json` prints them."""
    return scores_json(str(folder), task.recipe.task, split, len(examples), task.cut_in(examples), scores)
