"""Charts of how training went: loss and scores, schedules, and what was watched at its layers while it went on."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats
from ..measures.schedules import Curves, LearningRates
from ..watching import SPECTRUM, WatchedTraining
from .base import (
    COLORS,
    SIDE,
    import_altair,
    make_data,
    make_log_color,
    make_title,
    raise_zeros,
    round_number,
    split_axis,
)

if TYPE_CHECKING:
    import altair as alt

PANEL = {"width": 480, "height": 220}
KINDS = dict(
    zip(SPECTRUM, ("largest singular value", "median", "smallest singular value", "spectral radius"), strict=True)
)


def curves_chart(curves: Curves, title: str = "Loss and scores over training") -> "alt.VConcatChart":
    """Training against validation: where they part, the model overfits. Below, the validation's scores."""
    alt = import_altair()
    loss = _lines(
        [
            {"step": int(step), "value": round_number(value), "of": words}
            for words, points in (("training", curves.training), ("validation", curves.validation))
            for step, value in points.tolist()
        ],
        "loss",
    )
    panels = [loss.interactive(bind_y=False)]
    for name, points in curves.scores.items():
        rows = [
            {"step": int(step), "value": round_number(value), "of": "validation"} for step, value in points.tolist()
        ]
        panels.append(_lines(rows, name).properties(height=120))
    return alt.vconcat(*panels).properties(
        title=make_title(title, "Loss: mean negative log-likelihood per target element; lower is better")
    )


def _lines(rows: list[dict[str, Any]], label: str) -> Any:
    alt = import_altair()
    colors = alt.Scale(domain=["training", "validation"], range=list(COLORS[:2]))
    return (
        alt.Chart(make_data(rows))
        .mark_line(point=len(rows) <= 100)
        .encode(
            x=alt.X("step:Q", title="step"),
            y=alt.Y("value:Q", title=label, scale=alt.Scale(zero=False)),
            color=alt.Color("of:N", scale=colors, title=None),
            tooltip=["of:N", "step:Q", alt.Tooltip("value:Q", title=label)],
        )
        .properties(**PANEL)
    )


def schedule_chart(schedule: LearningRates, title: str = "Learning rate schedule") -> "alt.VConcatChart":
    """And, where a decoder is not always given the truth, how often it is."""
    alt = import_altair()
    panels = [("rate", schedule.rates, "learning rate", "~g")]
    if (schedule.truths < 1).any():
        panels.append(("truth", schedule.truths, "teacher forcing (share of true elements read)", "%"))
    charts = []
    for name, values, label, form in panels:
        rows = [{"step": int(s), name: float(v)} for s, v in zip(schedule.steps, values, strict=True)]
        charts.append(
            alt.Chart(make_data(rows))
            .mark_line(color=COLORS[0])
            .encode(
                x=alt.X("step:Q", title="step"),
                y=alt.Y(f"{name}:Q", title=label, axis=alt.Axis(format=form), scale=alt.Scale(domainMin=0)),
                tooltip=["step:Q", alt.Tooltip(f"{name}:Q", format=".3g")],
            )
            .properties(**PANEL)
        )
    return alt.vconcat(*charts).properties(title=make_title(title, "It rises during the warm-up, then falls"))


def training_flow_chart(
    history: WatchedTraining, title: str = "Gradient norm of each layer over training"
) -> "alt.VConcatChart":
    """The norm of the gradient at each layer's weights, step by step of training: dark is starved."""
    return _draw_over_training(
        history,
        history.gradients,
        title,
        "gradient norm ‖∂L/∂W‖",
        "Logarithmic colors; the first layer is at the bottom, a row that stays dark learns little",
    )


def updates_chart(history: WatchedTraining, title: str = "Relative size of each update") -> "alt.VConcatChart":
    """The optimizer's move over the weights' own length: about a thousandth is usual."""
    words = "‖ΔW‖ / ‖W‖ of one step; about 10⁻³ is common, 10⁻¹ is very large"
    return _draw_over_training(history, history.updates, title, "relative update ‖ΔW‖ / ‖W‖", words)


def _draw_over_training(history: WatchedTraining, values: Floats, title: str, label: str, words: str) -> Any:
    alt = import_altair()
    parts = split_axis(len(history.steps), SIDE)
    raised = raise_zeros(np.nan_to_num(values))
    rows: list[dict[str, Any]] = [
        {
            "place": n,
            "step": int(history.steps[part.start]),
            "layer": layer,
            "value": round_number(raised[part, column].mean()),
        }
        for column, layer in enumerate(history.layers)
        for n, part in enumerate(parts)
    ]
    steps = [int(history.steps[part.start]) for part in parts]
    positive = [row["value"] for row in rows if row["value"]]
    chart = (
        alt.Chart(make_data(rows))
        .mark_rect()
        .encode(
            x=alt.X(
                "step:O",
                sort=steps,
                axis=alt.Axis(title="step of training", labelOverlap=True, labelAngle=0, ticks=False),
            ),
            y=alt.Y(
                "layer:N",
                sort=history.layers[::-1],
                axis=alt.Axis(title="layer", labelLimit=240, ticks=False),
            ),
            color=make_log_color("value", label, min(positive, default=1e-12), max(positive, default=1.0)),
            tooltip=["layer:N", "step:Q", alt.Tooltip("value:Q", title=label, format=".2e")],
        )
        .properties(width=max(240, min(560, 24 * len(parts))), height=alt.Step(22))
    )
    return alt.vconcat(chart).properties(title=make_title(title, words))


def training_spectra_chart(
    history: WatchedTraining, title: str = "Singular values of the recurrent weights over training"
) -> "alt.FacetChart":
    """The largest, the median and the smallest singular value of each recurrent matrix, and its spectral radius."""
    alt = import_altair()
    parts = split_axis(len(history.steps), 100)
    rows = [
        {"step": int(history.steps[part.start]), "matrix": matrix, "of": KINDS[kind], "value": round_number(mean)}
        for place, matrix in enumerate(history.matrices)
        for part in parts
        for kind, mean in zip(SPECTRUM, history.spectra[part, place].mean(0), strict=True)
        if np.isfinite(mean)
    ]
    base = alt.Chart(make_data(rows))
    lines = base.mark_line(point=len(parts) <= 12).encode(
        x=alt.X("step:Q", title="step of training"),
        y=alt.Y("value:Q", title="singular value", scale=alt.Scale(domainMin=0)),
        color=alt.Color("of:N", sort=list(KINDS.values()), scale=alt.Scale(range=list(COLORS)), title=None),
        tooltip=["matrix:N", "of:N", "step:Q", "value:Q"],
    )
    rule = base.transform_calculate(one="1").mark_rule(strokeDash=[4, 4], color="#888888").encode(y="min(one):Q")
    return (
        alt.layer(rule, lines)
        .properties(width=170, height=110)
        .facet(facet=alt.Facet("matrix:N", sort=history.matrices, title=None), columns=4)
        .properties(title=make_title(title, "Above the dashed line at 1 a state can grow, below it shrinks"))
    )
