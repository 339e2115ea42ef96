"""The command line: parse, call, print; nothing else. Slow imports wait for the command that needs them."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from . import launch, options
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
    from .cards import asked
    from .recipe import Recipe
    from .runs import load, next_folder
    from .runs import train as train_run
    from .terminal import follow, notes, show_scores, stopping

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
    if processes > 1 and not launch.launched():
        said = {"--resume": resume, "--changed-data": changed_data, "--json": as_json, "--debug": debug}
        flags = [flag for flag, given in said.items() if given]
        command = ["train", *([recipe] if recipe else []), *(overrides or []), "--into", str(folder), *flags]
        raise typer.Exit(launch.launch(command, processes))
    with stopping() as stop:
        resume = resume or launch.again()
        records = train_run(given, folder, resume=resume, changed_data=changed_data, tell=notes.print, stop=stop)
        ended = follow(records, folder, as_json) if launch.first() else not list(records) and not stop.is_set()
    if not launch.first():
        raise typer.Exit(0 if ended else 130)
    if not ended and stop.is_set():
        notes.print(f"stopped and saved; go on with: seqloom train --into {folder} --resume")
        raise typer.Exit(130)
    if not as_json:
        run = load(folder)
        show_scores([run.scores])
        print(f"the run is in {folder}; ask it: seqloom {asked(run.recipe, folder)}")


@app.command()
def tune(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, or a TOML file.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Changes, such as model.kind=lstm, and more ranges, such as model.size=64..256."),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(help="What is searched over: model.size=64..256, train.rate=1e-4..1e-2:log, model.kind=gru,lstm."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, max=10**6, help="How many runs, those cut short included.")] = 20,
    into: Annotated[Path | None, typer.Option(help="The folder of the search; runs/tune-NAME if not given.")] = None,
    storage: Annotated[str, typer.Option(help="The URL of a database that several machines share.")] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Search over settings; said again, a search that was killed goes on."""
    from .recipe import Recipe
    from .terminal import notes, show_search, stopping
    from .tune import Search, is_range, parse_over

    ranges = [*(over or []), *(text for text in overrides or [] if is_range(text))]
    given = Recipe.read(recipe, *(text for text in overrides or [] if not is_range(text)))
    if not ranges:
        raise RecipeError("nothing to search over is given: --over model.size=64..256, for one")
    folder = into or Path("runs") / f"tune-{Path(recipe).stem}"
    search = Search(given, [parse_over(text, given) for text in ranges], folder, storage)
    with stopping() as stop:
        for trial in search.run(trials, stop):
            loss = "–" if trial.loss is None else f"{trial.loss:.4f}"
            said = "  ".join(f"{name}={value}" for name, value in trial.settings.items())
            notes.print(f"trial {trial.number} of {trials}: {trial.state}, validation loss {loss}  {said}")
    if stop.is_set():
        notes.print("stopped; the same command goes on")
        raise typer.Exit(130)
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
    file: Annotated[Path | None, typer.Option(help="A file with one input a line, or a table of series.")] = None,
    width: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How many answers are kept while searching, and shown.")
    ] = None,
    best: Annotated[int, typer.Option(min=0, help="How many answers are shown; 0 is all that are kept.")] = 0,
    groups: Annotated[int, typer.Option(min=1, help="Share the width out among beams that avoid each other.")] = 1,
    diversity: Annotated[float, typer.Option(min=0, help="How much they do.")] = 0.5,
    length_penalty: Annotated[
        float | None, typer.Option(min=0, help="The power of its length that a score is divided by.")
    ] = None,
    max_length: Annotated[int, typer.Option(min=0, help="The most tokens to write; 0 is the recipe's.")] = 0,
    draw: Annotated[int, typer.Option(min=0, help="Draw so many answers by chance instead of searching.")] = 0,
    temperature: options.Temperature = 1.0,
    top_k: options.TopK = 0,
    top_p: options.TopP = 1.0,
    min_p: options.MinP = 0.0,
    seed: options.Seed = 0,
    alternatives: options.Alternatives = 0,
    ban: options.Ban = None,
    require: options.Require = None,
    prefix: options.Prefix = "",
    stop: options.Stop = None,
    no_repeat: options.NoRepeat = 0,
    repetition_penalty: options.RepetitionPenalty = 1.0,
    min_length: options.MinLength = 0,
    int8: options.Int8 = False,
    stream: options.Stream = False,
    tag: Annotated[
        str | None, typer.Option(help="The language or style to write, for a model trained with data.tag.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Answers to texts given as arguments, in a file, or on standard input."""
    from .runs import load
    from .search import Sampling
    from .tasks.asking import Answering, Rules

    loaded = load(run, int8=int8)
    if inputs and file:
        raise DataError("inputs are given as arguments and as a file: choose one")
    if not loaded.task.reads_text and not file:
        raise DataError("this model reads no text: name a file of inputs with --file")
    rules = Rules(ban or (), require or (), prefix, stop or (), no_repeat, repetition_penalty, min_length)
    sampling = Sampling(temperature, top_k, top_p, min_p, seed)
    if sampling != Sampling() and not draw:
        raise RecipeError("temperature, top-k, top-p, min-p and seed are about drawing: say --draw 1, or more")
    ways = groups, diversity, best, length_penalty, max_length, sampling if draw else None, max(draw, 1), alternatives
    shown = draw or best or width or 1
    asked = loaded.task.inputs(str(file)) if file else ((text, text) for text in given_lines(inputs))
    if stream:
        if as_json or alternatives or draw > 1 or (width or 1) > 1:
            raise RecipeError(
                "one answer at a time can be streamed, as text: say --width 1 or --draw 1, without --json"
            )
        for _, value in asked:
            for piece in loaded.stream(value if tag is None else (value, tag), Answering(1, *ways, rules)):
                print(piece, end="", flush=True)
            print()
        return
    for some in batched(asked, PREDICT_AT_ONCE):
        given = [value if tag is None else (value, tag) for _, value in some]
        left = loaded.task.unread(given)
        if Answering(1, *ways, rules) == Answering(1):
            found = loaded.predict_many(given, width)
        else:
            found = loaded.answer(given, Answering(width or loaded.recipe.search.width, *ways, rules))
        for (text, _), answers, unread in zip(some, found, left, strict=True):
            if unread:
                longest = loaded.recipe.data.max_length
                print(f"{text[:40]!r}: read up to data.max_length = {longest}; {unread} left unread", file=sys.stderr)
            if as_json:
                told = {"input": text, "predictions": [asdict(answer) for answer in answers]}
                print(json.dumps(told | ({"unread": unread} if unread else {}), ensure_ascii=False), flush=True)
            elif shown == 1:
                print(answers[0].output, flush=True)
            else:
                print(text)
                for answer in answers:
                    print(f"  {answer.score:8.3f}  {answer.output}")


@app.command()
def quantise(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes.")],
    on: Annotated[
        list[Path] | None, typer.Option(help="A file to score on; the run's own validation part if not given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """What weights of eight bits do to the scores of a run; predict --int8 and generate --int8 write with them."""
    from .runs import load
    from .terminal import show_table

    found = load(run).quantise(*(on or []))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return
    rows = [
        [name, *(f"{values[key]:.4f}" for key in ("float32", "int8")), f"{values['change']:+.4f}"]
        for name, values in found["scores"].items()
    ]
    show_table(["score", "float32", "int8", "change"], rows)


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
    from .look.charts import save
    from .runs import load

    loaded = load(run)
    given = text if text is None or loaded.task.reads_text else next(iter(loaded.task.inputs(text)))[1]
    given = given if tag is None else (given, tag)
    if view == "all":
        page = out or Path(f"{run.resolve().name}.html")
        if page.suffix != ".html":
            raise RecipeError(f"{page}: --view all writes one page, whose name ends in .html")
        print(loaded.report(page, given, answer))
        return
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
        float, typer.Option(min=0, help="How long short trials may take where it has not learnt; 0 is none.")
    ] = 15.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """What ails a run, the worst first, each finding with its measurement and what to type."""
    from .runs import diagnose
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
    """One claim of the courses tried out: a recipe trained in several ways, side by side in one picture."""
    from .studies import study as run_study
    from .terminal import notes, show_table

    folder = into or Path("runs") / f"study-{name}"
    rows = run_study(name, folder, notes.print, *(overrides or []))
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    show_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    print(f"runs, pictures and results.json are in {folder}")


@app.command()
def generate(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes: language, music, draw.")],
    prompt: Annotated[str, typer.Option(help="What the text begins with; the name of what is drawn.")] = "",
    length: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 400,
    temperature: options.Temperature = 1.0,
    top_k: options.TopK = 0,
    top_p: options.TopP = 1.0,
    min_p: options.MinP = 0.0,
    seed: options.Seed = 0,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many texts.")] = 1,
    alternatives: options.Alternatives = 0,
    ban: options.Ban = None,
    require: options.Require = None,
    prefix: options.Prefix = "",
    stop: options.Stop = None,
    no_repeat: options.NoRepeat = 0,
    repetition_penalty: options.RepetitionPenalty = 1.0,
    min_length: options.MinLength = 0,
    int8: options.Int8 = False,
    stream: options.Stream = False,
    into: Annotated[Path | None, typer.Option(help="A folder for files: texts, tunes to play, drawings.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say which shares end, are well formed, and stand in the training texts.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Texts written on from a beginning."""
    from .runs import load
    from .tasks.asking import Rules

    if stream and count > 1 and not as_json:
        raise RecipeError(f"{count} texts at once cannot be streamed as plain text: say --count 1, or --json")
    loaded = load(run, int8=int8)
    found = loaded.generate(
        prompt,
        length=length,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seed=seed,
        count=count,
        alternatives=alternatives,
        rules=Rules(ban or (), require or (), prefix, stop or (), no_repeat, repetition_penalty, min_length),
    )
    if stream:
        print("" if as_json else prompt, end="", flush=True)
        for piece in found:
            shown = json.dumps(asdict(piece), ensure_ascii=False) + "\n" if as_json else piece.text
            print(shown, end="", flush=True)
    texts = found.finish()
    if stream and not as_json:
        print()
    for text in texts if as_json or not stream else ():
        if as_json:
            print(json.dumps({"prompt": prompt} | asdict(text), ensure_ascii=False), flush=True)
        else:
            print(text.output, end="\n" if count == 1 else "\n\n", flush=True)
    for line in loaded.keep(texts, into) if into else ():
        print(line, file=sys.stderr)
    if check and as_json:
        print(json.dumps({"checks": loaded.check(texts)}, ensure_ascii=False))
    elif check:
        from .terminal import checks

        print("\n".join(checks(loaded.check(texts))))


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


def given_lines(inputs: list[str] | None) -> Iterator[str]:
    """The inputs of a prediction, as arguments or from standard input."""
    if inputs:
        yield from inputs
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError("is not UTF-8 text", "standard input", number) from None


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most this many."""
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group
