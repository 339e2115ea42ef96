"""Several models in one chart: curves, scores by distance, and how far back the gradient of each reaches."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats
from .base import COLORS, DASHES, import_altair, make_data, make_title, round_number, split_axis

if TYPE_CHECKING:
    import altair as alt

FAINTEST = 1e-8  # what is less is drawn as this
CELLS = 40  # of a row, at most


def curves_together_chart(
    curves: Mapping[str, Floats], across: str, up: str, title: str, words: str = ""
) -> "alt.Chart":
    """A line for each model through its points (N, 2)."""
    alt = import_altair()
    rows = [
        {"model": name, "x": round_number(x), "y": round_number(y)}
        for name, points in curves.items()
        for x, y in points.tolist()
    ]
    names = list(curves)
    return (
        alt.Chart(make_data(rows), title=make_title(title, words))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("x:Q", title=across),
            y=alt.Y("y:Q", title=up, scale=alt.Scale(zero=False)),
            color=alt.Color("model:N", sort=names, scale=alt.Scale(domain=names, range=list(COLORS)), title=None),
            strokeDash=alt.StrokeDash("model:N", sort=names, scale=alt.Scale(domain=names, range=DASHES), title=None),
            tooltip=["model:N", alt.Tooltip("x:Q", title=across), alt.Tooltip("y:Q", title=up)],
        )
        .properties(width=520, height=300)
    )


def panels_chart(
    curves: Mapping[str, Floats], across: str, up: str, title: str, words: str = "", *, shares: bool = True
) -> "alt.FacetChart":
    """A panel for each model with all others in gray, so that lines on top of each other can be told apart; the axis of
    `shares` goes from 0 to 100 %."""
    alt = import_altair()
    names = list(curves)
    rows = [
        {"panel": panel, "model": name, "x": round_number(x), "y": round_number(y), "own": name == panel}
        for panel in names
        for name in [*(other for other in names if other != panel), panel]
        for x, y in curves[name].tolist()
    ]
    scale = alt.Scale(domain=[0, 1]) if shares else alt.Scale(zero=False)
    return (
        alt.Chart(make_data(rows))
        .mark_line()
        .encode(
            x=alt.X("x:Q", title=across),
            y=alt.Y("y:Q", title=up, scale=scale, axis=alt.Axis(format="%" if shares else "~g")),
            detail="model:N",
            color=alt.condition("datum.own", alt.value(COLORS[0]), alt.value("#cccccc")),
            strokeWidth=alt.condition("datum.own", alt.value(3), alt.value(1)),
            tooltip=["model:N", alt.Tooltip("x:Q", title=across), alt.Tooltip("y:Q", title=up)],
        )
        .properties(width=190, height=140)
        .facet(facet=alt.Facet("panel:N", sort=names, title=None), columns=3)
        .properties(title=make_title(title, words))
    )


def reach_chart(
    reaches: Mapping[str, Mapping[str, Floats]], title: str = "Gradient norm by distance from the end"
) -> "alt.VConcatChart":
    """A panel for each time (before and after training), a row for each model: ‖∂L/∂h‖ by steps back from the end,
    over the largest of its row."""
    alt = import_altair()
    panels = []
    for when, models in reaches.items():
        rows = []
        for name, norms in models.items():
            shares = np.maximum(norms / max(float(norms.max(initial=0)), 1e-300), FAINTEST)
            rows += [
                {"model": name, "back": part.start, "share": round_number(shares[part].max())}
                for part in split_axis(len(norms), CELLS)
            ]
        panels.append(
            alt.Chart(make_data(rows), title=when)
            .mark_rect()
            .encode(
                x=alt.X(
                    "back:O",
                    sort="descending",
                    axis=alt.Axis(
                        title="lag (steps back from the end)",
                        labelExpr="datum.value % 10 == 0 ? datum.label : ''",
                        labelAngle=0,
                        ticks=False,
                    ),
                ),
                y=alt.Y("model:N", sort=list(models), title=None, axis=alt.Axis(labelLimit=160, ticks=False)),
                color=alt.Color(
                    "share:Q",
                    scale=alt.Scale(type="log", scheme="viridis", domain=[FAINTEST, 1]),
                    title="share of the largest",
                    legend=alt.Legend(format=".0e", tickCount=5),
                ),
                tooltip=["model:N", "back:Q", alt.Tooltip("share:Q", format=".1e")],
            )
            .properties(width=560, height=alt.Step(26))
        )
    return alt.vconcat(*panels).properties(
        title=make_title(title, "‖∂L/∂h_t‖ as a share of the largest of its row, logarithmic")
    )


def reverse_time(norms: Floats) -> Floats:
    """By steps back from the end instead of forwards."""
    return np.asarray(norms)[::-1]


def cost_chart(rows: Sequence[Mapping[str, Any]], score: str, better: str) -> "alt.LayerChart":
    """The score of every variant against the time of its training: each seed, their mean, and its 95 % interval."""
    alt = import_altair()
    names = [row["name"] for row in rows]
    shared = {
        "x": alt.X("seconds:Q", title="seconds of training", scale=alt.Scale(zero=False)),
        "color": alt.Color("model:N", sort=names, scale=alt.Scale(domain=names, range=list(COLORS)), title=None),
    }
    up = f"{score} ({better} is better)"
    y = alt.Y("value:Q", title=up, scale=alt.Scale(zero=False))
    means = [
        {"model": row["name"], "seconds": round_number(row["seconds"]), "value": round_number(row["mean"])}
        | dict(zip(("low", "high"), map(round_number, row["interval"]), strict=True))
        for row in rows
        if row["mean"] is not None
    ]
    seeds = [
        {"model": row["name"], "seconds": round_number(row["seconds"]), "value": round_number(value), "seed": seed}
        for row in rows
        for seed, value in row["scores"].items()
    ]
    tips = ["model:N", "seconds:Q", "value:Q"]
    dots = alt.Chart(make_data(seeds)).mark_point(size=25, opacity=0.5).encode(y=y, tooltip=[*tips, "seed:N"], **shared)
    spans = (
        alt.Chart(make_data(means)).mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=up), y2="high:Q", **shared)
    )
    points = (
        alt.Chart(make_data(means))
        .mark_point(filled=True, size=110, opacity=1)
        .encode(y=y, shape=alt.Shape("model:N", sort=names, legend=None), tooltip=[*tips, "low:Q", "high:Q"], **shared)
    )
    title = make_title("Score against time", "Small: a seed; large: their mean, with its 95 % interval")
    return alt.layer(dots, spans, points).properties(title=title, width=520, height=300)
