"""`predict` and `generate`: a run answers, or writes on from a beginning."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ..errors import DataError, RecipeError
from ..runs.json_output import piece_json, prediction_json, print_line, text_json
from .options import (
    BeamOptions,
    Debug,
    InputOptions,
    Json,
    RuleOptions,
    SamplingOptions,
    TextOptions,
    WritingOptions,
    expand_groups,
)

if TYPE_CHECKING:
    from ..fields import Prediction
    from ..runs.run import Run
    from ..tasks.decoding_options import DecodingOptions

Item = TypeVar("Item")

PREDICT_AT_ONCE = 256  # inputs: enough to fill batches, few enough for the first answers to come soon


@expand_groups
def predict(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    asking: InputOptions,
    searching: BeamOptions,
    drawing: SamplingOptions,
    obeying: RuleOptions,
    writing: WritingOptions,
    draw: Annotated[int, typer.Option(min=0, help="Draw this many answers instead of searching for the best.")] = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Answers to texts given as arguments, in a file, or on standard input."""
    if asking.inputs and asking.file:
        raise DataError("inputs are given as arguments and as a file: choose one")
    if drawing != SamplingOptions() and not draw:
        raise RecipeError("temperature, top-k, top-p, min-p and seed are about drawing: say --draw 1, or more")
    one_by_one = draw <= 1 and (searching.beam or 1) == 1 and not writing.alternatives
    if writing.stream and (as_json or not one_by_one):
        raise RecipeError("one answer at a time can be streamed, as text: say --beam 1 or --draw 1, without --json")
    from ..runs.run import load

    loaded = load(run, int8=writing.int8)
    asked = given_inputs(loaded, asking)
    ask = decoding_options(searching, drawing, obeying, writing, draw)
    if writing.stream:
        for _, value in asked:
            for piece in loaded.stream(value, ask):
                print(piece, end="", flush=True)
            print()
        return
    plain = ask == type(ask)(1)
    shown = draw or searching.best or searching.beam or 1
    for some in batched(asked, PREDICT_AT_ONCE):
        values = [value for _, value in some]
        if plain:
            found = loaded.predict_many(values, searching.beam)
        else:
            found = loaded.answer(values, replace(ask, beam_size=searching.beam or loaded.recipe.search.beam_size))
        for (text, _), answers in zip(some, found, strict=True):
            if unread := answers.unread:
                longest = loaded.recipe.data.max_length
                print(f"{text[:40]!r}: read up to data.max_length = {longest}; {unread} left unread", file=sys.stderr)
            say_if_late(text, answers)
            print_answers(text, answers, unread, shown, as_json)


def decoding_options(
    searching: BeamOptions, drawing: SamplingOptions, obeying: RuleOptions, writing: WritingOptions, draw: int
) -> "DecodingOptions":
    """How answers are searched for, as the options say it, but for the beam size: one by one."""
    from ..tasks.decoding_options import DecodingOptions

    return DecodingOptions(
        1,
        groups=searching.groups,
        diversity=searching.diversity,
        best=searching.best,
        length_penalty=searching.length_penalty,
        max_length=searching.max_length,
        sampling=drawing.sampling() if draw else None,
        count=max(draw, 1),
        alternatives=writing.alternatives,
        rules=obeying.rules(),
        timeout=writing.timeout,
    )


def print_answers(text: str, answers: "Sequence[Prediction]", unread: int, shown: int, as_json: bool) -> None:
    if as_json:
        print_line(prediction_json(text, answers, unread))
    elif shown == 1:
        print(answers[0].output, flush=True)
    else:
        print(text)
        for answer in answers:
            print(f"  {answer.score:8.3f}  {answer.output}")


def given_inputs(loaded: "Run", asking: InputOptions) -> Iterator[tuple[str, Any]]:
    """What is asked, each with what it is called; with the language or style where one is given."""
    if not loaded.task.reads_text and not asking.file:
        raise DataError("this model reads no text: name a file of inputs with --file")
    if asking.file:
        asked = loaded.task.read_inputs(str(asking.file))
    else:
        asked = ((text, text) for text in given_lines(asking.inputs))
    return ((text, value if asking.tag is None else (value, asking.tag)) for text, value in asked)


@expand_groups
def generate(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes: language, music, draw.")],
    asking: TextOptions,
    drawing: SamplingOptions,
    obeying: RuleOptions,
    writing: WritingOptions,
    into: Annotated[Path | None, typer.Option(help="A folder for files: texts, tunes to play, drawings.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say which shares end, are well formed, and stand in the training texts.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Texts written on from a beginning."""
    if writing.stream and asking.count > 1 and not as_json:
        raise RecipeError(f"{asking.count} texts at once cannot be streamed as plain text: say --count 1, or --json")
    from ..runs.run import load

    loaded = load(run, int8=writing.int8)
    ways: dict[str, Any] = asdict(drawing) | {"alternatives": writing.alternatives, "timeout": writing.timeout or 0.0}
    found = loaded.generate(asking.prompt, length=asking.length, count=asking.count, rules=obeying.rules(), **ways)
    if writing.stream:
        print("" if as_json else asking.prompt, end="", flush=True)
        for piece in found:
            if as_json:
                print_line(piece_json(piece))
            else:
                print(piece.text, end="", flush=True)
    texts = found.finish()
    say_if_late(asking.prompt, texts)
    if writing.stream and not as_json:
        print()
    for text in texts if as_json or not writing.stream else ():
        if as_json:
            print_line(text_json(asking.prompt, text))
        else:
            print(text.output, end="\n" if asking.count == 1 else "\n\n", flush=True)
    for line in loaded.keep(texts, into) if into else ():
        print(line, file=sys.stderr)
    if check and as_json:
        print_line({"checks": loaded.check(texts)})
    elif check:
        from .terminal import format_checks

        print("\n".join(format_checks(loaded.check(texts))))


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
