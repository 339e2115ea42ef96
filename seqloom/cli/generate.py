"""seqloom generate: texts that go on from a beginning."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import RecipeError
from ..runs.begun import check_begun
from ..runs.json_output import make_piece_json, make_text_json, print_line
from .options import (
    BeamOptions,
    Debug,
    Json,
    RuleOptions,
    SamplingOptions,
    TextOptions,
    WritingOptions,
    expand_groups,
)

if TYPE_CHECKING:
    from ..search import Recorder
    from ..tasks.generation import Piece

from .predict import say_if_late


@expand_groups
def generate(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes: language, music, draw.")],
    asking: TextOptions,
    searching: BeamOptions,
    drawing: SamplingOptions,
    obeying: RuleOptions,
    writing: WritingOptions,
    tree: Annotated[
        Path | None, typer.Option(help="With --beam: draw the tree of the search into .html .svg .png .json.")
    ] = None,
    into: Annotated[Path | None, typer.Option(help="A folder for files: texts, tunes to play, drawings.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Report which shares end, are well formed, and occur in the training texts.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Generate texts from a prompt: sampled token by token or, with --beam, the best of a beam search."""
    check_beam(searching, writing, tree)
    if writing.stream and asking.count > 1 and not as_json:
        raise RecipeError(f"{asking.count} texts at once cannot be streamed as plain text: use --count 1 or --json")
    check_begun(run)
    from ..runs.run import load

    loaded = load(run, int8=writing.int8)
    ways: dict[str, Any] = asdict(drawing) | {"alternatives": writing.alternatives, "timeout": writing.timeout or 0.0}
    if searching.beam:
        ways |= {"beam_size": searching.beam, "best": searching.best}
        ways |= {"groups": searching.groups, "diversity": searching.diversity}
        ways |= {} if searching.length_penalty is None else {"length_penalty": searching.length_penalty}
    recorder = make_recorder() if tree else None
    changes: dict[str, Any] = {"length": asking.length, "count": asking.count, "rules": obeying.rules()} | ways
    generation = loaded.generate(asking.prompt, recorder=recorder, **changes)
    if writing.stream:
        stream_pieces(asking.prompt, generation, as_json)
    texts = generation.finish()
    say_if_late(asking.prompt, texts)
    if writing.stream and not as_json:
        print()
    for text in texts if as_json or not writing.stream else ():
        if as_json:
            print_line(make_text_json(asking.prompt, text))
        else:
            print(text.output, end="\n" if len(texts) == 1 else "\n\n", flush=True)
    if tree and recorder:
        from ..look.charts.base import save
        from ..look.charts.beam import beam_chart

        print(save(beam_chart(recorder.trees[0], loaded.task.target.symbols), tree), file=sys.stderr)
    for line in loaded.keep(texts, into) if into else ():
        print(line, file=sys.stderr)
    if check and as_json:
        print_line({"checks": loaded.check(texts)})
    elif check:
        from .terminal import format_checks

        print("\n".join(format_checks(loaded.check(texts))))


def stream_pieces(prompt: str, pieces: "Iterable[Piece]", as_json: bool) -> None:
    print("" if as_json else prompt, end="", flush=True)
    for piece in pieces:
        if as_json:
            print_line(make_piece_json(piece))
        else:
            print(piece.text, end="", flush=True)


def check_beam(searching: BeamOptions, writing: WritingOptions, tree: Path | None) -> None:
    """Refuse what does not go with a search, or only with one."""
    if searching.beam and writing.stream:
        raise RecipeError(
            "beam search has its results only at its end, so it cannot be streamed: leave out --beam or --stream"
        )
    if not searching.beam and (searching != BeamOptions() or tree):
        raise RecipeError(
            "--best, --groups, --diversity, --length-penalty and --tree apply only to beam search: add --beam"
        )


def make_recorder() -> "Recorder":
    from ..search import Recorder

    return Recorder()
