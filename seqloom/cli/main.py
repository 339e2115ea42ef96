"""The command line: parse, call, print; nothing else. Slow imports wait for the command that needs them."""

import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..errors import RecipeError, SeqloomError
from ..stopping import STOPPED, Interrupted, Stop, hearing
from ..training.manifests import MANIFEST
from . import generate as writing
from . import launch
from .options import Debug, Json

app = typer.Typer(
    help="From your own sequences to a trained, measured, understood model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(stop: Stop | None = None) -> None:
    """Do what was typed: a person's mistake is one sentence and exit code 2, a stop one sentence and 130."""
    with nullcontext(stop) if stop else hearing() as heard:
        run_command(heard)


def run_command(stop: Stop) -> None:
    debug = "--debug" in sys.argv
    try:
        stop.check()
        # A command that looks at the event says so; any other is interrupted.
        stop.kept, stop.heeded = lambda: "stopped", False
        app(obj=stop)
    except Interrupted:
        if launch.first():
            print(stop.kept(), file=sys.stderr)
        raise SystemExit(STOPPED) from None
    except SeqloomError as error:
        if debug:
            raise
        if launch.first():
            print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except RuntimeError as error:
        if debug or launch.first():
            raise
        # Most often the first process is gone, and has told why.
        print(f"one of the processes ended: {str(error).splitlines()[0]}", file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        raise SystemExit(0) from None


@app.command()
def recipes(as_json: Json = False, debug: Debug = False) -> None:
    """What can be trained: built-in recipes with their size, time and data."""
    from ..config.recipe import builtin, describe

    found = {name: describe(name)._asdict() for name in builtin()}
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return
    from .terminal import show_table

    columns = ["recipe", "what it does", "model", "data", "time"]
    show_table(
        columns, [[name, *(about[key] for key in ("title", "size", "data", "time"))] for name, about in found.items()]
    )
    print("\nseqloom config NAME shows every setting; seqloom train NAME trains it.")


@app.command()
def config(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, such as model.kind=lstm.")] = None,
    as_json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of all settings.")] = False,
    debug: Debug = False,
) -> None:
    """Every setting of a recipe, its value and what it does: TOML that, saved, trains the same model."""
    from ..config.recipe import Recipe

    found = Recipe.read(recipe, *(overrides or []))
    if schema:
        print(json.dumps(Recipe.schema(), ensure_ascii=False, indent=2))
    elif as_json:
        print(json.dumps(found.resolved().model_dump(mode="json"), ensure_ascii=False, indent=2))
    else:
        print(found.to_toml(comments=True), end="")


def left(folder: Path | None) -> str:
    """What a stopped training leaves in its folder, and how to go on."""
    if folder is None or not (folder / MANIFEST).exists():
        return "stopped before there was anything to save; the same command begins again"
    return f"stopped; go on with: seqloom train --into {folder} --resume"


@app.command()
def train(
    context: typer.Context,
    recipe: Annotated[str | None, typer.Argument(help="A built-in recipe, or a TOML file.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, such as data.train=pairs.tsv.")] = None,
    into: Annotated[Path | None, typer.Option(help="The run folder; runs/NAME if not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's newest checkpoint.")] = False,
    changed_data: Annotated[
        bool, typer.Option("--changed-data", help="With --resume: go on although the data has changed.")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=1, max=1024, help="Processes on this machine; torchrun starts them on several.")
    ] = 1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a recipe into a run folder, and score it against its baselines."""
    stop: Stop = context.obj
    stop.heed(lambda: left(into))
    from ..config.recipe import Recipe
    from ..runs.folder import next_folder
    from ..runs.model_card import asked
    from ..runs.run import load
    from ..runs.run import train as train_run
    from .terminal import follow, notes, show_scores

    stop.check()
    if launch.launched() and into is None:
        raise RecipeError("several processes need to know the run folder: --into FOLDER")
    if changed_data and not resume:
        raise RecipeError("--changed-data is for a run that goes on: --resume --into FOLDER")
    if resume and into is None:
        raise RecipeError("--resume needs the run folder to go on with: --into FOLDER")
    if recipe is None and not resume:
        raise RecipeError(
            "name a recipe: seqloom recipes lists the built-in ones, a TOML file of your own does as well"
        )
    given = Recipe.read(recipe, *(overrides or [])) if recipe else None
    folder = into or next_folder(Path("runs"), Path(str(recipe)).stem)
    stop.heed(lambda: left(folder))
    if processes > 1 and not launch.launched():
        said = {"--resume": resume, "--changed-data": changed_data, "--json": as_json, "--debug": debug}
        flags = [flag for flag, given in said.items() if given]
        command = ["train", *([recipe] if recipe else []), *(overrides or []), "--into", str(folder), *flags]
        raise typer.Exit(launch.launch(command, processes, stop))
    resume = resume or launch.again()
    records = train_run(given, folder, resume=resume, changed_data=changed_data, tell=notes.print, stop=stop)
    if not launch.first():
        list(records)
        stop.check()
        return
    if not follow(records, folder, as_json):
        stop.check()
    if not as_json:
        run = load(folder)
        show_scores([run.scores])
        print(f"the run is in {folder}; ask it: seqloom {asked(run.recipe, folder)}")


@app.command()
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
            help="What is searched over: model.size=64..256, train.learning_rate=1e-4..1e-2:log, model.kind=gru,lstm."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, max=10**6, help="How many runs, those cut short included.")] = 20,
    into: Annotated[Path | None, typer.Option(help="The folder of the search; runs/tune-NAME if not given.")] = None,
    storage: Annotated[str, typer.Option(help="The URL of a database that several machines share.")] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Search over settings; said again, a search that was killed goes on."""
    stop: Stop = context.obj
    stop.heed(lambda: "stopped; the same command goes on")
    from ..config.recipe import Recipe
    from ..runs.tune import Search, is_range, parse_over
    from .terminal import notes, show_search

    ranges = [*(over or []), *(text for text in overrides or [] if is_range(text))]
    given = Recipe.read(recipe, *(text for text in overrides or [] if not is_range(text)))
    if not ranges:
        raise RecipeError("nothing to search over is given: --over model.size=64..256, for one")
    folder = into or Path("runs") / f"tune-{Path(recipe).stem}"
    search = Search(given, [parse_over(text, given) for text in ranges], folder, storage)
    stop.check()
    for trial in search.run(trials, stop):
        loss = "–" if trial.loss is None else f"{trial.loss:.4f}"
        said = "  ".join(f"{name}={value}" for name, value in trial.settings.items())
        notes.print(f"trial {trial.number} of {trials}: {trial.state}, validation loss {loss}  {said}")
    stop.check()
    found, importances = search.trials(), search.importances()
    if as_json:
        told = [asdict(trial) | {"folder": str(trial.folder)} for trial in found]
        print(json.dumps({"trials": told, "importances": importances}, ensure_ascii=False, indent=2))
    else:
        show_search(found, importances)


@app.command()
def score(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders.")],
    on: Annotated[
        list[Path] | None,
        typer.Option(help="A file to score on (twice for two parallel files); the run's own test part if not given."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Scores of runs, each with its interval and its baselines."""
    from ..runs.run import load
    from .terminal import show_scores

    found = [load(folder) for folder in runs]
    reports = [run.score(*on) if on else run.scores for run in found]
    if as_json:
        print(json.dumps(reports, ensure_ascii=False, indent=2))
    else:
        show_scores(reports)


app.command()(writing.predict)
app.command()(writing.quantize)


@app.command()
def look(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    text: Annotated[
        str | None,
        typer.Argument(help="An input, or a file for a model that reads no text; one of the run's own if not given."),
    ] = None,
    view: Annotated[str, typer.Option(help="Which picture; all is one page with every one that fits.")] = "attention",
    answer: Annotated[str | None, typer.Option(help="The answer to look at; the model's own if not given.")] = None,
    tag: Annotated[str | None, typer.Option(help="The language or style, for a model trained with data.tag.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file: .html .svg .png .json; with --view all, .html.")] = None,
    debug: Debug = False,
) -> None:
    """A picture of what happens inside while a run answers an input, or a page with all of them."""
    from ..look.charts.base import save
    from ..runs.run import load

    loaded = load(run)
    given = text if text is None or loaded.task.reads_text else next(iter(loaded.task.inputs(text)))[1]
    given = given if tag is None else (given, tag)
    if view == "all":
        page = out or Path(f"{run.resolve().name}.html")
        if page.suffix != ".html":
            raise RecipeError(f"{page}: --view all writes one page, whose name ends in .html")
        print(loaded.report(page, given, answer))
        return
    for note in loaded.history.notes:
        print(note, file=sys.stderr)
    looked = loaded.look(given, answer)
    views, lacking = looked.views(), looked.lacking()
    if view in lacking:
        raise RecipeError(f"the view {view} does not fit this model: {lacking[view]}")
    if view not in views:
        raise RecipeError(f"there is no view {view!r} of this model; there are {', '.join(views)}, and all")
    print(save(views[view](), out or Path(f"{view}.html")))


@app.command()
def doctor(
    run: Annotated[Path, typer.Argument(help="A run folder; it need not have come to its end.")],
    seconds: Annotated[
        float, typer.Option(min=0, help="How long short trials may take where it has not learned; 0 is none.")
    ] = 15.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """What ails a run, the worst first, each finding with its measurement and what to type."""
    from ..runs.run import diagnose
    from .terminal import notes

    found = diagnose(run, seconds=seconds, tell=notes.print)
    if as_json:
        print(json.dumps([asdict(finding) for finding in found], ensure_ascii=False, indent=2))
        return
    for number, finding in enumerate(found, 1):
        print(f"{number}. {finding.name}: {finding.says} {finding.why}")
        print(f"   type: {finding.change}" if finding.change else "   no setting of the model helps here")
    if not found:
        print("nothing stands out")


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="vanishing: who remembers how far. taming: what lets a deep net learn.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes for every way, such as train.steps=50.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="The folder of the runs and pictures; runs/study-NAME if not given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """One well-known claim tried out: a recipe trained in several ways, side by side in one picture."""
    from ..runs.studies import study as run_study
    from .terminal import notes, show_table

    folder = into or Path("runs") / f"study-{name}"
    rows = run_study(name, folder, notes.print, *(overrides or []))
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    show_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    print(f"runs, pictures and results.json are in {folder}")


app.command()(writing.generate)


@app.command()
def certify(as_json: Json = False, debug: Debug = False) -> None:
    """Hold every cell, attention and block against its equations, PyTorch and facts derived on paper."""
    from ..certify.checks import all_certificates
    from .terminal import show_table

    found = list(all_certificates())
    if as_json:
        print(json.dumps([asdict(one) | {"holds": one.holds} for one in found], ensure_ascii=False, indent=2))
    else:
        gaps = [
            [f"{gap:.0e}" if gap is not None else "–" for gap in (one.value_gap, one.gradient_gap)] for one in found
        ]
        rows = [
            [one.family, one.subject, one.claim, *gap, f"{one.limit:.0e}", "✓" if one.holds else "✗"]
            for one, gap in zip(found, gaps, strict=True)
        ]
        show_table(["family", "subject", "claim", "value", "gradient", "limit", ""], rows)
        print(f"{sum(one.holds for one in found)} of {len(found)} certificates hold")
    raise typer.Exit(0 if all(one.holds for one in found) else 1)
