"""`predict` and `generate`: a run answers, or writes on from a beginning."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..counts import format_count
from ..errors import DataError, RecipeError
from ..runs.begun import check_begun
from ..runs.json_output import make_prediction_json, print_line
from .options import (
    BeamOptions,
    Debug,
    InputOptions,
    Json,
    RuleOptions,
    SamplingOptions,
    TableOptions,
    WritingOptions,
    expand_groups,
)

if TYPE_CHECKING:
    from ..data.formats.tables import SkippedRows
    from ..data.inputs import Input, InputFile, InputReading
    from ..fields import Prediction
    from ..runs.answers import Answers
    from ..runs.run import Run
    from ..tasks.decoding_options import DecodingOptions
    from ..tasks.results import Predictions

STDIN = "standard input"
PREDICT_AT_ONCE = 256  # inputs: enough to fill batches, few enough for the first answers to come soon


@dataclass(frozen=True)
class AnswerOptions:
    """How many answers there are, how long they are, and when they come."""

    draw: Annotated[int, typer.Option(min=0, help="Draw this many answers instead of searching for the best.")] = 0
    max_length: Annotated[int, typer.Option(min=0, help="Maximum number of tokens; 0 is the recipe's.")] = 0
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Feed the run line by line from standard input; each is answered as it comes."),
    ] = False


@expand_groups
def predict(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    request: InputOptions,
    table: TableOptions,
    search: BeamOptions,
    sampling: SamplingOptions,
    rules: RuleOptions,
    output: WritingOptions,
    answer: AnswerOptions,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict for inputs given as arguments, in a file or folder, or on standard input: text, JSON or a table."""
    check_predict_options(request, table, as_json)
    if sampling != SamplingOptions() and not answer.draw:
        raise RecipeError("temperature, top-k, top-p, min-p and seed apply only to sampling: add --draw 1 or more")
    one_by_one = answer.draw <= 1 and (search.beam or 1) == 1 and not output.alternatives
    if output.stream and (as_json or table.out or not one_by_one):
        raise RecipeError(
            "only one answer at a time can be streamed, as text: use --beam 1 or --draw 1, without --json"
        )
    check_begun(run)
    if answer.follow:
        if request != InputOptions() or table.out or answer.draw or output.stream:
            raise RecipeError(
                "--follow reads standard input line by line and takes only the options --best, --json and --int8"
            )
        follow_run(run, output.int8, search.best or 1, as_json)
        return
    from ..data.formats.tables import SkippedRows
    from ..runs.answers import AT_ONCE, Answers
    from ..runs.run import load

    loaded, skipped = load(run, int8=output.int8), SkippedRows()
    ask = replace(make_decoding_options(search, sampling, rules, output, answer.draw), max_length=answer.max_length)
    if not loaded.task.shape.answers_in_text:  # the likeliest of them are shown, and nothing is searched for
        ask = replace(ask, best=0)
    plain = ask == type(ask)(1)
    with open_inputs(loaded, request, skipped) as inputs:
        if output.stream:
            stream_answers(loaded, inputs, ask)
            return
        answers = Answers(
            loaded,
            inputs,
            skipped,
            skip=(request.on_bad_row or loaded.recipe.data.on_bad_row) == "skip",
            beam=max(search.beam or 0, search.best) or None,
            options=None if plain else replace(ask, beam_size=search.beam or loaded.recipe.search.beam_size),
            size=AT_ONCE if table.out else PREDICT_AT_ONCE,
        )
        shown = answer.draw or search.best or search.beam or 1
        if table.out:
            write_answers(loaded, answers, table, shown)
        else:
            print_all(loaded, answers, shown, as_json, watched=bool(request.file))


def follow_run(run: Path, int8: bool, shown: int, as_json: bool) -> None:
    from ..runs.run import load
    from .follow import follow_stdin

    follow_stdin(load(run, int8=int8), lambda text, predictions: print_answers(text, predictions, shown), as_json)


def check_predict_options(request: InputOptions, table: TableOptions, as_json: bool) -> None:
    """Refuse what cannot be meant, before anybody waits."""
    if request.inputs and request.file:
        raise DataError("inputs are given as arguments and as a file: choose one")
    if request.on_bad_row not in ("", "error", "skip"):
        raise RecipeError(f"--on-bad-row is {request.on_bad_row!r}, but error or skip was expected")
    if request.file and "-" in request.file and len(request.file) > 1:
        raise DataError("standard input is read by itself, not beside files")
    if not request.file and (request.source or request.format):
        raise RecipeError("--source and --format apply only to a file: add --file")
    if table.out and as_json:
        raise RecipeError("--out writes a table and --json prints: choose one; a table .jsonl is JSON, too")
    if table.probabilities and not table.out:
        raise RecipeError("--probabilities are columns of a table: add --out")
    if table.out:
        from ..runs.answer_table import check_table

        check_table(table.out, request.file or ())


def make_decoding_options(
    search: BeamOptions, sampling: SamplingOptions, rules: RuleOptions, output: WritingOptions, draw: int
) -> "DecodingOptions":
    """How answers are searched for, as the options say it, but for the beam size: one by one."""
    from ..tasks.decoding_options import DecodingOptions

    return DecodingOptions(
        1,
        groups=search.groups,
        diversity=search.diversity,
        best=search.best,
        length_penalty=search.length_penalty,
        sampling=sampling.sampling() if draw else None,
        count=max(draw, 1),
        alternatives=output.alternatives,
        rules=rules.rules(),
        timeout=output.timeout,
    )


def stream_answers(loaded: "Run", inputs: "InputFile", ask: "DecodingOptions") -> None:
    """One answer after the other, each as it is written."""
    from ..data.formats.lines import Fault

    for one in inputs.inputs:
        if isinstance(one, Fault):
            raise one.error()
        for piece in loaded.stream(one.value, ask):
            print(piece, end="", flush=True)
        print()


# --- inputs -----------------------------------------------------------------------------------------------------


@contextmanager
def open_inputs(loaded: "Run", request: InputOptions, skipped: "SkippedRows") -> "Iterator[InputFile]":
    """What is asked, with the language or style where one is given."""
    from ..data.inputs import InputFile, InputReading

    reading = InputReading(request.format, tuple(request.source or ()), request.tag is not None, request.on_bad_row)
    with ExitStack() as stack:
        if request.file == ["-"]:
            file = stack.enter_context(spool_stdin(loaded, reading))
            stack.enter_context(name_stdin(file, skipped))
            table = loaded.task.read_inputs(file, reading=reading, skipped=skipped)
        elif request.file:
            table = loaded.task.read_inputs(*request.file, reading=reading, skipped=skipped)
        else:
            table = list_given_inputs(loaded, request.inputs)
        if (tag := request.tag) is not None:
            from ..data.formats.lines import Fault

            tagged = (one if isinstance(one, Fault) else one._replace(value=(one.value, tag)) for one in table.inputs)
            table = InputFile(table.columns, tagged, table.last)
        yield table


def list_given_inputs(loaded: "Run", texts: list[str] | None) -> "InputFile":
    """Arguments, which are texts or names of images or sounds, or else the lines of standard input."""
    from ..data.inputs import ALONE, Input, InputFile, file_input
    from .follow import read_stdin

    if loaded.task.reads_named_files and texts:
        return InputFile((ALONE,), iter([file_input(file, number) for number, file in enumerate(texts, 1)]))
    if not loaded.task.shape.reads_text:
        raise DataError("this model reads no text: name a file of inputs with --file")
    where = "the arguments" if texts else STDIN
    lines = enumerate(texts or (line.rstrip("\r\n") for line in read_stdin()), 1)
    return InputFile((ALONE,), (Input(text, text, {ALONE: text}, where, number) for number, text in lines))


@contextmanager
def spool_stdin(loaded: "Run", reading: "InputReading") -> Iterator[str]:
    """Standard input as a file on the disk, since how a table is written is found from its first rows. It is taken to
    be of the format that was trained on, if none is said."""
    import shutil
    import tempfile

    train = loaded.recipe.data.train
    ending = f".{reading.format}" if reading.format else "".join(Path(train[0]).suffixes[-1:]) if train else ".txt"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{ending.removesuffix('.gz') or '.txt'}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield str(path)


@contextmanager
def name_stdin(file: str, skipped: "SkippedRows") -> Iterator[None]:
    """Say standard input in place of the file that holds it for a while."""
    skipped.names[file] = STDIN
    try:
        yield
    except DataError as error:
        if str(error.file) != file:
            raise
        raise DataError(error.sentence, STDIN, error.line) from None


# --- answers ----------------------------------------------------------------------------------------------------


def print_all(loaded: "Run", answers: "Answers", shown: int, as_json: bool, watched: bool) -> None:
    """Each answer on its line, as it comes."""
    remarks, table = Remarks(loaded, answers), answers.file.columns != ("input",)
    for one, predictions in watch_progress(answers, enabled=watched and not sys.stdout.isatty()):
        remarks.hear(one, predictions)
        if as_json:
            place = {"line": one.line} | ({"row": dict(one.row)} if table else {}) if watched else {}
            print_line(make_prediction_json(one.name, predictions, predictions.unread) | place)
        else:
            print_answers(one.name, predictions, shown)
    remarks.close()


def watch_progress(answers: "Answers", enabled: bool = True) -> "Iterator[tuple[Input, Predictions]]":
    """The answers, with a bar where somebody watches."""
    if not (enabled and sys.stderr.isatty()):
        return iter(answers)
    from .terminal import show_progress  # which takes a while to import

    return show_progress(answers, answers.file.last)


def print_answers(text: str, answers: "Sequence[Prediction]", shown: int) -> None:
    if shown == 1:
        print(answers[0].output, flush=True)
        return
    print(text)
    for answer in answers[:shown]:
        measures = answer.measures()
        sure = format_probability(measures["probability"]) if "probability" in measures else f"{answer.score:.3f}"
        print(f"  {sure:>8}  {answer.output}")


def format_probability(value: float) -> str:
    """From 0 to 1; what is very small, as a power of ten."""
    return f"{value:.4f}" if value >= 0.0001 or value == 0 else f"{value:.1e}"


def write_answers(loaded: "Run", answers: "Answers", table: TableOptions, shown: int) -> None:
    """The table of answers, which is there only when it is whole."""
    from ..runs.answer_table import answer_rows, write_table

    assert table.out is not None
    classes, remarks, rows = loaded.check_classes() if table.probabilities else (), Remarks(loaded, answers), 0
    if table.probabilities:
        answers.beam = max(len(classes), answers.beam or 0)
    pairs = watch_progress(answers)
    first = next(pairs, None)
    if first is None:
        raise DataError("there are no inputs to answer")
    added = list(answer_rows(first[1], shown, classes)[0])
    if twice := [name for name in added if name in answers.file.columns]:
        raise DataError(f"the inputs have a column {twice[0]!r}, which the answers need: rename it", first[0].file)
    with write_table(table.out, [*answers.file.columns, *added]) as writer:
        for one, predictions in chain([first], pairs):
            remarks.hear(one, predictions)
            for row in answer_rows(predictions, shown, classes):
                writer.write({**one.row, **row})
                rows += 1
    remarks.close()
    for note in writer.notes:
        print(f"{table.out}: {note}", file=sys.stderr)
    print(f"{table.out}: {format_count(rows, 'row')}; added {', '.join(added)}")


class Remarks:
    """What a person should know about the answers: what was detected, cut, late or left out, each said once."""

    def __init__(self, loaded: "Run", answers: "Answers") -> None:
        self.longest, self.answers = loaded.recipe.data.max_length, answers
        self.begun, self.cut, self.late = False, list[Any](), list[Any]()

    def hear(self, one: "Input", predictions: "Predictions") -> None:
        self.begin()
        if predictions.unread:
            self.cut.append((one, predictions.unread) if not self.cut else None)
        if any(getattr(answer, "finish", "") == "time" for answer in predictions):
            self.late.append(one if not self.late else None)

    def begin(self) -> None:
        """What was detected is known with the first answer, and said before it."""
        if not self.begun:
            self.begun = True
            for note in self.answers.skipped.unique_notes():
                print(note, file=sys.stderr)

    def close(self) -> None:
        self.begin()
        if self.cut:
            one, unread = self.cut[0]
            more = f"; and {format_count(len(self.cut) - 1, 'other')} likewise" if len(self.cut) > 1 else ""
            print(
                f"{place_of(one)}: read up to data.max_length = {self.longest}; {unread} left unread{more}",
                file=sys.stderr,
            )
        if self.late:
            more = f"; and {format_count(len(self.late) - 1, 'other')} likewise" if len(self.late) > 1 else ""
            print(f"{place_of(self.late[0])}: {LATE}{more}", file=sys.stderr)
        for note in self.answers.scaling.describe() if self.answers.scaling else ():
            print(note, file=sys.stderr)
        if sentence := self.answers.describe_skipped():
            print(sentence, file=sys.stderr)


LATE = "was not written to its end, for lack of time (--timeout)"


def place_of(one: "Input") -> str:
    """Where an input stands: its file and line."""
    return repr(one.name[:40]) if one.name == one.value else f"{one.file}, line {one.line}"


def say_if_late(text: str, answers: Iterable[object]) -> None:
    """A text that the time has cut short looks like any other."""
    if any(getattr(answer, "finish", "") == "time" for answer in answers):
        print(f"{text[:40]!r}: {LATE}", file=sys.stderr)
