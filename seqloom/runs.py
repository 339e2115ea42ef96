"""A run is a folder: everything about one training, self-sufficient. Every command writes one or asks one.

recipe.toml        resolved: defaults are never consulted again
config.json        what the weights fit: the format, the vocabulary sizes, the number of parameters
task.json          what was learnt about reading: tokenizers and their vocabularies
model.safetensors  the best weights
data.json          the data's report and fingerprint
records.jsonl      what training told, line by line
scores.json        the final scores, each with its baselines
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
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .cards import card, data_lines
from .errors import RecipeError, RunError, SeqloomError
from .layers.cells import MakeCell
from .models import Generator, Labeller
from .recipe import Recipe, seconds
from .tasks import TASKS
from .tasks.base import Prediction, Prepared, Scored, Task, Tell
from .tasks.generating import Ask, Continuation, Generates, Generation
from .training.checkpoints import Checkpoints
from .training.events import Events
from .training.files import json_bytes, locked, read_bytes, read_json, sweep, telling, write_atomically
from .training.loop import Rows, fit
from .training.manifests import MANIFEST, check_manifest, read_manifest, replace, write_manifest
from .training.probe import estimate, steps_for
from .training.processes import Ranks, join, part_company
from .training.records import Record
from .training.tensors import load_weights, read_tensors, tensor_bytes, weights_of

if TYPE_CHECKING:
    from .look import Look
    from .look.findings import Finding

FORMAT = 1  # of the layout; a folder of a higher one is refused
SETTLED = ("recipe.toml", "config.json", "task.json", "data.json", "version")  # written once, before step 1
TRIED = 15.0  # seconds that the trials of a diagnosis may take
WEIGHTS, RECORDS, SCORES, CARD = "model.safetensors", "records.jsonl", "scores.json", "README.md"


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
    tell: Tell = silent,
    stop: threading.Event | None = None,
) -> Iterator[Record]:
    """Train into a folder and tell what happens; with `resume`, go on where the folder's newest checkpoint stands.

    `examples` from Python take the place of the recipe's files: a list of (source, target), a data frame with the
    recipe's columns, or either by part: {"train": …, "validation": …, "test": …}. Resuming needs them again.
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
        task, prepared, model = settle(folder, recipe, examples, cell, begun, tell)
        if begun and SCORES in read_manifest(folder):
            ranks.share(json_bytes({}))
            tell(f"{folder} is finished: nothing is left to train")
            return
        ranks.share(json_bytes({"recipe": task.recipe.model_dump(mode="json"), "data": prepared.fingerprint}))
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
        task, prepared = TASKS[recipe.task].prepare(recipe, silent)
        if prepared.fingerprint != asked["data"]:
            raise RunError(f"process {ranks.rank} finds other data than the first one: the files must be the same")
        task.cell = cell
        objective = task.objective(task.build())
        for _ in fit(objective, Feed(task, prepared), task.recipe.train, dict, stop=stop, ranks=ranks):
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


def settle(
    folder: Path, recipe: Recipe, examples: object, cell: MakeCell | None, begun: bool, tell: Tell
) -> tuple[Task, Prepared, nn.Module]:
    """Everything before step 1: the data is read, the model built, and what will not change any more is written."""
    if examples is None:
        recipe.check_data()
    task, prepared = TASKS[recipe.task].form(recipe).prepare(recipe.resolved(), tell, examples)
    task.cell = cell
    if begun:
        check_cell(folder, cell)
    if begun and read_json(folder / "data.json").get("fingerprint") != prepared.fingerprint:
        raise RunError(f"{folder}: the data has changed since this run began; begin anew in another folder")
    torch.manual_seed(recipe.train.seed)
    model = task.build()
    task.begin(model, tell if not begun else silent)
    if not begun:
        if recipe.train.time:
            tell(f"measuring how many steps fit into {recipe.train.time}")
            task.recipe = with_steps(task, prepared, model)
        write_settled(folder, task, prepared, model)
        if tell is not silent:
            for line in prospect(task, prepared, model):
                tell(line)
    return task, prepared, model


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


def write_settled(folder: Path, task: Task, prepared: Prepared, model: nn.Module) -> None:
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
    result = report(folder, task.recipe.task, part, len(parts[part]), task.score(model, parts[part]))
    write_atomically(folder / SCORES, json_bytes(result))
    write_atomically(folder / CARD, card(folder, task.recipe, result, report_of(task, prepared)).encode())
    write_manifest(folder, [*SETTLED, WEIGHTS, RECORDS, SCORES, CARD])


def report(folder: Path, task: str, split: str, examples: int, scores: dict[str, Scored]) -> dict[str, Any]:
    """Scores as they are stored and as `score --json` prints them."""
    return {
        "run": str(folder),
        "task": task,
        "split": split,
        "examples": examples,
        "scores": {name: one.score.to_json() | {"baselines": one.baselines} for name, one in scores.items()},
    }


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
    ) -> Generation:
        """Texts that begin with `prompt`: iterate for pieces as they come, or `finish()` for all of them whole."""
        ask = Ask(length, temperature, top_k, top_p, min_p, seed, count, alternatives)
        return self._writer.generate(self.model, prompt, ask)

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
                "only language and music are written freely"
            )
        return self.task

    def score(self, *files: Path | str) -> dict[str, Any]:
        """Scores on a file of one's own (or two parallel ones), each with its baselines."""
        examples = self.task.read([str(file) for file in files])
        scores = self.task.score(self.model, examples)
        return report(self.folder, self.recipe.task, " ".join(map(str, files)), len(examples), scores)

    @cached_property
    def scores(self) -> dict[str, Any]:
        """The scores on the test part that the run ended with."""
        if not (self.folder / SCORES).exists():
            raise RunError(
                f"{self.folder}: has no final scores yet; go on with: seqloom train --into {self.folder} --resume"
            )
        return read_json(self.folder / SCORES) | {"run": str(self.folder)}

    def look(self, given: Any, answer: str | None = None) -> "Look":
        """What happens inside while the model answers this input, or is given this answer."""
        from .look import Look

        assert isinstance(self.model, Generator | Labeller)
        answer = self.predict(given)[0].output if answer is None else answer
        shown = self.task.show(given, answer)
        title = f"{given if isinstance(given, str) else 'the input'} → {answer}"
        return Look(self.model, (shown.batch, shown.elements, shown.told), title, shown.read, shown.symbols)

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

    folder = Path(folder)
    check_version(folder)
    recipe, records = own_recipe(folder), folder / RECORDS
    check_cell(folder, cell)
    task = TASKS[recipe.task].form(recipe).restore(recipe, read_json(folder / "task.json"))
    task.cell = cell
    data = read_json(folder / "data.json")
    told = Told(
        [json.loads(line) for line in read_bytes(records).splitlines()] if records.exists() else [],
        read_json(folder / SCORES)["scores"] if (folder / SCORES).exists() else {},
        data["report"],
    )
    prepared = None
    try:
        if examples is None:
            recipe.check_data()
        _, prepared = TASKS[recipe.task].form(recipe).prepare(recipe, silent, examples)
        if prepared.fingerprint != data.get("fingerprint"):
            raise RunError("the data has changed since this run was trained")
    except SeqloomError as error:
        tell(f"the training examples are not at hand, so only the records are looked at: {error}")
        prepared = None
    model = load(folder, cell).model if WEIGHTS in read_manifest(folder) else None
    assert model is None or isinstance(model, Generator | Labeller)
    return judge(checkup(task, told, model, prepared, seconds))


def load(folder: Path | str, cell: MakeCell | None = None) -> Run:
    """A run from its folder; it needs neither the data nor the network. Nothing in the folder is run.

    A run that was trained with a cell of one's own needs that `cell` again.
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
    return Run(folder, task, model.eval())


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
