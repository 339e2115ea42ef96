"""`embed`: vectors of texts and words, neighbors and analogies."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..counts import format_count
from ..errors import DataError
from ..runs.json_output import print_line
from .options import Debug, Json, expand_groups

if TYPE_CHECKING:
    from ..runs.embedding import Lexicon


@dataclass(frozen=True)
class NeighborOptions:
    """Which words of the vocabulary are looked for."""

    nearest: Annotated[str | None, typer.Option(metavar="WORD", help="The words nearest to this one.")] = None
    analogy: Annotated[
        tuple[str, str, str] | None, typer.Option(metavar="A B C", help="A is to B as C is to what?")
    ] = None
    questions: Annotated[
        Path | None, typer.Option(help="A file of analogies, four words a line: how many are right, by section.")
    ] = None
    best: Annotated[int, typer.Option(min=1, max=10_000, help="How many words are shown.")] = 10


@expand_groups
def embed(
    run: Annotated[Path, typer.Argument(help="A run folder whose model reads text.")],
    file: Annotated[
        Path | None,
        typer.Option(help="Texts: a line each, or a table with the columns of the run. They go to --out as vectors."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the vectors go: .safetensors, .csv, .tsv, .jsonl or .parquet.")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=0, help="The layer of the vectors; 0 is the embedding. The last if not given.")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="A vector for each word of a text, not one for the text.")
    ] = False,
    *,
    neighbors: NeighborOptions,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Vectors of texts or of their words as a file; the nearest words of the vocabulary, and analogies."""
    if (file is None) != (out is None):
        raise DataError("--file names the texts and --out where their vectors go: give both")
    asks_neighbors = neighbors.nearest or neighbors.analogy or neighbors.questions
    if file is None and not asks_neighbors:
        raise DataError("nothing is asked: give --file and --out, or --nearest, --analogy or --questions")
    from ..runs.run import load

    loaded = load(run)
    if file is not None and out is not None:
        from ..runs.vector_files import write_vectors

        print_vectors(write_vectors(loaded, file, out, layer, words), as_json)
    if asks_neighbors:
        show_neighbors(loaded.lexicon, neighbors, as_json)


def show_neighbors(lexicon: "Lexicon", options: NeighborOptions, as_json: bool) -> None:
    if options.nearest is not None:
        show(options.nearest, lexicon.nearest(options.nearest, options.best), as_json)
    if options.analogy is not None:
        words = "{} is to {} as {} is to …".format(*options.analogy)
        show(words, lexicon.analogy(*options.analogy, options.best), as_json)
    if options.questions is not None:
        show_questions(lexicon, options.questions, as_json)


def print_vectors(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_line(report)
        return
    print(
        f"{report['file']}: {format_count(report['vectors'], 'vector')} of {format_count(report['size'], 'number')}, "
        f"layer {report['layer']} of {report['layers']}"
    )
    if report["cut"]:
        print(f"longer than the run reads, so that only the beginning counts: {format_count(report['cut'], 'text')}")


def show(query: str, neighbors: list[Any], as_json: bool) -> None:
    if as_json:
        print_line({"asked": query, "words": [asdict(one) for one in neighbors]})
        return
    print(query)
    for one in neighbors:
        print(f"  {one.cosine:6.3f}  {one.word}")


def show_questions(lexicon: "Lexicon", file: Path, as_json: bool) -> None:
    sections = lexicon.answer(str(file))
    total = {name: sum(one[name] for one in sections.values()) for name in ("right", "asked", "unknown")}
    if as_json:
        print_line({"questions": str(file), "sections": sections, "all": total})
        return
    for name, one in [*sections.items(), ("all", total)]:
        share = f"{one['right'] / one['asked']:6.1%}" if one["asked"] else "     –"
        print(f"{share}  {name}: {one['right']:,} of {one['asked']:,}; {one['unknown']:,} have an unknown word")
