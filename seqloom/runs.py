"""A run is a folder: everything about one training, self-sufficient. Every command writes one or asks one.

recipe.toml        resolved: defaults are never consulted again
config.json        what the weights fit: the format, the vocabulary sizes, the number of parameters
task.json          what was learnt about reading: tokenizers and their vocabularies
model.safetensors  the best weights
data.json          the data's report and fingerprint
records.jsonl      what training told, line by line
scores.json        the final scores, each with its baselines
int8.json          what weights of eight bits do to the scores, once that was measured
README.md          a card for people
version            of this layout, and of the program that wrote it
manifest.json      SHA-256 sums of the files above
checkpoints/       what training goes on from; events.* for TensorBoard
"""

import json
import os
import platform
import resource
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .cards import card, data_lines
from .data.ragged import Texts
from .errors import DataError, RecipeError, RunError, SeqloomError
from .layers import compiled
from .layers.cells import MakeCell
from .models import Generator, Labeller, device_of
from .recipe import Recipe, Train, seconds
from .search import Recorder, Tree
from .tasks import TASKS
from .tasks.about import About
from .tasks.asking import Answering, Rules
from .tasks.base import Prediction, Prepared, Question, Scored, Task, Tell
from .tasks.generating import Ask, Continuation, Generates, Generation
from .tasks.tells import Tells
from .training.checkpoints import Checkpoints
from .training.devices import Machine, choose, machine_for
from .training.events import Events
from .training.files import json_bytes, locked, read_bytes, read_json, sweep, telling, write_atomically
from .training.loop import Rows, fit
from .training.manifests import MANIFEST, check_manifest, read_manifest, replace, write_manifest
from .training.probe import estimate, steps_for
from .training.processes import Ranks, join, part_company
from .training.records import Record
from .training.tensors import load_weights, read_tensors, tensor_bytes, weights_of
from .training.watching import MakeWatch
from .training.ways import ways_here

if TYPE_CHECKING:
    from .look import Look
    from .look.findings import Finding
    from .look.history import History

FORMAT = 1  # of the layout; a folder of a higher one is refused
SETTLED = ("recipe.toml", "config.json", "task.json", "data.json", "version")  # written once, before step 1
TRIED = 15.0  # seconds that the trials of a diagnosis may take
WEIGHTS, RECORDS, SCORES, CARD = "model.safetensors", "records.jsonl", "scores.json", "README.md"
EIGHT = "int8.json"


def silent(line: str) -> None:
    """Tell nobody."""


class Feed:
    """The training part of a task's data, as the loop wants it."""

    def __init__(self, task: Task, prepared: Prepared) -> None:
        self.task, self.prepared = task, prepared

    def order(self, epoch: int) -> Sequence[Rows]:
        return self.task.order(self.prepared, epoch)

    def batch(self, rows: Rows) -> Any:
        return self.task.batch(self.prepared, rows)


# --- training a run -------------------------------------------------------------------------------------------


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
    Set `stop` to end after the step that is under way, with a checkpoint. A run that has come to its end is scored on
    the test part before the iterator ends.
    """
    folder, ranks = Path(into), join()
    if not ranks.first:
        assist(ranks, cell, stop)
        return
    begun = resume and (folder / MANIFEST).exists()
    if recipe is None and not begun:
        raise RunError(f"{folder}: there is nothing to go on with: it holds no run that has begun")
    if not begun:
        make_room(folder, resume)
    with locked(folder):
        sweep(folder)
        if begun:
            recipe = same_recipe(folder, recipe)
        assert recipe is not None
        task, prepared = gather(folder, recipe, examples, begun, changed_data, tell)
        task.cell = cell
        model = settle(folder, task, prepared, begun, ranks.count, tell)
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
        part_company()
        if ended:
            finish(folder, task, prepared, model, tell)


def assist(ranks: Ranks, cell: MakeCell | None, stop: threading.Event | None) -> None:
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
        objective, settings = task.objective(task.build().to(choose(recipe.train.device))), task.recipe.train
        feed, changed, watch = Feed(task, prepared), asked["changed"], watch_of(settings)
        for _ in fit(objective, feed, settings, dict, stop=stop, ranks=ranks, changed=changed, watch=watch):
            pass
    part_company()


def next_folder(parent: Path, name: str) -> Path:
    """parent/name, or the first parent/name-2, -3 … that is free."""
    number, folder = 1, parent / name
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


def make_room(folder: Path, resume: bool) -> None:
    """A folder to begin in. What a killed beginning has left is no obstacle when resuming."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not resume)):
        raise RunError(f"{folder}: is not an empty folder; name another with --into, or go on with it: --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made ({error.strerror or error})") from error


def same_recipe(folder: Path, given: Recipe | None) -> Recipe:
    """The folder's own recipe; one that is given beside it must say the same."""
    check_manifest(folder, SETTLED)
    own = Recipe.read(folder / "recipe.toml")
    if given is None:
        return own
    ours, theirs = flat(own.model_dump()), flat(given.resolved().model_dump())
    settled = set() if given.search.max_length else {"search.max_length"}  # what followed when the run began
    settled |= {f"train.{name}" for name in ("device", "precision") if getattr(given.train, name) == "auto"}
    if given.train.time:
        settled |= {f"train.{name}" for name in ("time", "steps", "warmup", "validate_every", "checkpoint_every")}
    for name, value in theirs.items():
        if ours[name] != value and name not in settled and not name.startswith("about."):
            raise RecipeError(
                f"{folder}: was begun with {name} = {ours[name]!r}, not {value!r}; "
                "a run goes on as it began, or begins anew in another folder"
            )
    return own


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def gather(
    folder: Path, recipe: Recipe, examples: object, begun: bool, changed_data: bool, tell: Tell
) -> tuple[Task, Prepared]:
    """The data, read; of a run that has begun, the same as then."""
    if examples is None:
        recipe.check_data()
    choose(recipe.train.device)  # what is not there is said before anything is waited for
    if begun:
        return read_again(folder, recipe, examples, changed_data, tell)
    return TASKS[recipe.task].form(recipe).prepare(recipe.resolved(), tell, examples)


def settle(folder: Path, task: Task, prepared: Prepared, begun: bool, processes: int, tell: Tell) -> nn.Module:
    """Everything before step 1: the model is built, and what will not change any more is written."""
    settings = task.recipe.train
    if begun:
        check_cell(folder, task.cell)
    machine = machine_for(settings.device, settings.precision, processes)
    task.recipe = task.recipe.changed("train.device", machine.device).changed("train.precision", machine.precision)
    torch.manual_seed(settings.seed)
    model = task.build()  # drawn on the processor, so that it is the same everywhere
    task.begin(model, tell if not begun else silent)
    model.to(choose(machine.device))
    if not begun:
        begin(folder, task, prepared, model, machine, processes, tell)
    return model


def begin(
    folder: Path, task: Task, prepared: Prepared, model: nn.Module, machine: Machine, processes: int, tell: Tell
) -> None:
    """Write what will not change any more, and tell what is to come."""
    settings = task.recipe.train
    if settings.time:
        tell(f"measuring how many steps fit into {settings.time}")
        task.recipe = with_steps(task, prepared, model)
    if tell is silent:
        write_settled(folder, task, prepared, model, {"machine": machine.to_json()})
        return
    ways = ways_here(task.objective(model), Feed(task, prepared), settings, processes)
    about = {"machine": machine.to_json(), "ways": None if ways is None else ways.to_json()}
    write_settled(folder, task, prepared, model, about)
    for line in (*prospect(task, prepared, model), f"training in {machine}", *([str(ways)] if ways else [])):
        tell(line)


def read_again(folder: Path, recipe: Recipe, examples: object, allowed: bool, tell: Tell) -> tuple[Task, Prepared]:
    """The data of a run that goes on: as it was, or if that is allowed, changed, but read as the run has learnt to."""
    form, known, saved = (
        TASKS[recipe.task].form(recipe),
        read_json(folder / "data.json"),
        read_json(folder / "task.json"),
    )
    changes = known.get("changes", [])
    task, prepared = form.prepare(recipe, tell, examples, saved if changes else None)
    if known.get("fingerprint") == prepared.fingerprint:
        return task, prepared
    if not allowed:
        raise RunError(
            f"{folder}: the data has changed since this run began; go on with it all the same with --changed-data, or "
            "begin anew in another folder"
        )
    task, prepared = form.prepare(recipe, tell, examples, saved)
    newest = Checkpoints(folder / "checkpoints").newest()
    changes = [*changes, {"step": newest.step if newest else 0, "fingerprint": known.get("fingerprint")}]
    about = {"fingerprint": prepared.fingerprint, "report": report_of(task, prepared), "changes": changes}
    replace(folder, "data.json", json_bytes(about))
    tell(f"the data has changed: after step {changes[-1]['step']} this run is trained on what is there now")
    return task, prepared


def changed_at(folder: Path) -> int:
    """The last step before the data changed; -1 if it never did."""
    changes = read_json(folder / "data.json").get("changes", [])
    return int(changes[-1]["step"]) if changes else -1


def prospect(task: Task, prepared: Prepared, model: nn.Module) -> Iterator[str]:
    """What somebody wants to know before they wait: the data in numbers, the model's size, the time and the memory."""
    yield from (line.replace("**", "") for line in data_lines(report_of(task, prepared)))
    settings = task.recipe.train
    whole = estimate(task.objective(model), Feed(task, prepared), settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 10)
    size = sum(parameter.numel() for parameter in model.parameters())
    yield (
        f"{size:,} parameters; {settings.steps:,} steps take about {spoken(whole)} here, validations not counted; "
        f"{peak:,.0f} MB of memory so far"
    )


def spoken(seconds: float) -> str:
    """A time, as a person says it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{rest} s" if not minutes else f"{minutes} min {rest} s" if minutes < 60 else f"{minutes / 60:.1f} h"


def with_steps(task: Task, prepared: Prepared, model: nn.Module) -> Recipe:
    """The recipe with its time budget turned into steps."""
    recipe, feed = task.recipe, Feed(task, prepared)
    steps = steps_for(
        seconds(recipe.train.time),
        task.objective(model),
        feed,
        recipe.train,
        lambda: task.validate(model, prepared),
    )
    return recipe.changed("train.steps", steps).resolved()


def write_settled(folder: Path, task: Task, prepared: Prepared, model: nn.Module, about: dict[str, Any]) -> None:
    versions = [f"seqloom {metadata.version('seqloom')}", f"torch {torch.__version__}"]
    version = f"{FORMAT}\n{', '.join([*versions, f'python {platform.python_version()}'])}\n"
    settled = {
        "recipe.toml": task.recipe.to_toml(comments=False).encode(),
        "config.json": json_bytes(
            {
                "format": FORMAT,
                "task": task.recipe.task,
                "cell": name_of(task.cell),
                "vocabularies": task.vocabularies(),
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
            }
            | about
        ),
        "task.json": json_bytes(task.saved()),
        "data.json": json_bytes({"fingerprint": prepared.fingerprint, "report": report_of(task, prepared)}),
        "version": version.encode(),
    }
    for name, content in settled.items():
        write_atomically(folder / name, content)
    write_manifest(folder, SETTLED)  # last: a folder with a manifest has begun


def report_of(task: Task, prepared: Prepared) -> dict[str, Any]:
    """What was done to the data, and how much of the training batches is padding."""
    return prepared.report.to_json() | {"padded_share": task.padded_share(prepared)}


def kept_records(
    folder: Path,
    task: Task,
    prepared: Prepared,
    model: nn.Module,
    tell: Tell,
    stop: threading.Event | None,
    ranks: Ranks,
) -> Iterator[Record]:
    """Train; every record goes into the folder before it is told, and the best weights do."""
    settings = task.recipe.train
    checkpoints = Checkpoints(folder / "checkpoints", settings.keep)
    records = fit(
        task.objective(model),
        Feed(task, prepared),
        settings,
        lambda: task.validate(model, prepared),
        checkpoints,
        stop,
        ranks,
        changed_at(folder),
        watch_of(settings),
    )
    first = True
    with closing(Events(folder)) as events:
        for record in records:
            if first:
                for reason in checkpoints.passed_over:
                    tell(f"a damaged checkpoint is passed over: {reason}")
                forget_records(folder / RECORDS, record.step)
                first = False
            if record.best:
                replace(folder, WEIGHTS, tensor_bytes(weights_of(model)))
            append_line(folder / RECORDS, json.dumps(record.to_json(), ensure_ascii=False), synced=bool(record.scores))
            events.add(record)
            yield record


def watch_of(settings: Train) -> MakeWatch | None:
    """Who looks at the weights while they are learnt, if anybody is to."""
    if not settings.watch:
        return None
    from .look.watching import Watching

    return Watching


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl; none of a folder that came without them."""
    return [json.loads(line) for line in read_bytes(path).splitlines()] if path.exists() else []


def append_line(path: Path, line: str, synced: bool) -> None:
    with telling(path, "cannot be written"), path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        if synced:  # not every line: a lost one is told again on resuming
            os.fsync(file.fileno())


def forget_records(path: Path, step: int) -> None:
    """Take back the records from this step on: a resumed run tells them again. A line cut by a kill goes too."""
    if not path.exists():
        return
    kept = []
    for line in read_bytes(path).splitlines(keepends=True):
        try:
            if json.loads(line)["step"] < step and line.endswith(b"\n"):
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    write_atomically(path, b"".join(kept))


def finish(folder: Path, task: Task, prepared: Prepared, model: nn.Module, tell: Tell) -> None:
    """Score the best weights on the test part, write the card, vouch for everything."""
    if not (folder / WEIGHTS).exists():
        raise RunError(f"{folder}: no validation gave a finite loss, so there are no weights to keep; lower train.rate")
    load_weights(model, read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    model.eval()
    # Where nothing was kept apart for the test, what was validated on is the best there is, and said to be that.
    parts = {part: task.examples(prepared, part) for part in ("test", "validation")}
    part = "test" if len(parts["test"]) else "validation"
    tell(f"scoring on {len(parts[part]):,} {part} examples")
    result = report(folder, task, part, parts[part], task.score(model, parts[part]))
    write_atomically(folder / SCORES, json_bytes(result))
    write_atomically(folder / CARD, card(folder, task.recipe, result, report_of(task, prepared)).encode())
    write_manifest(folder, [*SETTLED, WEIGHTS, RECORDS, SCORES, CARD])


def report(folder: Path, task: Task, split: str, examples: Sequence[Any], scores: dict[str, Scored]) -> dict[str, Any]:
    """Scores as they are stored and as `score --json` prints them; `cut` is of how many not all was read."""
    return {
        "run": str(folder),
        "task": task.recipe.task,
        "split": split,
        "examples": len(examples),
        "cut": task.cut_in(examples),
        "scores": {name: stored(one) for name, one in scores.items()},
    }


def stored(one: Scored) -> dict[str, Any]:
    by_length = {"by_length": one.by_length} if one.by_length else {}
    return one.score.to_json() | {"baselines": one.baselines} | by_length


# --- asking a run ---------------------------------------------------------------------------------------------


class Run:
    """A trained run, ready to be asked."""

    def __init__(self, folder: Path, task: Task, model: nn.Module) -> None:
        self.folder, self.task, self.model = folder, task, model

    @property
    def recipe(self) -> Recipe:
        return self.task.recipe

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.recipe.task} by {self.recipe.model.kind})"

    def predict(self, given: Any, width: int | None = None) -> Sequence[Prediction]:
        """The best answers to one input, best first."""
        [answers] = self.predict_many([given], width)
        return answers

    def predict_many(self, inputs: Sequence[Any], width: int | None = None) -> Sequence[Sequence[Prediction]]:
        """The best answers to each input."""
        return self.task.predict(self.model, inputs, width)

    def answer(self, inputs: Sequence[Any], ask: Answering) -> Sequence[Sequence[Prediction]]:
        """The answers to each input of a task that writes them, searched for in any way: by a beam, or drawn."""
        return self._answerer.answer(self._generator, inputs, ask)

    def stream(self, given: Any, ask: Answering | None = None) -> Iterator[str]:
        """The answer to one input piece by piece, as it is written; stop iterating, and nothing more is done."""
        return self._answerer.pieces(self._generator, given, ask or Answering(1))

    @property
    def _generator(self) -> Generator:
        assert isinstance(self.model, Generator)
        return self.model

    @property
    def _answerer(self) -> Tells:
        if not isinstance(self.task, Tells):
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} does not write its answers, so there is "
                "no way of searching for them to choose"
            )
        return self.task

    def generate(
        self,
        prompt: str = "",
        *,
        length: int = Ask.length,
        temperature: float = Ask.temperature,
        top_k: int = Ask.top_k,
        top_p: float = Ask.top_p,
        min_p: float = Ask.min_p,
        seed: int = Ask.seed,
        count: int = Ask.count,
        alternatives: int = Ask.alternatives,
        rules: Rules | None = None,
    ) -> Generation:
        """Texts that begin with `prompt`: iterate for pieces as they come, or `finish()` for all of them whole."""
        ask = Ask(length, temperature, top_k, top_p, min_p, seed, count, alternatives, rules or Rules())
        return self._writer.generate(self.model, prompt, ask)

    def check(self, texts: Sequence[Continuation]) -> dict[str, Any]:
        """Shares of what was generated: how much ends, is well formed, and stands in the training texts.

        The last only where those are still at hand: a run holds no examples.
        """
        writer = self._writer
        return writer.check(texts, self._training_texts())

    def _training_texts(self) -> Iterable[str]:
        """The texts that the model was trained on, if the recipe's files are there and still the same."""
        if not self.recipe.data.sample and not self.recipe.data.train:
            return ()
        try:
            _, prepared = type(self.task).prepare(self.recipe, silent)
        except DataError:
            return ()
        same = prepared.fingerprint == read_json(self.folder / "data.json").get("fingerprint")
        found = prepared.splits["train"].raws.get("target") if same else None
        return found if isinstance(found, Texts) else ()

    def keep(self, texts: Sequence[Continuation], folder: Path | str) -> list[str]:
        """Write what was generated into a folder, as files that a person can use; a line about each."""
        writer, folder = self._writer, Path(folder)
        with telling(folder, "cannot be written into"):
            folder.mkdir(parents=True, exist_ok=True)
            return list(writer.keep(texts, folder))

    @property
    def _writer(self) -> Generates:
        if not isinstance(self.task, Generates):
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} answers what it is asked: seqloom predict; "
                "only language and music are written freely, and images drawn"
            )
        return self.task

    def score(self, *files: Path | str) -> dict[str, Any]:
        """Scores on a file of one's own (or two parallel ones), each with its baselines."""
        examples = self.task.read([str(file) for file in files])
        scores = self.task.score(self.model, examples)
        return report(self.folder, self.task, " ".join(map(str, files)), examples, scores)

    @cached_property
    def scores(self) -> dict[str, Any]:
        """The scores on the test part that the run ended with."""
        if not (self.folder / SCORES).exists():
            raise RunError(
                f"{self.folder}: has no final scores yet; go on with: seqloom train --into {self.folder} --resume"
            )
        return read_json(self.folder / SCORES) | {"run": str(self.folder)}

    def look(self, given: Any = None, answer: str | None = None, *, examples: object = None) -> "Look":
        """What happens inside while the model answers this input, or is given this answer.

        Without an input, the first of the run's own test part; `examples` are needed again if they came from Python.
        """
        from .look import Look
        from .look.chart_picture import Picture
        from .reports import batches

        assert isinstance(self.model, Generator | Labeller)
        given = self._first(examples) if given is None else given
        answer = self.predict(given)[0].output if answer is None else answer
        shown = self.task.show(given, answer)
        model = self.model if device_of(self.model).type == "cpu" else deepcopy(self.model).cpu()
        title = f"{given if isinstance(given, str) else 'the input'} → {answer}"
        picture = None if shown.picture is None else Picture(shown.picture, self.recipe.model.patch)
        return Look(
            model,
            (shown.batch, shown.elements, shown.told),
            title,
            shown.read,
            shown.symbols,
            self.history,
            partial(batches, self.folder, self.task, examples),
            picture,
            (lambda: self.searched(given)) if isinstance(self.task, About) else None,
        )

    def report(
        self, path: Path | str, given: Any = None, answer: str | None = None, *, examples: object = None
    ) -> Path:
        """One page about all of it, as a file that needs no network; looked into on this input, or one of its own."""
        from . import reports
        from .look.charts import written
        from .look.report import report

        given = self._first(examples) if given is None else given
        look = self.look(given, answer, examples=examples)
        try:
            findings: list[Finding] | str = self.diagnose(examples)
        except SeqloomError as error:
            findings = f"It could not be examined: {error}."
        scores = self.scores if (self.folder / SCORES).exists() else {}
        answered = reports.answers(self.folder, self.task, self.model, examples)
        return written(Path(path), report(reports.story(self.folder, self.task, look, scores, answered, findings)))

    @cached_property
    def history(self) -> "History":
        """What the run remembers of its training."""
        from .look.history import History

        return History(self.recipe, read_records(self.folder / RECORDS))

    def own_data(self, examples: object = None) -> Prepared:
        """The examples that the run was trained on, read again; those from Python have to be given again."""
        from .reports import own_data

        return own_data(self.folder, self.task, examples)

    def questions(self, at_most: int, examples: object = None) -> tuple[str, list[Question]]:
        """Some examples of the test part, or else of the validation part, which is named; as they are asked."""
        from .reports import questions

        return questions(self.task, self.own_data(examples), at_most)

    def _first(self, examples: object) -> Any:
        _, asked = self.questions(1, examples)
        if not asked:
            raise RunError(f"{self.folder}: its own data has no example that could be shown; name an input")
        return asked[0].given if asked[0].whole is None else asked[0].whole

    def searched(self, given: Any, width: int | None = None) -> Tree:
        """The beam search for the answer to one input, step by step."""
        assert isinstance(self.task, About)
        recorder = Recorder()
        self.task.searched(self._generator, [given], Answering(width or self.recipe.search.width), recorder)
        return recorder.trees[0]

    def quantise(self, *files: Path | str) -> dict[str, Any]:
        """Scores with weights of eight bits beside those with all of them, on files or on the validation part.

        They are kept in the run folder; afterwards this run goes on with eight bits.
        """
        if files:
            examples, part = self.task.read([str(file) for file in files]), " ".join(map(str, files))
        else:
            task, prepared = type(self.task).prepare(self.recipe, silent)
            examples, part = task.examples(prepared, "validation"), "validation"
        found = []
        for eight in (False, True):
            if eight:
                eight_bits(self)
            scores = self.task.score(self.model, examples)
            found.append({name: one.score.value for name, one in scores.items()})
        plain, rounded = found
        measured = {
            name: {"float32": plain[name], "int8": rounded[name], "change": rounded[name] - plain[name]}
            for name in plain
        }
        result = {"run": str(self.folder), "split": part, "examples": len(examples), "scores": measured}
        replace(self.folder, EIGHT, json_bytes(result))
        return result

    def diagnose(self, examples: object = None, seconds: float = TRIED) -> "list[Finding]":
        """What ails the model, the worst first: see `diagnose`."""
        return diagnose(self.folder, self.task.cell, examples, seconds)


def diagnose(
    folder: Path | str,
    cell: MakeCell | None = None,
    examples: object = None,
    seconds: float = TRIED,
    tell: Tell = silent,
) -> "list[Finding]":
    """What ails a run, the worst first, also one that broke off: from its records, its scores, its training examples
    and, where it has not learnt, from short trials that take about so many `seconds` in all.

    The examples are read again where the recipe says; those that came from Python have to be given again. Where they
    are not at hand, the records have to do.
    """
    from .checkups import Told, checkup
    from .look.doctor import diagnose as judge
    from .reports import own_data

    folder = Path(folder)
    check_version(folder)
    recipe = own_recipe(folder)
    check_cell(folder, cell)
    task = TASKS[recipe.task].form(recipe).restore(recipe, read_json(folder / "task.json"))
    task.cell = cell
    scores = read_json(folder / SCORES)["scores"] if (folder / SCORES).exists() else {}
    told = Told(read_records(folder / RECORDS), scores, read_json(folder / "data.json")["report"])
    prepared = None
    try:
        prepared = own_data(folder, task, examples)
    except SeqloomError as error:
        tell(f"the training examples are not at hand, so only the records are looked at: {error}")
    model = load(folder, cell, "cpu").model if WEIGHTS in read_manifest(folder) else None
    assert model is None or isinstance(model, Generator | Labeller)
    return judge(checkup(task, told, model, prepared, seconds))


def load(folder: Path | str, cell: MakeCell | None = None, device: str = "auto", int8: bool = False) -> Run:
    """A run from its folder; it needs neither the data nor the network. Nothing in the folder is run.

    A run that was trained with a cell of one's own needs that `cell` again. The `device`, as `train.device` has them,
    need not be the one it was trained on. With `int8`, what it writes with are weights of eight bits: quicker, and less
    exact; `Run.quantise` says by how much.
    """
    folder = Path(folder)
    check_version(folder)
    if WEIGHTS not in read_manifest(folder):
        raise RunError(f"{folder}: has no trained model yet: go on with: seqloom train --into {folder} --resume")
    check_manifest(folder, (*SETTLED, WEIGHTS))
    recipe = own_recipe(folder)
    task = TASKS[recipe.task].form(recipe).restore(recipe, read_json(folder / "task.json"))
    check_cell(folder, cell)
    task.cell = cell
    config = read_json(folder / "config.json")
    if config.get("vocabularies") != task.vocabularies():
        raise RunError(f"{folder}: the vocabularies in task.json are not of the sizes that config.json says")
    weights = read_tensors(folder / WEIGHTS)
    with torch.device("meta"):  # costs nothing: a recipe that asks for more than the weights fill is refused in time
        size = sum(parameter.numel() for parameter in task.build().parameters())
    if size > sum(tensor.numel() for tensor in weights.values()):
        raise RunError(f"{folder}: the recipe describes a model of {size:,} parameters, more than {WEIGHTS} holds")
    model = task.build()
    load_weights(model, weights, folder / WEIGHTS)
    run = Run(folder, task, model.to(choose(device)).eval())
    if int8:
        eight_bits(run)
    return run


def eight_bits(run: Run) -> None:
    """Let a run go on with weights of eight bits."""
    if not isinstance(run.model, Generator):
        raise RunError(f"{run.folder}: weights of eight bits are for what writes, but its task is {run.recipe.task}")
    run.model.round_weights()
    compiled.use()  # without a compiler it is no quicker, which is said


def name_of(cell: MakeCell | None) -> str | None:
    return None if cell is None else getattr(cell, "__name__", type(cell).__name__)


def check_cell(folder: Path, cell: MakeCell | None) -> None:
    """A cell of one's own is code: it comes from Python, and a folder only says its name."""
    wanted = read_json(folder / "config.json").get("cell")
    if wanted != name_of(cell):
        raise RunError(
            f"{folder}: was trained with {f'a cell of its own, {wanted}' if wanted else 'a built-in cell'}, but "
            f"{f'{name_of(cell)} is given' if cell else 'none is given: load(folder, cell=…) in Python'}"
        )


def check_version(folder: Path) -> None:
    if not folder.is_dir():
        raise RunError(f"{folder}: is no run folder; seqloom train RECIPE --into {folder} makes one")
    if not (folder / "version").exists() or not (folder / MANIFEST).exists():
        raise RunError(f"{folder}: is no run folder, or one whose training never began")
    number = read_bytes(folder / "version")[:20].split(b"\n")[0]
    if not number.isdigit():
        raise RunError(f"{folder / 'version'}: does not begin with the number of a run format")
    if int(number) > FORMAT:
        raise RunError(
            f"{folder}: was written by a newer seqloom (run format {int(number)}, this one reads {FORMAT}): update"
        )


def own_recipe(folder: Path) -> Recipe:
    try:
        return Recipe.read(folder / "recipe.toml")
    except RecipeError as error:
        raise RunError(str(error)) from None
