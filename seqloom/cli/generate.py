"""seqloom generate: texts that go on from a beginning."""

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class FileOptions:
    """What is made of the texts besides printing them."""

    tree: Annotated[
        Path | None, typer.Option(help="With --beam: draw the tree of the search into .html .svg .png .json.")
    ] = None
    into: Annotated[Path | None, typer.Option(help="A folder for files: texts, tunes to play, drawings.")] = None
    check: Annotated[
        bool, typer.Option("--check", help="Report which shares end, are well formed, and occur in the training texts.")
    ] = False


@expand_groups
def generate(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes: language, music, draw.")],
    request: TextOptions,
    search: BeamOptions,
    sampling: SamplingOptions,
    rules: RuleOptions,
    output: WritingOptions,
    files: FileOptions,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Generate texts from a prompt: sampled token by token or, with --beam, the best of a beam search."""
    check_beam(search, output, files.tree)
    if output.stream and request.count > 1 and not as_json:
        raise RecipeError(f"{request.count} texts at once cannot be streamed as plain text: use --count 1 or --json")
    check_begun(run)
    from ..runs.run import load

    loaded = load(run, int8=output.int8)
    ways: dict[str, Any] = asdict(sampling) | {"alternatives": output.alternatives, "timeout": output.timeout or 0.0}
    if search.beam:
        ways |= {"beam_size": search.beam, "best": search.best}
        ways |= {"groups": search.groups, "diversity": search.diversity}
        ways |= {} if search.length_penalty is None else {"length_penalty": search.length_penalty}
    recorder = make_recorder() if files.tree else None
    changes: dict[str, Any] = {"length": request.length, "count": request.count, "rules": rules.rules()} | ways
    generation = loaded.generate(request.prompt, recorder=recorder, **changes)
    if output.stream:
        stream_pieces(request.prompt, generation, as_json)
    texts = generation.finish()
    say_if_late(request.prompt, texts)
    if output.stream and not as_json:
        print()
    for text in texts if as_json or not output.stream else ():
        if as_json:
            print_line(make_text_json(request.prompt, text))
        else:
            print(text.output, end="\n" if len(texts) == 1 else "\n\n", flush=True)
    if files.tree and recorder:
        from ..look.charts.base import save
        from ..look.charts.beam import beam_chart

        print(save(beam_chart(recorder.trees[0], loaded.task.target.symbols), files.tree), file=sys.stderr)
    for line in loaded.keep(texts, files.into) if files.into else ():
        print(line, file=sys.stderr)
    if files.check and as_json:
        print_line({"checks": loaded.check(texts)})
    elif files.check:
        from .terminal import format_checks

        print("\n".join(format_checks(loaded.check(texts))))


def stream_pieces(prompt: str, pieces: "Iterable[Piece]", as_json: bool) -> None:
    print("" if as_json else prompt, end="", flush=True)
    for piece in pieces:
        if as_json:
            print_line(make_piece_json(piece))
        else:
            print(piece.text, end="", flush=True)


def check_beam(search: BeamOptions, output: WritingOptions, tree: Path | None) -> None:
    """Refuse what does not go with a search, or only with one."""
    if search.beam and output.stream:
        raise RecipeError(
            "beam search has its results only at its end, so it cannot be streamed: leave out --beam or --stream"
        )
    if not search.beam and (search != BeamOptions() or tree):
        raise RecipeError(
            "--best, --groups, --diversity, --length-penalty and --tree apply only to beam search: add --beam"
        )


def make_recorder() -> "Recorder":
    from ..search import Recorder

    return Recorder()
