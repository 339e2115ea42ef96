"""Charts of what a report begins with: scores beside their baselines, and how long the examples are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import COLORS, import_altair, make_data, make_title, round_number

if TYPE_CHECKING:
    import altair as alt

OWN = "this model"


def scores_chart(scores: Mapping[str, Any], title: str = "Scores beside their baselines") -> "alt.VConcatChart":
    """A panel for each score: the model with its interval, and what needs no model."""
    alt = import_altair()
    panels = []
    for name, score in scores.items():
        low, high = score["interval"]
        rows = [{"who": OWN, "value": round_number(score["value"]), "low": low, "high": high}]
        rows += [{"who": rival, "value": round_number(value)} for rival, value in score["baselines"].items()]
        base = alt.Chart(make_data(rows)).encode(y=alt.Y("who:N", sort=None, title=None, axis=alt.Axis(labelLimit=200)))
        color = alt.condition(f"datum.who === '{OWN}'", alt.value(COLORS[0]), alt.value("#999999"))
        dots = base.mark_point(filled=True, size=90, opacity=1).encode(
            x=alt.X("value:Q", title=f"{name} ({score.get('better', 'higher')} is better)", scale=alt.Scale(zero=True)),
            color=color,
            tooltip=["who:N", "value:Q", "low:Q", "high:Q"],
        )
        spans = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, color=COLORS[0])
        panels.append(alt.layer(spans.encode(x="low:Q", x2="high:Q"), dots).properties(width=420, height=alt.Step(22)))
    return alt.vconcat(*panels).properties(title=make_title(title, "The line is the 95 % interval"))


def lengths_chart(report: Mapping[str, Any], title: str = "How long the examples are") -> "alt.VConcatChart | None":
    """The histograms of the training part, a panel for each side; none where all are of one length."""
    alt = import_altair()
    sides = report.get("splits", {}).get("train", {}).get("sides", {})
    panels = []
    for name, side in sides.items():
        rows = [{"length": length, "examples": count} for length, count in (side.get("lengths") or {}).items()]
        if sum(row["examples"] > 0 for row in rows) > 1:
            panels.append(
                alt.Chart(make_data(rows), title=name)
                .mark_bar(color=COLORS[0])
                .encode(
                    x=alt.X("length:N", sort=None, title="elements", axis=alt.Axis(labelAngle=-45)),
                    y=alt.Y("examples:Q", title="training examples"),
                    tooltip=["length:N", "examples:Q"],
                )
                .properties(width=420, height=140)
            )
    return alt.vconcat(*panels).properties(title=make_title(title)) if panels else None
