"""`train` and `tune`: a recipe becomes a run, or many."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..counts import format_count
from ..errors import RecipeError
from ..runs.begun import has_begun
from ..runs.json_output import print_whole
from ..stopping import Stop
from . import launch
from .options import Debug, Json, expand_groups

if TYPE_CHECKING:
    from ..config.ranges import Over
    from ..config.recipe import Recipe
    from ..runs.tune import SettingSearch


Resume = Annotated[
    bool, typer.Option("--resume", help="Continue from the newest checkpoint; train.steps=N sets a new end.")
]
ChangedData = Annotated[
    bool, typer.Option("--changed-data", help="With --resume: continue although the data has changed.")
]
Processes = Annotated[
    str,
    typer.Option(
        metavar="N|auto", help="Processes on this machine; auto measures whether several are faster than one."
    ),
]


@dataclass(frozen=True)
class RepeatOptions:
    """Several runs of one recipe."""

    seeds: Annotated[
        int | None,
        typer.Option(
            min=2, max=1000, help="Train with this many seeds, each into its own folder: mean and spread of scores."
        ),
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=1000,
            help="Cross-validate: this many folds, each the test part of one run; mean and spread of scores.",
        ),
    ] = None


@expand_groups
def train(
    context: typer.Context,
    recipe: Annotated[str | None, typer.Argument(help="A built-in recipe, or a TOML file.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, such as data.train=pairs.tsv.")] = None,
    into: Annotated[Path | None, typer.Option(help="The run folder; runs/NAME if not given.")] = None,
    resume: Resume = False,
    changed_data: ChangedData = False,
    processes: Processes = "1",
    *,
    repeats: RepeatOptions,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a recipe into a run folder, and score it against its baselines."""
    stop: Stop = context.obj
    stop.watch(lambda: describe_rest(into))
    count = parse_processes(processes)
    changes = overrides or []
    if resume and recipe and "=" in recipe:  # the recipe is the run's own
        changes, recipe = [recipe, *changes], None
    check_options(recipe, into, resume, changed_data)
    check_repeats(recipe, count, repeats)
    changes = [*changes, *[f"data.folds={repeats.folds}"] * bool(repeats.folds)]
    taken_up = resume and into is not None and (recipe is None or has_begun(into))
    whole = read_recipe(recipe, [] if taken_up else changes, taken_up) if recipe else None
    from ..runs import folder as folders  # now that the settings are right: torch takes seconds
    from ..runs.run import train as train_run
    from .terminal import follow, show_scores

    stop.check()
    if into and taken_up and (recipe or changes or not count):
        whole = folders.take_up(into, whole, changes)
    folder = into or folders.find_free_folder(Path("runs"), Path(str(recipe)).stem)
    stop.watch(lambda: describe_rest(folder))
    count = count or choose_count(whole)
    if count > 1 and not launch.is_one_of_several():
        flags = {"--resume": resume, "--changed-data": changed_data, "--json": as_json, "--debug": debug}
        command = ["train", *([recipe] if recipe else []), *changes, "--into", str(folder)]
        raise typer.Exit(launch.launch([*command, *(flag for flag in flags if flags[flag])], count, stop))
    if repeats != RepeatOptions():
        assert whole is not None
        train_repeatedly(whole, folder, repeats.seeds, stop, as_json)
        return
    resume = resume or launch.is_restart()
    end = follow(train_run(whole, folder, resume=resume, changed_data=changed_data, stop=stop), as_json)
    stop.check()
    if end is not None and not as_json:
        show_scores([{"run": str(folder)} | end.final])


def check_repeats(recipe: str | None, processes: int, repeats: RepeatOptions) -> None:
    if repeats.seeds and repeats.folds:
        raise RecipeError("--seeds and --folds are both given: train.seed=N sets the seed of all folds")
    if repeats != RepeatOptions() and (recipe is None or processes != 1):
        option = "--seeds" if repeats.seeds else "--folds"
        raise RecipeError(f"{option} trains a recipe run by run in one process: name the recipe, without --processes")


def read_recipe(name: str, changes: list[str], taken_up: bool) -> "Recipe":
    """The recipe with its changes. Whether its files are there is checked now, unless the run has its data already."""
    from ..config.recipe import Recipe
    from ..data.headers import check_data

    recipe = Recipe.read(name, *changes)
    if not taken_up:
        check_data(recipe.data)
    return recipe


def choose_count(recipe: "Recipe | None") -> int:
    """How many processes are fastest, which is noted."""
    from ..runs.workers import choose_processes
    from .terminal import notes

    assert recipe is not None
    count, sentence = choose_processes(recipe)
    if sentence:
        notes.print(sentence)
    return count


def train_repeatedly(recipe: "Recipe", into: Path, seeds: int | None, stop: Stop, as_json: bool) -> None:
    """One run for each seed, or else for each fold; said again, what was begun goes on."""
    from ..runs.json_output import print_line
    from ..runs.repeats import repeat_folds, repeat_seeds, summarize_runs
    from ..runs.run import train as train_run
    from ..training.files import json_bytes, write_atomically
    from .terminal import follow, show_repeats

    stop.watch(lambda: "stopped; the same command goes on")
    repeats = repeat_seeds(recipe, seeds) if seeds else repeat_folds(recipe)
    for one, folder in repeats.list_runs(recipe, into):
        follow(train_run(one, folder, resume=True, stop=stop), as_json)
        stop.check()
    summary = summarize_runs(into, repeats)
    write_atomically(into / repeats.file, json_bytes(summary))
    print_line(summary) if as_json else show_repeats(summary)


def parse_processes(text: str) -> int:
    """A number of processes; 0 is that which is found to be fastest."""
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise RecipeError(f"--processes is {text!r}, but a number from 1 to 1024 was expected, or auto")
    return int(text)


def check_options(recipe: str | None, into: Path | None, resume: bool, changed_data: bool) -> None:
    if launch.is_one_of_several() and into is None:
        raise RecipeError("several processes need a run folder: add --into FOLDER")
    if changed_data and not resume:
        raise RecipeError("--changed-data applies only to a resumed run: add --resume --into FOLDER")
    if resume and into is None:
        raise RecipeError("--resume needs the run folder: add --into FOLDER")
    if recipe is None and not resume:
        raise RecipeError("name a recipe: a built-in one (seqloom recipes lists them) or a TOML file")


def describe_rest(folder: Path | None) -> str:
    """What a stopped training leaves in its folder, and how to go on."""
    from ..training.manifests import MANIFEST

    if folder is None or not (folder / MANIFEST).exists():
        return "stopped before there was anything to save; the same command begins again"
    return f"stopped; continue with: seqloom train --into {folder} --resume"


def tune(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Changes, such as model.kind=lstm, and more ranges, such as model.size=64..256."),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            help="Settings to search over: model.size=64..256, train.learning_rate=1e-4..1e-2:log, model.kind=gru,lstm."
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1, max=10**6, help="Number of trials, pruned ones included; 20 if not given, or the whole grid."
        ),
    ] = None,
    into: Annotated[Path | None, typer.Option(help="The folder of the search; runs/tune-NAME if not given.")] = None,
    storage: Annotated[str, typer.Option(help="The URL of a database that several machines share.")] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Search over settings. The same command continues a search; lists of values alone make a grid."""
    stop: Stop = context.obj
    stop.watch(lambda: "stopped; the same command goes on")
    base, overs, changes = read_search(recipe, overrides or [], over or [])
    folder = into or Path("runs") / f"tune-{Path(recipe).stem}"
    from ..runs.tune import TRIALS, SettingSearch
    from .terminal import notes

    search = SettingSearch(base, overs, folder, storage)
    stop.check()
    most = trials or search.grid_size or TRIALS
    if search.grid_size > most:
        notes.print(
            f"tried are {most} of {format_count(search.grid_size, 'combination')}; --trials {search.grid_size} "
            "tries all"
        )
    for trial in search.run(most, stop):
        value = "–" if trial.value is None else f"{trial.value:.4f}"
        settings = "  ".join(f"{name}={value}" for name, value in trial.settings.items())
        notes.print(f"trial {trial.number}: {trial.state}, validation {trial.measure} {value}  {settings}")
    stop.check()
    print_trials(search, recipe, changes, as_json)


def read_search(recipe: str, overrides: Sequence[str], over: Sequence[str]) -> "tuple[Recipe, list[Over], list[str]]":
    """The recipe, what is searched over, and what is only changed."""
    from ..config.ranges import explain_lists, is_list, is_range, parse_over
    from ..config.recipe import Recipe

    plain = Recipe.read(recipe)
    searched = [text for text in overrides if is_range(text) or is_list(text, plain)]
    changes = [text for text in overrides if text not in searched]
    try:
        base = Recipe.read(recipe, *changes)
        overs = [parse_over(text, base) for text in (*over, *searched)]
    except RecipeError as error:
        raise RecipeError(explain_lists(str(error), overrides)) from None
    if not overs:
        raise RecipeError(
            "no setting to search over is given: for example model.dropout=0.1,0.3 or --over model.size=64..256"
        )
    return base, overs, changes


def print_trials(search: "SettingSearch", recipe: str, changes: list[str], as_json: bool) -> None:
    """All trials, what they say about the settings, and the command that trains the best one again."""
    from .terminal import show_search

    trials, importances = search.trials(), search.importances()
    best = next((trial for trial in trials if trial.state == "complete"), None)
    command = search.best_command(recipe, changes, best) if best else ""
    if as_json:
        listed = [asdict(trial) | {"folder": str(trial.folder)} for trial in trials]
        print_whole({"trials": listed, "importances": importances, "command": command})
        return
    show_search(trials, importances)
    if best:
        print(f"the best is in {best.folder}; this trains it again:\n{command}")
