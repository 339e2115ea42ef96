"""The command line: parse, call, print; nothing else. Slow imports wait for the command that needs them."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from .errors import DataError, RecipeError, SeqloomError

app = typer.Typer(
    help="From your own sequences to a trained, measured, understood model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole trace of an error.")]

Item = TypeVar("Item")

PREDICT_AT_ONCE = 256  # inputs: enough to fill batches, few enough for the first answers to come soon


def main() -> None:
    """The entry point: a person's mistake is one sentence and exit code 2."""
    debug = "--debug" in sys.argv
    try:
        app()
    except SeqloomError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        raise SystemExit(0) from None


@app.command()
def recipes(as_json: Json = False, debug: Debug = False) -> None:
    """What can be trained: built-in recipes with their size, time and data."""
    from .recipe import builtin, describe

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
    from .recipe import Recipe

    found = Recipe.read(recipe, *(overrides or []))
    if schema:
        print(json.dumps(Recipe.schema(), ensure_ascii=False, indent=2))
    elif as_json:
        print(json.dumps(found.resolved().model_dump(mode="json"), ensure_ascii=False, indent=2))
    else:
        print(found.to_toml(comments=True), end="")


@app.command()
def train(
    recipe: Annotated[str | None, typer.Argument(help="A built-in recipe, or a TOML file.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, such as data.train=pairs.tsv.")] = None,
    into: Annotated[Path | None, typer.Option(help="The run folder; runs/NAME if not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's newest checkpoint.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a recipe into a run folder, and score it against its baselines."""
    from .cards import asked
    from .recipe import Recipe
    from .runs import load, next_folder
    from .runs import train as train_run
    from .terminal import follow, notes, show_scores, stopping

    if resume and into is None:
        raise RecipeError("--resume needs the run folder to go on with: --into FOLDER")
    if recipe is None and not resume:
        raise RecipeError(
            "name a recipe: seqloom recipes lists the built-in ones, a TOML file of your own does as well"
        )
    given = Recipe.read(recipe, *(overrides or [])) if recipe else None
    folder = into or next_folder(Path("runs"), Path(str(recipe)).stem)
    with stopping() as stop:
        records = train_run(given, folder, resume=resume, tell=notes.print, stop=stop)
        ended = follow(records, folder, as_json)
    if not ended and stop.is_set():
        notes.print(f"stopped and saved; go on with: seqloom train --into {folder} --resume")
        raise typer.Exit(130)
    if not as_json:
        run = load(folder)
        show_scores([run.scores])
        print(f"the run is in {folder}; ask it: seqloom predict {folder} {asked(run.recipe.task)}")


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
    from .runs import load
    from .terminal import show_scores

    found = [load(folder) for folder in runs]
    reports = [run.score(*on) if on else run.scores for run in found]
    if as_json:
        print(json.dumps(reports, ensure_ascii=False, indent=2))
    else:
        show_scores(reports)


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    inputs: Annotated[list[str] | None, typer.Argument(help="Texts; none means --file or standard input.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file with one input a line.")] = None,
    width: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How many answers are kept while searching, and shown.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="The language or style to write, for a model trained with data.tag.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Answers to texts given as arguments, in a file, or on standard input."""
    from .runs import load

    loaded = load(run)
    shown = width or 1
    if not loaded.task.reads_text:
        if inputs or not file:
            raise DataError("this model reads no text: name a file of inputs with --file")
        named: Iterable[tuple[Any, Any]] = enumerate(loaded.task.inputs(str(file)), 1)
    else:
        named = ((line, line) for line in given_lines(inputs, file))
    for piece in batched(named, PREDICT_AT_ONCE):
        given = [value if tag is None else (value, tag) for _, value in piece]
        for (text, _), answers in zip(piece, loaded.predict_many(given, width), strict=True):
            if as_json:
                predictions = [asdict(answer) for answer in answers]
                print(json.dumps({"input": text, "predictions": predictions}, ensure_ascii=False), flush=True)
            elif shown == 1:
                print(answers[0].output, flush=True)
            else:
                print(text)
                for answer in answers:
                    print(f"  {answer.score:8.3f}  {answer.output}")


@app.command()
def certify(as_json: Json = False, debug: Debug = False) -> None:
    """Hold every cell, attention and block against its equations, PyTorch and the courses' analytic facts."""
    from .certify.checks import all_certificates
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


def given_lines(inputs: list[str] | None, file: Path | None) -> Iterator[str]:
    """The inputs of a prediction, wherever they come from."""
    if inputs and file:
        raise DataError("inputs are given as arguments and as a file: choose one")
    if inputs:
        yield from inputs
        return
    place = str(file) if file else "standard input"
    try:
        with file.open("rb") if file else sys.stdin.buffer as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise DataError("is not UTF-8 text", place, number) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", place) from None


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most this many."""
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group
