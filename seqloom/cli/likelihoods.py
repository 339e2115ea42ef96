"""`score --text`: how probable sentences that a person types are to one or several runs, side by side."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..counts import format_count
from ..errors import DataError, RecipeError
from ..runs.json_output import make_likelihood_json, print_line

if TYPE_CHECKING:
    from ..runs.run import Run
    from ..tasks.results import Likelihood


@dataclass(frozen=True)
class LikelihoodOptions:
    """Sentences to score instead of a part of the data."""

    text: Annotated[
        list[str] | None,
        typer.Option(help="A text to score; repeat for more. Words/TAG for a run that tags."),
    ] = None
    texts: Annotated[
        str | None,
        typer.Option(help="A file of such texts, a line each; SOURCE, a tab and the text for a run that answers."),
    ] = None
    given: Annotated[
        str | None,
        typer.Option(help="Input of all texts: a source to answer, a prompt to continue, words to tag."),
    ] = None
    tag: Annotated[str | None, typer.Option(help="The language or style, for a model trained with data.tag.")] = None
    tokens: Annotated[bool, typer.Option("--tokens", help="Show the log-probability of every token as well.")] = False


class TextToScore(NamedTuple):
    """A text to score, and the source or prefix it is conditioned on."""

    given: str | None
    text: str


def score_texts(folders: list[Path], options: LikelihoodOptions, as_json: bool) -> None:
    """A table with a row for each text and run; as JSON a line for each, with every token."""
    if options.text and options.texts:
        raise RecipeError("--text and --texts are both given: choose one")
    from ..runs.run import load

    results: list[tuple[str, TextToScore, Likelihood]] = []
    for folder in folders:
        run = load(folder)
        requests = list(read_asked(run, options))
        given: list[Any] = [one.given for one in requests]
        if options.tag is not None:
            given = [(one, options.tag) for one in given]
        scored = run.score_texts([one.text for one in requests], given)
        results += [(str(folder), *pair) for pair in zip(requests, scored, strict=True)]
    if as_json:
        for folder_name, one, likelihood in results:
            print_line(make_likelihood_json(folder_name, one.given, likelihood))
    else:
        show_likelihoods(results, options.tokens)


def read_asked(run: "Run", options: LikelihoodOptions) -> Iterator[TextToScore]:
    if options.texts is None:
        yield from (TextToScore(options.given, text) for text in options.text or ())
        return
    from ..data.formats.lines import find_line_fault, read_lines

    paired = options.given is None and "source" in run.task.fields and run.task.target.is_text
    encoding, empty, count = run.recipe.data.encoding, 0, 0
    for line in read_lines(options.texts, encoding):
        if fault := find_line_fault(line, options.texts, encoding):
            raise fault.error()
        if not line.text.strip():
            empty += 1
            continue
        count += 1
        source, tab, text = line.text.partition("\t") if paired else (options.given, "\t", line.text)
        if not tab:
            raise DataError("a source, a tab and a text were expected", options.texts, line.number)
        yield TextToScore(source, text)
    if not count:
        raise DataError("the file has no texts", options.texts)
    if empty:
        print(f"{options.texts}: left out: {format_count(empty, 'empty line')}", file=sys.stderr)


def show_likelihoods(results: "list[tuple[str, TextToScore, Likelihood]]", with_tokens: bool) -> None:
    from .terminal import show_table

    runs, given = {run for run, _, _ in results}, {one.given for _, one, _ in results}
    rows, unknown = [], 0
    for run, one, likelihood in results:
        front = [run] * (len(runs) > 1) + [one.given or ""] * (len(given) > 1)
        total, tokens = likelihood.log_probability, len(likelihood.logs)
        numbers = [str(tokens), f"{total:.3f}", f"{total / tokens:.3f}", f"{likelihood.perplexity:.3f}"]
        rows.append([*front, one.text, *numbers])
        unknown += likelihood.unknown
    columns = ["run"] * (len(runs) > 1) + ["given"] * (len(given) > 1)
    show_table([*columns, "text", "tokens", "log-probability", "a token", "perplexity"], rows)
    if unknown:
        print(
            f"not in the vocabulary: {format_count(unknown, 'token')}, counted as <unk>, which stands for any "
            "such token"
        )
    for run, one, likelihood in results if with_tokens else ():
        title = f"{run}: {one.text}" if len(runs) > 1 else one.text
        pairs = zip(likelihood.tokens, likelihood.logs, strict=True)
        show_table(["token", "log-probability"], [[name, f"{log:.3f}"] for name, log in pairs], title)
