"""Charts of classification scores: which class is taken for which, each class by itself, and calibration."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import COLORS, altair, data, extent, number, titled

if TYPE_CHECKING:
    import altair as alt

CLASSES = 40  # at most: the most frequent


def confusion_chart(score: Mapping[str, Any], title: str = "Confusion matrix") -> "alt.HConcatChart":
    """Rows are true classes, columns predicted ones, each cell the share of its row; beside it F1 of each class."""
    alt = altair()
    classes, counts = score["classes"], np.array(score["confusion"])
    names = list(classes)
    shown = sorted(range(len(names)), key=lambda n: -classes[names[n]]["examples"])[:CLASSES]
    total = np.maximum(counts.sum(1, keepdims=True), 1)
    rows = [
        {"true": names[i], "predicted": names[j], "examples": int(counts[i, j])}
        | {"share": number(float(counts[i, j] / total[i, 0]))}
        for i in shown
        for j in shown
    ]
    order = [names[n] for n in shown]
    base = alt.Chart(data(rows)).encode(
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
    size = extent(len(order), 34 if len(order) <= 15 else 18, 680)
    matrix = alt.layer(cells, *([numbers] if len(order) <= 15 else [])).properties(width=size, height=size)
    words = f"The {CLASSES} most frequent of {len(names)} classes" if len(names) > CLASSES else ""
    about = "Numbers are test examples; a bright diagonal is what one wants"
    return alt.hconcat(matrix, _rates(classes, order)).properties(title=titled(title, about, words))


def _rates(classes: Mapping[str, Any], order: list[str]) -> Any:
    """Precision, recall and F1 of each class as marks on one line."""
    alt = altair()
    kinds = {"precision": "precision", "recall": "recall", "F1": "f1"}
    rows = [
        {"class": name, "rate": words, "value": number(classes[name][key])}
        for name in order
        for words, key in kinds.items()
    ]
    return (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=60)
        .encode(
            y=alt.Y("class:N", sort=order, title=None, axis=alt.Axis(labelLimit=160, grid=True)),
            x=alt.X("value:Q", title="precision, recall, F1", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("rate:N", scale=alt.Scale(domain=list(kinds), range=list(COLORS[:3])), title=None),
            shape=alt.Shape("rate:N", scale=alt.Scale(domain=list(kinds)), title=None),
            tooltip=["class:N", "rate:N", "value:Q"],
        )
        .properties(width=180, height=extent(len(order), 34 if len(order) <= 15 else 18, 680))
    )


def calibration_chart(found: Mapping[str, Any], title: str = "Calibration of the confidence") -> "alt.VConcatChart":
    """How often answers of each confidence are right; on the diagonal, confidence can be taken at its word."""
    alt = altair()
    rows = [{key: number(value) for key, value in one.items()} for one in found["bins"]]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("confidence:Q", title="confidence (mean probability of the answer)", scale=alt.Scale(domain=[0, 1]))
    )
    line = base.mark_line(point=True, color=COLORS[0]).encode(
        y=alt.Y("accuracy:Q", title="accuracy (share right)", scale=alt.Scale(domain=[0, 1])),
        tooltip=["confidence:Q", "accuracy:Q", "examples:Q"],
    )
    ends = alt.Chart(data([{"confidence": 0, "accuracy": 0}, {"confidence": 1, "accuracy": 1}]))
    diagonal = ends.mark_line(strokeDash=[4, 4], color="#888888").encode(x="confidence:Q", y="accuracy:Q")
    bars = base.mark_bar(color="#999999", size=14).encode(y=alt.Y("examples:Q", title="examples"))
    words = f"Expected calibration error {found['error']:.3f}; below the diagonal the model is too sure"
    panels = [alt.layer(diagonal, line).properties(width=320, height=260), bars.properties(width=320, height=60)]
    return alt.vconcat(*panels).properties(title=titled(title, words))
