"""Training into a run folder: the data is prepared, the model built, fitted and scored, and everything saved.

All that is said on the way is a record: it is written to records.jsonl and yielded, whoever listens.
"""

import resource
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from math import isfinite
from pathlib import Path
from textwrap import indent
from typing import Any

import torch
from torch import Tensor, nn

from ..config.recipe import Recipe, Train, seconds
from ..counts import format_count
from ..data.preprocess import Note
from ..data.schema import FieldKind
from ..errors import RecipeError, RunError
from ..layers.cells import MakeCell
from ..schemas import Start as StartShape
from ..tasks.auto import settle
from ..tasks.task import Feed, Task, TaskData
from ..training.checkpoints import Checkpoints
from ..training.devices import Machine, choose_device
from ..training.events import Events
from ..training.files import json_bytes, read_json, sha256, write_atomically
from ..training.loop import evaluation_mode, fit
from ..training.manifests import compute_sums, read_manifest, replace_file, write_manifest
from ..training.memory import keep_memory
from ..training.probe import Stopped, estimate_seconds, fit_steps_to_time, format_duration
from ..training.processes import ProcessGroup, shutdown
from ..training.records import Record
from ..training.schedules import learning_rate_at
from ..training.tensors import copy_weights, load_weights, read_tensors, tensor_bytes
from .data_report import describe_all
from .folder import (
    CARD,
    MIXTURE,
    RECORDS,
    SCORES,
    SETTLED,
    WEIGHTS,
    RecordLog,
    build_report,
    check_cell,
    read_config,
    read_data,
    read_last_change,
    read_task,
    reopen,
    write_header,
)
from .foreign import declare_run
from .json_output import drop_undefined, make_record_json, make_score_json, make_score_report
from .model_card import make_example_command, write_card
from .notes import yield_notes
from .start import Start, declare_with_start, describe_start
from .workers import choose_watch

JUDGED = 500  # validation examples at most on which the baselines are compared with a run that is scored on test


class Pipeline:
    """One call of `train`: where it writes, on what it computes, and what has been built so far."""

    task: Task
    prepared: TaskData
    model: nn.Module

    def __init__(
        self,
        folder: Path,
        machine: Machine,
        processes: ProcessGroup,
        stop: threading.Event | None,
        fields: Mapping[str, FieldKind] | None = None,
    ) -> None:
        self.folder, self.machine, self.processes, self.stop = folder, machine, processes, stop
        self.fields = fields  # a person's own, by side
        self.log = RecordLog(folder / RECORDS)
        self.checkpoints = Checkpoints(folder / "checkpoints")
        self.step = next(iter(self.checkpoints.steps()), 0)  # which a note is about
        self.most_steps = 0  # that are worth the time; 0 is any number
        self.best: dict[str, Tensor] | None = None  # the best weights, as they are in the folder
        self.start: Start | None = None  # the run to start from, if its weights are needed
        self.carried: dict[str, Any] = {}  # the fields that come from it
        self.loaded: StartShape | None = None  # what was taken from it
        self.knows = False  # whether the model begins with something about the targets

    def run(
        self, recipe: Recipe, examples: object, cell: MakeCell | None, before: int | None, changed_data: bool
    ) -> Iterator[Record]:
        """All of it; a run that was begun for so many steps `before` is taken up again."""
        if resumed := before is not None:
            self.check_steps(before, recipe.train.steps)
        for sentence in self.log.damage:
            yield self.note(sentence)
        yield from self.prepare_data(recipe, examples, resumed, changed_data, cell)
        yield from self.build_model(cell, resumed)
        if before is None:
            yield from self.write_header()
        elif recipe.train.steps != before:
            yield from self.change_steps(before)
        changed = read_last_change(self.folder)
        orders = {
            "recipe": self.task.recipe.model_dump(mode="json"),
            "data": self.prepared.fingerprint,
            "changed": changed,
            "known": None if changed < 0 else self.task.to_json(),
            "carried": {side: field.to_json() for side, field in self.carried.items()},
        }
        self.processes.broadcast(json_bytes(orders))
        end = yield from self.fit(resumed, changed)
        shutdown()
        if end is not None:
            yield from self.score_and_save(end)

    # --- what is said ---

    def note(self, text: str, **details: Any) -> Record:
        return self.write(Record("note", self.step, text=text, details=details))

    def write(self, record: Record) -> Record:
        self.log.append(make_record_json(record), synced=bool(record.scores))
        return record

    # --- before the first step ---

    def prepare_data(
        self, recipe: Recipe, examples: object, resumed: bool, changed_data: bool, cell: MakeCell | None
    ) -> Generator[Record, None, None]:
        """Read the data; of a run that has begun, the same as then."""
        for sentence in () if resumed else recipe.notes:
            yield self.note(sentence)
        if examples is not None and recipe.task == "language" and recipe.data.documents != "file" and not resumed:
            yield self.note("each text is a document, read from its own beginning (data.documents)")

        def prepare(note: Note) -> tuple[Task, TaskData]:
            if resumed:
                return self.prepare_again(recipe, examples, changed_data, note, cell)
            settled, sentence, self.most_steps = settle(recipe, examples, self.fields)
            if sentence:
                note(sentence)
            declaration, self.start, self.carried = declare_with_start(settled, self.fields, cell)
            return declaration.prepare(settled.resolved(), note, examples)

        self.task, self.prepared = yield from yield_notes(prepare, self.stop, self.note)

    def prepare_again(
        self, recipe: Recipe, examples: object, allowed: bool, note: Note, cell: MakeCell | None
    ) -> tuple[Task, TaskData]:
        """The data as it was or, if that is allowed, changed, but read as the run has learned to."""
        declared, known = declare_run(recipe, self.fields), read_data(self.folder)
        saved = read_json(self.folder / "task.json")
        if start := read_config(self.folder).start:
            stored = read_task(self.folder, recipe, cell, self.fields)
            declared, self.carried = stored.declaration, {side: stored.fields[side] for side in start.fields}
        changes = [change.model_dump() for change in known.changes]
        task, prepared = declared.prepare(recipe, note, examples, saved if changes else None)
        if known.fingerprint == prepared.fingerprint:
            return task, prepared
        if not allowed:
            raise RunError(
                f"{self.folder}: the data has changed since this run began; resume anyway with "
                "--changed-data, or train into another folder"
            )
        task, prepared = declared.prepare(recipe, note, examples, saved)
        newest = self.checkpoints.find_newest()
        changes = [*changes, {"step": newest.step if newest else 0, "fingerprint": known.fingerprint}]
        about = {"fingerprint": prepared.fingerprint, "report": build_report(task, prepared), "changes": changes}
        replace_file(self.folder, "data.json", json_bytes(about))
        note(f"the data has changed: after step {changes[-1]['step']} this run is trained on what is there now")
        return task, prepared

    def build_model(self, cell: MakeCell | None, resumed: bool) -> Iterator[Record]:
        """A new model, on its device."""
        task = self.task
        if resumed:
            check_cell(self.folder, cell)
        task.cell = cell
        for name in ("device", "precision"):
            task.recipe = task.recipe.changed(f"train.{name}", getattr(self.machine, name))
        torch.manual_seed(task.recipe.train.seed)
        self.model = task.shape.build()  # drawn on the processor, so that it is the same everywhere
        sentences: list[str] = []
        self.knows = task.initialize(self.model, sentences.append)
        self.load_start(cell, resumed, sentences.append)
        self.model.to(choose_device(self.machine.device))
        for sentence in () if resumed else sentences:
            yield self.note(sentence)

    def load_start(self, cell: MakeCell | None, resumed: bool, note: Note) -> None:
        """Begin with the weights of the run that this one starts from; from a checkpoint on they are not needed."""
        if not self.task.recipe.model.start or (resumed and self.checkpoints.find_newest()):
            return
        start = self.start or Start(self.task.recipe.model.start, cell)
        if resumed and (known := read_config(self.folder).start) and known.sha256 != start.sum:
            raise RunError(
                f"{self.folder}: was begun with weights of {start.folder} that have changed since, and has no "
                "checkpoint yet: train into another folder"
            )
        self.loaded = start.load_into(self.model, self.task)
        self.loaded = self.loaded.model_copy(update={"fields": list(self.carried)})
        note(describe_start(self.loaded, self.model))
        if not any(name.startswith("head.") for name in self.loaded.loaded):
            self.task.shape.begin_head(self.model, note)

    def write_header(self) -> Iterator[Record]:
        """Settle what depends on how fast this machine is, by trial steps, and write what will not change any more."""
        task, feed = self.task, Feed(self.task, self.prepared, self.stop)
        for line in describe_all(task, self.prepared):
            yield self.note(line)
        objective = task.objective(self.model)
        if budget := task.recipe.train.time:
            yield self.note(f"measuring how many steps fit into {budget}")
            steps, every = fit_steps_to_time(seconds(budget), objective, feed, task.recipe.train, self.validate_for)
            if 0 < self.most_steps < steps:
                fitting = f"{format_count(steps, 'step')} would fit, but {self.most_steps:,} are enough"
                yield self.note(f"{fitting} for so few examples; train.steps asks for another number")
                steps, every = self.most_steps, max(1, self.most_steps // 20)
            task.recipe = task.recipe.changed("train.steps", steps).changed("train.validate_every", every).resolved()
            duration = float(seconds(budget))
        else:
            duration = estimate_seconds(objective, feed, task.recipe.train)
        if self.stop is not None and self.stop.is_set():
            raise Stopped
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 10)
        about = {"machine": self.machine.to_json(), "start": self.loaded and self.loaded.model_dump()}
        write_header(self.folder, task, self.prepared, self.model, about)
        details = self.details() | {"seconds": duration, "megabytes": megabytes}
        yield self.note(
            "{parameters:,} parameters; {steps:,} steps".format(**details)
            + f" in {self.machine} take about {format_duration(duration)}, "
            f"{'validations included' if budget else 'validations not counted'}; {megabytes:,.0f} MB of memory so far",
            **details,
        )

    def details(self) -> dict[str, Any]:
        """Steps, parameters and machine, as numbers."""
        names = "device", "precision", "threads", "processes", "kernels"
        machine = {name: getattr(self.machine, name) for name in names}
        size = sum(parameter.numel() for parameter in self.model.parameters())
        return {"steps": self.task.recipe.train.steps, "parameters": size, **machine}

    def check_steps(self, before: int, steps: int) -> None:
        """Refuse a number of steps that this run cannot come to."""
        if steps == before:
            return
        if steps <= self.step:
            made = format_count(self.step, "step")
            raise RecipeError(f"{self.folder}: train.steps is {steps}, but this run has made {made} already")
        if self.step < before and SCORES in read_manifest(self.folder):
            raise RecipeError(
                f"{self.folder}: train.patience has ended this run at step {self.step} of {before}, so that more steps "
                "change nothing; train into another folder"
            )

    def change_steps(self, before: int) -> Iterator[Record]:
        """Go on to another number of steps than the run was begun for, and say what that changes."""
        settings = self.task.recipe.train
        reopen(self.folder, self.task.recipe)
        apart, begun = [], format_count(before, "step")
        if settings.schedule in ("cosine", "ramp-times-cosine", "linear") and self.step:
            rate = learning_rate_at(self.step + 1, settings)
            apart.append(f"the learning rate was that of {begun} so far, and is {rate:.2g} from here on")
        if settings.teacher_forcing_schedule != "constant" and self.step:
            apart.append(f"teacher forcing was that of {begun} so far")
        if self.step == before and before % settings.validate_every:
            apart.append(f"step {before:,} was validated, and its weights stay unless a later step is better")
        yield self.note(
            f"this run was begun for {begun} and goes on to {settings.steps:,}, "
            + (f"but not as if it had been begun for these: {'; '.join(apart)}" if apart else "as if begun for these")
        )

    # --- the steps ---

    def sample_validation(self, settings: Train) -> TaskData:
        """The data with as much of its validation part as a validation during training reads: counted, not timed, so
        that the same run validates on the same examples."""
        return self.prepared.sample_validation(settings.validation_tokens)

    def validate_for(self, settings: Train) -> dict[str, float]:
        return self.task.shape.validate(self.model, self.sample_validation(settings))

    def note_resuming(self, step: int) -> Iterator[Record]:
        """Training goes on with the record of this step: it, and what came after it, is written again."""
        self.step = step
        self.log.forget(step)
        for reason in self.checkpoints.skipped_checkpoints:
            yield self.note(f"a damaged checkpoint is passed over: {reason}")
        steps = self.task.recipe.train.steps
        yield self.note(f"going on from step {step:,} of {steps:,} in {self.machine}", **self.details())

    def fit(self, resumed: bool, changed: int) -> Generator[Record, None, Record | None]:
        """Train; every record goes into the folder before it is yielded, and so do the best weights.

        The record of the end is not yielded but returned: the final scores are still missing in it.
        """
        settings = self.task.recipe.train
        self.checkpoints.keep = settings.keep_checkpoints
        sample = self.sample_validation(settings)
        records = fit(
            self.task.objective(self.model),
            Feed(self.task, self.prepared),
            settings,
            lambda: self.task.shape.validate(self.model, sample),
            self.checkpoints,
            self.stop,
            self.processes,
            changed,
            choose_watch(settings),
            judge_start=self.knows and self.loaded is None,
        )
        end, first = None, True
        with keep_memory(), closing(Events(self.folder)) as events:
            events.add_text("recipe", indent(self.task.recipe.to_toml(comments=False), "    "), 0)
            for record in records:
                if first and resumed:
                    yield from self.note_resuming(record.step)
                self.step, first = record.step, False
                if record.best:
                    self.best = copy_weights(self.model)
                    replace_file(self.folder, WEIGHTS, tensor_bytes(self.best))
                events.add(record, self.model)
                if record.kind == "end":
                    end = record
                else:
                    yield self.write(record)
                if record.kind == "validation":
                    with evaluation_mode(self.model):
                        sentence = self.task.illustrate(self.model, sample)
                    if sentence:
                        yield self.note(sentence)
        return end

    # --- the end ---

    def score_and_save(self, end: Record) -> Iterator[Record]:
        """Score the best weights on the test part, write the card, vouch for everything."""
        folder, task = self.folder, self.task
        if self.best is None:
            if not (folder / WEIGHTS).exists():
                self.write(end)
                raise RunError(
                    f"{folder}: no validation gave a finite loss, so there are no weights to keep; "
                    "lower train.learning_rate"
                )
            self.best = read_tensors(folder / WEIGHTS)  # they were found before this training was taken up
        load_weights(self.model, self.best, folder / WEIGHTS)
        net: Any = self.model.eval()
        model, mixture = net, None
        if fitted := task.fit_mixture(net, self.prepared):
            mixture, sentences = fitted
            model = mixture.wrap(net)
            for sentence in sentences:
                yield self.note(sentence)
        # Where nothing was kept apart for the test, what was validated on is the best there is, and said to be that.
        parts = {part: task.shape.examples(self.prepared, part) for part in ("test", "validation")}
        part = "test" if len(parts["test"]) else "validation"
        yield self.note(f"scoring on {format_count(len(parts[part]), f'{part} example')}")
        scores = task.score(model, parts[part])
        if undefined := scores.keys() - drop_undefined(scores).keys():
            yield self.note(f"not defined on these examples, and left out: {', '.join(sorted(undefined))}")
        with evaluation_mode(model):
            measured = task.shape.validate(model, self.prepared)
        whole = {name: value for name, value in measured.items() if isfinite(value)}
        judged = task.judge(model, pick_some(parts["validation"], JUDGED))
        result = make_score_report(folder, task, part, parts[part], scores) | {
            "validation": whole,
            "validation_scores": {name: make_score_json(one) for name, one in drop_undefined(judged).items()},
        }
        on = ", ".join(f"{name} {value:.3f}" for name, value in whole.items())
        yield self.note(f"on {format_count(len(parts['validation']), 'validation example')} the best weights have {on}")
        text = write_card(folder, task.recipe, result, build_report(task, self.prepared))
        with closing(Events(folder)) as events:
            events.add_scores(result["scores"], end.step)
            events.add_text("card", text, end.step)
        contents = {SCORES: json_bytes(result), CARD: text.encode()}
        if mixture is not None:
            contents[MIXTURE] = tensor_bytes(
                {name: torch.from_numpy(array) for name, array in mixture.to_arrays().items()}
            )
        for name, content in contents.items():
            write_atomically(folder / name, content)
        yield self.note(f"the run is in {folder}; ask it: seqloom {make_example_command(task.recipe, folder)}")
        record = self.write(replace(end, final={name: value for name, value in result.items() if name != "run"}))
        known = read_manifest(folder)
        sums = {name: known[name] for name in (*SETTLED, WEIGHTS)} | compute_sums(contents)
        write_manifest(folder, sums | {RECORDS: [sha256(folder / RECORDS)]})
        yield record


def pick_some(examples: Sequence[Any], most: int) -> Sequence[Any]:
    """No more than so many of them, evenly from all."""
    return examples[:: -(-len(examples) // most)] if len(examples) > most else examples
