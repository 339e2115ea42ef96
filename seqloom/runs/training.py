"""Training into a run folder, or on in one: what is checked before, and by which processes."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..arguments import check_path, describe_value
from ..config.recipe import Recipe
from ..data.documents import settle_documents
from ..data.schema import FieldKind
from ..errors import RecipeError, RunError
from ..layers.cells import MakeCell
from ..training.devices import choose_machine, use_threads
from ..training.files import json_bytes
from ..training.manifests import check_manifest
from ..training.probe import Stopped
from ..training.processes import join_process_group
from ..training.records import Record
from .folder import (
    SCORES,
    SETTLED,
    check_recipe,
    hold_folder,
    read_config,
    read_recipe,
)
from .pipeline import Pipeline
from .workers import run_worker


def train(
    recipe: Recipe | None,
    into: Path | str,
    *,
    examples: object = None,
    resume: bool = False,
    cell: MakeCell | None = None,
    fields: Mapping[str, FieldKind] | None = None,
    changed_data: bool = False,
    stop: threading.Event | None = None,
) -> Iterator[Record]:
    """Train into a folder and yield what happens; with `resume`, go on where the folder's newest checkpoint stands.

    `examples` from Python take the place of the recipe's files: a list of (source, target), a data frame with the
    recipe's columns, or either by part: {"train": …, "validation": …, "test": …}. Resuming needs them again.
    Data that has changed since the run began is refused, unless `changed_data` allows it: then the next epoch begins.
    A `cell` of one's own takes the place of the recipe's recurrent one, and `fields` of one's own, by side, take the
    place of those that the recipe names; `load` needs them again.
    Set `stop` to end after the step that is under way, with a checkpoint; before the first step, with nothing. The
    last record of a run that comes to its end holds the final scores.
    """
    if recipe is not None and not isinstance(recipe, Recipe):
        raise RecipeError(f"the recipe is {describe_value(recipe)}, but a Recipe was expected, as Recipe.read gives it")
    if recipe is not None and examples is not None:
        recipe = settle_documents(recipe, examples)
    folder, processes = check_path("the run folder", into), join_process_group()
    if not processes.first:
        run_worker(processes, cell, fields, stop)
        return
    if recipe is None and not (resume and (folder / "manifest.json").exists()):
        raise RunError(f"{folder}: there is nothing to resume: it holds no run that has begun")
    with hold_folder(folder, resume) as resumed:
        before = None
        if resumed:
            sums = check_manifest(folder, SETTLED)
            own = read_recipe(folder)
            recipe, before = own if recipe is None else check_recipe(own, recipe, folder), own.train.steps
            if SCORES in sums and recipe.train.steps == before:
                processes.broadcast(json_bytes({}))
                yield Record("note", recipe.train.steps, text=f"{folder} is finished: nothing is left to train")
                return
        assert recipe is not None
        if examples is None:
            recipe.check_data()
        machine = choose_machine(recipe.train.device, recipe.train.precision, processes.count)
        if resumed:
            machine = replace(machine, threads=read_config(folder).machine.threads)
        with use_threads(machine.threads):
            pipeline = Pipeline(folder, machine, processes, stop, fields)
            try:
                yield from pipeline.run(recipe, examples, cell, before, changed_data)
            except Stopped:
                return
