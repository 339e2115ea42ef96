"""How a score grows with the number of labels: a line for each way of training, with every seed as a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .base import COLORS, DASHES, import_altair, make_data, make_title, round_number

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class LabelCurve:
    """Scores by the number of labels, those of each seed."""

    name: str
    counts: Sequence[int]
    scores: Sequence[Sequence[float]]


def label_curve_chart(curves: Sequence[LabelCurve], score: str, words: str = "") -> "alt.LayerChart":
    """The mean over seeds as a line, each seed as a point; the numbers of labels on a logarithmic axis."""
    alt = import_altair()
    rows = [
        {"way": curve.name, "labels": count, "score": round_number(value)}
        for curve in curves
        for count, values in zip(curve.counts, curve.scores, strict=True)
        for value in values
    ]
    names = [curve.name for curve in curves]
    base = alt.Chart(make_data(rows), title=make_title(f"{score} by the number of labels", words)).encode(
        x=alt.X("labels:Q", scale=alt.Scale(type="log"), title="labels"),
        color=alt.Color("way:N", sort=names, scale=alt.Scale(domain=names, range=list(COLORS)), title=None),
    )
    lines = base.mark_line(strokeWidth=2.5).encode(
        y=alt.Y("mean(score):Q", title=score, scale=alt.Scale(zero=False)),
        strokeDash=alt.StrokeDash("way:N", sort=names, scale=alt.Scale(domain=names, range=DASHES), title=None),
    )
    points = base.mark_point(filled=True, size=45, opacity=0.8).encode(
        y="score:Q", tooltip=["way:N", "labels:Q", "score:Q"]
    )
    return alt.layer(lines, points).properties(width=520, height=300)
