"""One page about a comparison: the verdict, what every variant scores and costs, and how it was done.

A single file that opens from disk without a network. What is in it is given as JSON; knows no run folder.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..charts.base import read_library, render
from ..charts.comparison import cost_chart
from .html import items, page, script, section, table, tag
from .style import DRAW, STYLE

COLUMNS = (
    *("variant", "{score}", "95 % interval", "worse than the best by", "p, corrected", "parameters", "steps"),
    *("seconds to train", "ms an answer", "MB"),
)


def write_comparison_page(comparison: Mapping[str, Any]) -> bytes:
    """The page as bytes of UTF-8."""
    title = f"{comparison['task']}: {', '.join(row['name'] for row in comparison['rows'])}"
    chart = json.loads(render(cost_chart(comparison["rows"], comparison["score"], comparison["better"]), ".json"))
    head = tag("header", tag("h1", title), tag("p", comparison["verdict"]["sentence"]))
    columns = [column.format(score=comparison["score"]) for column in COLUMNS]
    main = tag(
        "main",
        section("table", "Scores and costs", table(columns, list_rows(comparison))),
        section("time", "Score against time", tag("div", kind="wide chart", id="chart-cost")),
        section("how", "How it was compared", items(explain(comparison)), table(*list_seeds(comparison))),
    )
    specs = script(json.dumps({"cost": chart}, ensure_ascii=False), "application/json", "charts")
    return page(title, STYLE, head, main, specs, script(read_library()), script(DRAW)).encode()


def list_rows(comparison: Mapping[str, Any]) -> Iterator[list[str]]:
    """The cells of a table: the variants, the best first, then the baselines. The command line shows the same."""
    pairs = {pair["other"]: pair for pair in comparison["verdict"]["pairs"]}
    sign = -1 if comparison["better"] == "lower" else 1
    known = [row for row in comparison["rows"] if row["mean"] is not None]
    for row in sorted(known, key=lambda row: -sign * row["mean"]):
        pair = pairs.get(row["name"])
        yield [
            row["name"],
            f"{row['mean']:.4g}",
            format_interval(row["interval"]),
            f"{pair['difference']:.3g} ({format_interval(pair['interval'])})" if pair else "",
            f"{pair['corrected']:.2g}" if pair else "",
            f"{row['parameters']:,}",
            f"{row['steps']:,}",
            f"{row['seconds']:.1f}",
            f"{row['milliseconds']:.2f}",
            f"{row['megabytes']:.2f}",
        ]
    for row in comparison["rows"]:
        if row["failures"]:
            yield [row["name"], "failed", row["failures"][0], *[""] * (len(COLUMNS) - 3)]
    for name, value in comparison["baselines"].items():
        yield [f"baseline: {name}", f"{value:.4g}", *[""] * (len(COLUMNS) - 2)]


def format_interval(ends: Sequence[float]) -> str:
    low, high = ends
    return f"{low:.3g} – {high:.3g}"


def explain(comparison: Mapping[str, Any]) -> list[str]:
    matched = {
        "parameters": "Sizes were searched for so that parameters differ by less than 2 %.",
        "time": "Every variant was trained for the same time, as trial steps measured it.",
        "steps": "Every variant was trained for as many steps.",
    }
    return [
        matched[comparison["match"]],
        "{done} of {jobs} runs are done: {variants} variants with {seeds} seeds.".format(
            **comparison, variants=len(comparison["rows"])
        ),
        "A seed, the parts of the data and the order of batches are the same for all variants.",
        "Intervals come from drawing seeds with replacement, p-values from flipping signs of differences within seeds, "
        "corrected by Holm for the number of comparisons. A winner has p ≤ 0.05 against each of the others.",
    ] + [f"{row['name']}: {' '.join(row['settings'])}" for row in comparison["rows"]]


def list_seeds(comparison: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Every score, by variant and seed."""
    seeds = list(dict.fromkeys(seed for row in comparison["rows"] for seed in row["scores"]))
    cells = [
        [row["name"], *(f"{row['scores'][seed]:.4g}" if seed in row["scores"] else "–" for seed in seeds)]
        for row in comparison["rows"]
    ]
    return ["variant", *(f"seed {seed}" for seed in seeds)], cells
