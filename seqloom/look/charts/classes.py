"""Charts of scores: which class is taken for which, each class by itself, calibration, and quality by length."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import COLORS, import_altair, make_data, make_extent, make_title, round_number

if TYPE_CHECKING:
    import altair as alt

CLASSES = 40  # at most: the most frequent


def confusion_chart(score: Mapping[str, Any], title: str = "Confusion matrix") -> "alt.HConcatChart":
    """Rows are true classes, columns predicted ones, each cell the share of its row; beside it F1 of each class."""
    alt = import_altair()
    classes, counts = score["classes"], np.array(score["confusion"])
    names = list(classes)
    shown = sorted(range(len(names)), key=lambda n: -classes[names[n]]["examples"])[:CLASSES]
    total = np.maximum(counts.sum(1, keepdims=True), 1)
    rows = [
        {"true": names[i], "predicted": names[j], "examples": int(counts[i, j])}
        | {"share": round_number(float(counts[i, j] / total[i, 0]))}
        for i in shown
        for j in shown
    ]
    order = [names[n] for n in shown]
    base = alt.Chart(make_data(rows)).encode(
        x=alt.X("predicted:N", sort=order, title="predicted class", axis=alt.Axis(labelAngle=-45, labelLimit=140)),
        y=alt.Y("true:N", sort=order, title="true class", axis=alt.Axis(labelLimit=160)),
    )
    cells = base.mark_rect().encode(
        color=alt.Color("share:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), title="share of the true class"),
        tooltip=["true:N", "predicted:N", "examples:Q", alt.Tooltip("share:Q", format=".1%")],
    )
    numbers = base.mark_text(fontSize=10).encode(
        text="examples:Q", color=alt.condition("datum.share > 0.6", alt.value("#000000"), alt.value("#ffffff"))
    )
    size = make_extent(len(order), 34 if len(order) <= 15 else 18, 680)
    matrix = alt.layer(cells, *([numbers] if len(order) <= 15 else [])).properties(width=size, height=size)
    words = f"The {CLASSES} most frequent of {len(names)} classes" if len(names) > CLASSES else ""
    about = "Numbers are test examples; a bright diagonal is what one wants"
    both = alt.hconcat(matrix, _rates(classes, order)).resolve_scale(color="independent", shape="independent")
    return both.properties(title=make_title(title, about, words))


def _rates(classes: Mapping[str, Any], order: list[str]) -> Any:
    """Precision, recall and F1 of each class as marks on one line."""
    alt = import_altair()
    kinds = {"precision": "precision", "recall": "recall", "F1": "f1"}
    rows = [
        {"class": name, "rate": words, "value": round_number(classes[name][key])}
        for name in order
        for words, key in kinds.items()
    ]
    return (
        alt.Chart(make_data(rows))
        .mark_point(filled=True, size=60)
        .encode(
            y=alt.Y("class:N", sort=order, title=None, axis=alt.Axis(labelLimit=160, grid=True)),
            x=alt.X("value:Q", title="precision, recall, F1", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("rate:N", scale=alt.Scale(domain=list(kinds), range=list(COLORS[:3])), title=None),
            shape=alt.Shape("rate:N", scale=alt.Scale(domain=list(kinds)), title=None),
            tooltip=["class:N", "rate:N", "value:Q"],
        )
        .properties(width=180, height=make_extent(len(order), 34 if len(order) <= 15 else 18, 680))
    )


def calibration_chart(
    calibration: Mapping[str, Any], title: str = "Calibration of the confidence"
) -> "alt.VConcatChart":
    """How often answers of each confidence are right; on the diagonal, confidence can be taken at its word."""
    alt = import_altair()
    rows = [{key: round_number(value) for key, value in one.items()} for one in calibration["bins"]]
    base = alt.Chart(make_data(rows)).encode(
        x=alt.X("confidence:Q", title="confidence (mean probability of the answer)", scale=alt.Scale(domain=[0, 1]))
    )
    line = base.mark_line(point=True, color=COLORS[0]).encode(
        y=alt.Y("accuracy:Q", title="accuracy (share right)", scale=alt.Scale(domain=[0, 1])),
        tooltip=["confidence:Q", "accuracy:Q", "examples:Q"],
    )
    ends = alt.Chart(make_data([{"confidence": 0, "accuracy": 0}, {"confidence": 1, "accuracy": 1}]))
    diagonal = ends.mark_line(strokeDash=[4, 4], color="#888888").encode(x="confidence:Q", y="accuracy:Q")
    bars = base.mark_bar(color="#999999", size=14).encode(y=alt.Y("examples:Q", title="examples"))
    words = f"Expected calibration error {calibration['error']:.3f}; below the diagonal the model is too sure"
    panels = [alt.layer(diagonal, line).properties(width=320, height=260), bars.properties(width=320, height=60)]
    return alt.vconcat(*panels).properties(title=make_title(title, words))


def lengths_chart(scores: Mapping[str, Any], title: str = "Quality by the length of the source") -> "alt.VConcatChart":
    """A panel for each score: its value on examples of each length, beside that on all of them."""
    alt = import_altair()
    panels = []
    for name, score in scores.items():
        bins = score["by_length"]
        rows = [
            {"length": f"{length} ({one['examples']:,})", "value": round_number(one["value"])}
            for length, one in bins.items()
        ]
        axis = alt.Axis(title="length of the source in elements (examples)", labelAngle=0)
        bars = alt.Chart(make_data(rows)).mark_bar(color=COLORS[0])
        bars = bars.encode(
            x=alt.X("length:O", sort=[row["length"] for row in rows], axis=axis),
            y=alt.Y("value:Q", title=name),
            tooltip=["length:N", "value:Q"],
        )
        whole = alt.Chart(make_data([{"whole": round_number(score["value"])}]))
        rule = whole.mark_rule(strokeDash=[4, 4], color=COLORS[1]).encode(y="whole:Q")
        panels.append(alt.layer(bars, rule).properties(width=alt.Step(90), height=140))
    words = "The dashed line is the score of all examples"
    return alt.vconcat(*panels).properties(title=make_title(title, words))
