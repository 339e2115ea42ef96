"""The commands that let a run answer and write, and `quantize`, which says what eight bits do to what it writes."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from ..errors import DataError, RecipeError
from . import options
from .options import BeamOptions, Debug, Json, RuleOptions, SamplingOptions, expand_groups

Item = TypeVar("Item")

PREDICT_AT_ONCE = 256  # inputs: enough to fill batches, few enough for the first answers to come soon


@expand_groups
def predict(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    searching: BeamOptions,
    drawing: SamplingOptions,
    obeying: RuleOptions,
    inputs: Annotated[list[str] | None, typer.Argument(help="Texts; none means --file or standard input.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file with one input a line, or a table of series.")] = None,
    draw: Annotated[int, typer.Option(min=0, help="Draw this many answers instead of searching for the best.")] = 0,
    alternatives: options.Alternatives = 0,
    timeout: options.Timeout = None,
    int8: options.Int8 = False,
    stream: options.Stream = False,
    tag: Annotated[
        str | None, typer.Option(help="The language or style to write, for a model trained with data.tag.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Answers to texts given as arguments, in a file, or on standard input."""
    from ..runs.run import load
    from ..tasks.asking import Answering

    loaded = load(run, int8=int8)
    if inputs and file:
        raise DataError("inputs are given as arguments and as a file: choose one")
    if not loaded.task.reads_text and not file:
        raise DataError("this model reads no text: name a file of inputs with --file")
    rules, sampling, beam, best = obeying.rules(), drawing.sampling(), searching.beam, searching.best
    if drawing != SamplingOptions() and not draw:
        raise RecipeError("temperature, top-k, top-p, min-p and seed are about drawing: say --draw 1, or more")
    ways = (
        *(searching.groups, searching.diversity, best, searching.length_penalty, searching.max_length),
        *(sampling if draw else None, max(draw, 1), alternatives, rules, timeout),
    )
    shown = draw or best or beam or 1
    asked = loaded.task.inputs(str(file)) if file else ((text, text) for text in given_lines(inputs))
    if stream:
        if as_json or alternatives or draw > 1 or (beam or 1) > 1:
            raise RecipeError("one answer at a time can be streamed, as text: say --beam 1 or --draw 1, without --json")
        for _, value in asked:
            for piece in loaded.stream(value if tag is None else (value, tag), Answering(1, *ways)):
                print(piece, end="", flush=True)
            print()
        return
    for some in batched(asked, PREDICT_AT_ONCE):
        given = [value if tag is None else (value, tag) for _, value in some]
        left = loaded.task.unread(given)
        if Answering(1, *ways) == Answering(1):
            found = loaded.predict_many(given, beam)
        else:
            found = loaded.answer(given, Answering(beam or loaded.recipe.search.beam_size, *ways))
        for (text, _), answers, unread in zip(some, found, left, strict=True):
            if unread:
                longest = loaded.recipe.data.max_length
                print(f"{text[:40]!r}: read up to data.max_length = {longest}; {unread} left unread", file=sys.stderr)
            say_if_late(text, answers)
            if as_json:
                told = {"input": text, "predictions": [asdict(answer) for answer in answers]}
                print(json.dumps(told | ({"unread": unread} if unread else {}), ensure_ascii=False), flush=True)
            elif shown == 1:
                print(answers[0].output, flush=True)
            else:
                print(text)
                for answer in answers:
                    print(f"  {answer.score:8.3f}  {answer.output}")


@expand_groups
def generate(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes: language, music, draw.")],
    drawing: SamplingOptions,
    obeying: RuleOptions,
    prompt: Annotated[str, typer.Option(help="What the text begins with; the name of what is drawn.")] = "",
    length: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 400,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many texts.")] = 1,
    alternatives: options.Alternatives = 0,
    timeout: options.Timeout = None,
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
    from ..runs.run import load

    if stream and count > 1 and not as_json:
        raise RecipeError(f"{count} texts at once cannot be streamed as plain text: say --count 1, or --json")
    loaded = load(run, int8=int8)
    found = loaded.generate(
        prompt,
        length=length,
        count=count,
        alternatives=alternatives,
        rules=obeying.rules(),
        timeout=timeout or 0.0,
        **asdict(drawing),
    )
    if stream:
        print("" if as_json else prompt, end="", flush=True)
        for piece in found:
            shown = json.dumps(asdict(piece), ensure_ascii=False) + "\n" if as_json else piece.text
            print(shown, end="", flush=True)
    texts = found.finish()
    say_if_late(prompt, texts)
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


def quantize(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes.")],
    on: Annotated[
        list[Path] | None, typer.Option(help="A file to score on; the run's own validation part if not given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """What weights of eight bits do to the scores of a run; predict --int8 and generate --int8 write with them."""
    from ..runs.run import load
    from .terminal import show_table

    found = load(run).quantize(*(on or []))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return
    rows = [
        [name, *(f"{values[key]:.4f}" for key in ("float32", "int8")), f"{values['change']:+.4f}"]
        for name, values in found["scores"].items()
    ]
    show_table(["score", "float32", "int8", "change"], rows)


def say_if_late(asked: str, answers: Iterable[object]) -> None:
    """A text that the time has cut short looks like any other."""
    if any(getattr(answer, "finish", "") == "time" for answer in answers):
        print(f"{asked[:40]!r}: was not written to its end, for lack of time (--timeout)", file=sys.stderr)


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
