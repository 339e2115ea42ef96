"""The card of a run: what it is, how good it is, how to use it, in words for people."""

from pathlib import Path
from typing import Any

from .recipe import Recipe
from .settings.tasks import FORECASTERS, USES


def card(folder: Path, recipe: Recipe, scores: dict[str, Any], report: dict[str, Any]) -> str:
    """The README.md of a run folder."""
    data = recipe.data.sample and f"the built-in sample “{recipe.data.sample}”" or ", ".join(recipe.data.train)
    rows = "\n".join(score_row(name, score) for name, score in scores["scores"].items())
    return f"""# {folder.name}: {recipe.about.title or recipe.task}

{network(recipe)}, trained on {data or "examples from Python"}
for {recipe.train.steps:,} steps with seed {recipe.train.seed}.

## Scores on {scores["examples"]:,} {scores["split"]} examples

| score | value | 95 % interval | baselines | scale |
|---|---|---|---|---|
{rows}

## Use

```console
$ seqloom predict {folder} {asked(recipe.task)}
$ seqloom score {folder} --on FILE
```

```python
from seqloom import load

[best, *others] = load({str(folder)!r}).predict({"data_frame" if recipe.task in FORECASTERS else '"…"'})
```

## Data

{data_lines(report)}
"""


def asked(task: str) -> str:
    """How a run of such a task is asked on a command line."""
    return "--file FILE" if task in FORECASTERS else '"…"'


def network(recipe: Recipe) -> str:
    """The sides that the task has."""
    use, model = USES[recipe.task], recipe.model
    sides = [f"an encoder ({model.side('encoder').shape})"] * use.encodes
    sides += [f"a decoder ({model.side('decoder').shape})"] * use.decodes
    words = " and ".join(sides)
    return words[0].upper() + words[1:]


def score_row(name: str, score: dict[str, Any]) -> str:
    low, high = score["interval"]
    rivals = ", ".join(f"{rival} {value:.3f}" for rival, value in score["baselines"].items())
    return f"| {name} | {score['value']:.3f} | {low:.3f} – {high:.3f} | {rivals} | {score['scale']} |"


def data_lines(report: dict[str, Any]) -> str:
    """What was read, and what of it was not: nothing is left out silently."""
    lines = [f"- {report['rows_read']:,} rows read; {report['padded_share']:.1%} of the training batches is padding"]
    for reason, rows in report["skipped"].items():
        lines.append(f"- {rows['rows']:,} rows skipped: {reason} (first: {rows['first']})")
    for name, part in report["splits"].items():
        cut = sum(side["cut"] for side in part["sides"].values())
        lines.append(
            f"- {name}: {part['examples']:,} examples, {part['dropped']:,} dropped and {cut:,} cut as too long"
        )
    return "\n".join(lines)
