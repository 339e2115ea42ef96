"""`score`, `quantize` and `certify`: how good a run is, what eight bits cost it, whether the layers are right."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..errors import RecipeError
from ..runs.begun import check_begun
from ..runs.json_output import print_whole
from .likelihoods import LikelihoodOptions, score_texts
from .options import Debug, Json, expand_groups


@expand_groups
def score(
    runs: Annotated[list[Path], typer.Argument(help="One or more run folders.")],
    on: Annotated[
        list[Path] | None,
        typer.Option(help="A file to score on (twice for two parallel files); the run's own test part if not given."),
    ] = None,
    *,
    likelihood: LikelihoodOptions,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Beside each score, the score with the words of what is read shuffled.")
    ] = False,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="A file of minimal pairs: on each line two texts with a tab between them, the better one first; a "
            "source and a tab before them for a run that answers."
        ),
    ] = None,
    meteor: Annotated[
        bool, typer.Option("--meteor", help="METEOR of a run that writes texts (extra meteor, and WordNet).")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score runs, each score with its interval and baselines; with --text, the probability of given texts."""
    if likelihood != LikelihoodOptions() and not likelihood.text and likelihood.texts is None:
        raise RecipeError("--given, --tag and --tokens apply only to texts to score: add --text or --texts")
    for folder in runs:
        check_begun(folder)
    texts = bool(likelihood.text) or likelihood.texts is not None
    if (bool(on) or shuffle or meteor) + texts + (pairs is not None) > 1 or (shuffle and meteor):
        raise RecipeError(
            "--on, --shuffle and --meteor are about examples, --text and --texts about sentences, --pairs about pairs: "
            "choose one"
        )
    if texts:
        score_texts(runs, likelihood, as_json)
        return
    if pairs is not None or shuffle:
        from .ordering import show_order, show_pairs

        for folder in runs:
            show_pairs(folder, pairs, as_json) if pairs is not None else show_order(folder, on or [], as_json)
        return
    from ..runs.run import load
    from .terminal import show_scores

    loaded = [load(folder) for folder in runs]
    if meteor:
        reports = [run.score_meteor(*(on or [])) for run in loaded]
    else:
        reports = [run.score(*on) if on else run.scores for run in loaded]
    if as_json:
        print_whole(reports)
    else:
        show_scores(reports)


def quantize(
    run: Annotated[Path, typer.Argument(help="A run folder of a task that writes or labels.")],
    on: Annotated[
        list[Path] | None, typer.Option(help="A file to score on; the run's own validation part if not given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the scores of a run with 8-bit weights and with all bits; predict --int8 uses the former."""
    check_begun(run)
    from ..runs.run import load
    from .terminal import show_table

    report = load(run).quantize(*(on or []))
    if as_json:
        print_whole(report)
        return
    rows = [
        [name, *(f"{values[key]:.4f}" for key in ("float32", "int8")), f"{values['change']:+.4f}"]
        for name, values in report["scores"].items()
    ]
    show_table(["score", "float32", "int8", "change"], rows)
    print("scoring took {float32:.2f} s with all bits and {int8:.2f} s with eight".format(**report["seconds"]))


def certify(as_json: Json = False, debug: Debug = False) -> None:
    """Check every cell, attention and block against its equations, PyTorch and derived facts."""
    from ..certify.checks import measure_certificates
    from .terminal import show_table

    certificates = list(measure_certificates())
    if as_json:
        print_whole([asdict(one) | {"holds": one.holds} for one in certificates])
    else:
        gaps = [
            [f"{gap:.0e}" if gap is not None else "–" for gap in (one.value_gap, one.gradient_gap)]
            for one in certificates
        ]
        rows = [
            [one.family, one.subject, one.claim, *gap, f"{one.limit:.0e}", "✓" if one.holds else "✗"]
            for one, gap in zip(certificates, gaps, strict=True)
        ]
        show_table(["family", "subject", "claim", "value", "gradient", "limit", ""], rows)
        print(f"{sum(one.holds for one in certificates)} of {len(certificates)} certificates hold")
    raise typer.Exit(0 if all(one.holds for one in certificates) else 1)
