"""The card of a run: what it is, how good it is, how to use it, in words for people."""

from pathlib import Path
from typing import Any

from ..config.recipe import Recipe
from ..config.tasks import USES
from ..counts import format_count

BARS = "▁▂▃▄▅▆▇█"
MOST_LABELS = 8


def write_card(folder: Path, recipe: Recipe, scores: dict[str, Any], report: dict[str, Any]) -> str:
    """The README.md of a run folder."""
    data = recipe.data.sample and f"the built-in sample “{recipe.data.sample}”" or ", ".join(recipe.data.train)
    rows = "\n".join(format_score(name, score) for name, score in scores["scores"].items())
    return f"""# {folder.name}: {recipe.about.title or recipe.task}

{describe_network(recipe)}, trained on {data or "examples from Python"}
for {recipe.train.steps:,} steps with seed {recipe.train.seed}, in {recipe.train.precision} on {recipe.train.device}.

## Scores on {scores["examples"]:,} {scores["split"]} examples

| score | value | 95 % interval | baselines | scale |
|---|---|---|---|---|
{rows}

## Use

```console
$ seqloom {make_example_command(recipe, folder)}
$ seqloom score {folder} --on FILE
```

```python
from seqloom import load

{make_example_code(recipe, folder)}
```

## Data

{chr(10).join(f"- {line}" for line in describe_data(report))}
"""


def make_example_command(recipe: Recipe, folder: Path) -> str:
    """How such a run is asked on a command line."""
    if not USES[recipe.task].encodes:
        return f'generate {folder} --prompt "…"'
    numbers = recipe.task in ("forecast", "caption") or recipe.data.source_type != "tokens"
    return f"predict {folder} --file FILE" if numbers else f'predict {folder} "…"'


def make_example_code(recipe: Recipe, folder: Path) -> str:
    """The same in Python."""
    if not USES[recipe.task].encodes:
        return f'[text] = load({str(folder)!r}).generate("…").finish()'
    raw = "data_frame" if recipe.task == "forecast" else '"…"' if recipe.data.source_type == "tokens" else "array"
    return f"[best, *others] = load({str(folder)!r}).predict({raw})"


def describe_network(recipe: Recipe) -> str:
    """The architecture of each side, in words."""
    use, model = USES[recipe.task], recipe.model
    sides = [f"an encoder ({model.side('encoder').shape})"] * use.encodes
    sides += [f"a decoder ({model.side('decoder').shape})"] * use.decodes
    words = " and ".join(sides)
    return words[0].upper() + words[1:]


def format_score(name: str, score: dict[str, Any]) -> str:
    interval = "{:.3f} – {:.3f}".format(*score["interval"]) if score.get("interval") else "–"
    rivals = ", ".join(f"{rival} {value:.3f}" for rival, value in score["baselines"].items())
    return f"| {name} | {score['value']:.3f} | {interval} | {rivals} | {score['scale']} |"


def describe_data(report: dict[str, Any]) -> list[str]:
    """What was read, and what of it was not: nothing is left out silently."""
    lines = [
        f"{format_count(report['rows_read'], 'row')} read; {report['padded_share']:.1%} of the training batches "
        "is padding"
    ]
    lines += report.get("notes", ())
    for reason, rows in report["skipped"].items():
        lines.append(f"{format_count(rows['rows'], 'row')} skipped: {reason} (first: {rows['first']})")
    for name, part in report["splits"].items():
        cut = sum(side["cut"] for side in part["sides"].values())
        phrases = [
            f"{format_count(part['examples'], 'example')}",
            f"{part['dropped']:,} dropped and {cut:,} cut as too long",
        ]
        if part.get("repeated"):
            phrases.append(f"{part['repeated']:,} that stand in it before")
        if part.get("overlap"):
            phrases.append(f"**{part['overlap']:,} whose source is also one of training**")
        lines.append(f"{name}: {', '.join(phrases)}")
        lines += [
            f"{name}, {side}: {', '.join(words)}"
            for side, one in part["sides"].items()
            if (words := describe_side(one))
        ]
    return lines + [f"**warning:** {sentence}" for sentence in report.get("warnings", ())]


def describe_side(side: dict[str, Any]) -> list[str]:
    """What is worth a word about one side of a part."""
    phrases = []
    if side.get("lengths"):
        ranges = list(side["lengths"])
        histogram = draw_histogram(list(side["lengths"].values()))
        phrases.append(f"lengths {ranges[0]} to {ranges[-1]}, mean {side['mean']:.1f} {histogram}")
    if side.get("balance"):
        counts = sorted(side["balance"].items(), key=lambda item: -item[1])
        shown = ", ".join(f"{label} {count:,}" for label, count in counts[:MOST_LABELS])
        phrases.append(f"{format_count(len(counts), 'label')}: {shown}{', …' if len(counts) > MOST_LABELS else ''}")
    if side.get("unknown_share"):
        phrases.append(f"{side['unknown_share']:.1%} unknown")
    if side.get("missing_share"):
        phrases.append(f"{side['missing_share']:.1%} missing")
    return phrases


def draw_histogram(counts: list[int]) -> str:
    """A histogram of block characters."""
    return "".join(BARS[round((len(BARS) - 1) * count / max(counts))] for count in counts)
