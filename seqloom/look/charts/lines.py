"""Curves over steps and lags: gates, what a memory keeps, Jacobians, spectra, cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats
from ..measures.costs import Cost
from ..measures.gates import Trace
from ..measures.gradients import QueryKeyValue
from ..measures.jacobians import Decay
from ..measures.norms import Shrinkage
from ..measures.spectra import ScalarDecay, Spectrum
from .base import COLORS, LABELS, above_zero, altair, data, number, step_axis, titled, zoom

if TYPE_CHECKING:
    import altair as alt

GATES = {
    "i": "i: lets in",
    "f": "f: keeps",
    "o": "o: lets out",
    "r": "r: lets the old into the new",
    "u": "u: keeps",
}
PARTS = ["W_q", "W_k", "W_v"]
POINTS = 400  # of a line, at most


def gates_chart(traces: Sequence[Trace], title: str = "What the gates do") -> "alt.VConcatChart":
    """The mean of each gate over its units at every step, in the band between which most units lie."""
    alt = altair()
    charts = []
    for trace in traces:
        rows = [row for gate in trace.gates for row in _bands(trace, gate)]
        if rows:
            charts.append(_band_chart(trace, rows, [0, 1], "openness: 0 is closed, 1 is open"))
    subtitle = "Line: mean over the units. Band: four fifths of them" if charts else "No layer here has gates"
    return alt.vconcat(*(charts or [_empty()])).properties(title=titled(title, subtitle))


def states_chart(traces: Sequence[Trace], title: str = "What the states hold") -> "alt.VConcatChart":
    """The same for what a cell remembers and says."""
    alt = altair()
    charts = []
    for trace in traces:
        rows = [row for entry in trace.entries for row in _bands(trace, entry)]
        charts.append(_band_chart(trace, rows, None, "value of the units"))
    return alt.vconcat(*(charts or [_empty()])).properties(
        title=titled(title, "Line: mean over the units. Band: four fifths of them")
    )


def _bands(trace: Trace, quantity: str) -> list[dict[str, Any]]:
    if not len(trace.steps):
        return []
    mean, (low, high) = trace.mean(quantity), trace.quantiles(quantity)
    words = GATES.get(quantity, quantity)
    return [
        {"step": n, "token": trace.steps[n], "what": words, "mean": number(m), "low": number(a), "high": number(b)}
        for n, (m, a, b) in enumerate(zip(mean, low, high, strict=True))
    ]


def _band_chart(trace: Trace, rows: list[dict[str, Any]], domain: list[float] | None, label: str) -> Any:
    alt = altair()
    base = alt.Chart(data(rows), title=trace.name).encode(
        x=alt.X("step:Q", axis=step_axis(trace.steps, "what is read")),
        color=alt.Color("what:N", scale=alt.Scale(range=list(COLORS)), title=None, legend=alt.Legend(symbolOpacity=1)),
    )
    scale = alt.Scale(domain=domain) if domain else alt.Scale(zero=False)
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=label, scale=scale), y2="high:Q")
    line = base.mark_line(point=len(trace.steps) <= LABELS).encode(
        y=alt.Y("mean:Q", title=label, scale=scale), tooltip=["token:N", "what:N", "mean:Q", "low:Q", "high:Q"]
    )
    chart = alt.layer(band, line).properties(width=560, height=160)
    return chart.interactive(name=zoom(trace.name), bind_y=False) if len(trace.steps) > LABELS else chart


def memory_path_chart(
    traces: Sequence[Trace], title: str = "How much of each step is left at the end"
) -> "alt.VConcatChart":
    """The product of the keeping gates after each step: the path on which an LSTM's memory lives."""
    alt = altair()
    shown = [trace for trace in traces if trace.keeping and trace.steps]
    charts = []
    for part, steps in enumerate(dict.fromkeys(tuple(trace.steps) for trace in shown)):
        rows = [
            {"step": n, "token": steps[n], "layer": trace.name, "left": number(v)}
            for trace in shown
            if tuple(trace.steps) == steps
            for n, v in _thinned(above_zero(trace.kept.mean(1)))
        ]
        charts.append(
            _log_lines(rows, "step", step_axis(steps, "what is read"), "left", "share left", "layer", "", part)
        )
    return (
        alt.vconcat(*(charts or [_empty()]))
        .resolve_scale(color="independent")
        .properties(title=titled(title, "Product of the keeping gates over all later steps, mean over the units"))
    )


def decay_chart(decays: Sequence[Decay], title: str = "How much a step still moves the last state") -> "alt.Chart":
    """The norm of the Jacobian by lag, and the bounds it keeps below."""
    rows = []
    for decay in decays:
        kinds: list[tuple[str, Floats | None]] = [
            ("measured", decay.norms),
            ("product of single steps", decay.steps),
            ("bound (γ·λ₁)^lag", decay.bound),
        ]
        for kind, values in kinds:
            if values is not None:
                rows += [
                    {"lag": n, "norm": number(v), "layer": decay.name, "kind": kind}
                    for n, v in _thinned(above_zero(np.minimum(values, 1e300)))
                ]
    alt = altair()
    axis = alt.Axis(title="steps back from the end", tickMinStep=1)
    chart = _log_lines(
        rows,
        "lag",
        axis,
        "norm",
        "‖∂s_T/∂s_t‖",
        "layer",
        titled(title, "Log scale: a straight line down vanishes, a straight line up explodes"),
    )
    return chart.encode(strokeDash=alt.StrokeDash("kind:N", title=None, sort=["measured"]))


def scalar_chart(
    found: ScalarDecay, own: float | None = None, title: str = "One unit, one weight: what is left of the gradient"
) -> "alt.Chart":
    """(γ̄ w)^lag for each weight; `own` adds that of a model's own largest eigenvalue."""
    lags = np.arange(found.left.shape[1])
    curves = [(f"w = {weight:g}", values) for weight, values in zip(found.weights, found.left, strict=True)]
    curves += [] if own is None else [(f"this model: {own:.3g}", np.power(found.slope * own, lags.astype(float)))]
    rows = [
        {"lag": n, "left": number(v), "weight": words}
        for words, values in curves
        for n, v in _thinned(above_zero(np.abs(values)))
    ]
    axis = altair().Axis(title="steps back from the end", tickMinStep=1)
    return _log_lines(
        rows,
        "lag",
        axis,
        "left",
        f"({found.slope:g} · w)^lag",
        "weight",
        titled(title, "Below 1 it vanishes, above 1 it explodes"),
    )


def spectrum_chart(
    spectra: Sequence[Spectrum], title: str = "How far the recurrent weights stretch"
) -> "alt.ConcatChart":
    """All singular values of each recurrent matrix; the line at 1 is where nothing shrinks or grows."""
    alt = altair()
    panels = []
    for level in dict.fromkeys(one.name.partition(", ")[0] for one in spectra):
        rows = [
            {
                "index": n + 1,
                "value": number(v),
                "matrix": one.name.partition(", ")[2],
                "radius": number(one.radius or 0),
            }
            for one in spectra
            if one.name.partition(", ")[0] == level
            for n, v in _thinned(one.singular)
        ]
        lines = (
            alt.Chart(data(rows))
            .mark_line(point=True)
            .encode(
                x=alt.X("index:Q", axis=alt.Axis(title="singular value, the largest first", tickMinStep=1)),
                y=alt.Y("value:Q", title="how many times as long", scale=alt.Scale(domainMin=0)),
                color=alt.Color("matrix:N", title=None, scale=alt.Scale(range=list(COLORS))),
                tooltip=["matrix:N", "index:Q", "value:Q", alt.Tooltip("radius:Q", title="spectral radius")],
            )
        )
        rule = alt.Chart(data([{"value": 1}])).mark_rule(strokeDash=[4, 4], color="#888888").encode(y="value:Q")
        panels.append(alt.layer(rule, lines).properties(width=240, height=180, title=level))
    return alt.concat(*(panels or [_empty()]), columns=3).properties(
        title=titled(title, "Below the dashed line a state shrinks, above it grows")
    )


def query_key_value_chart(
    found: Sequence[QueryKeyValue], title: str = "Who gets the gradient: queries, keys or values"
) -> "alt.Chart":
    alt = altair()
    rows = [
        {"layer": one.name, "part": part, "share": number(value / max(weight, 1e-12)), "gradient": number(value)}
        for one in found
        for part, value, weight in zip(PARTS, (one.query, one.key, one.value), one.weights, strict=True)
    ]
    return (
        alt.Chart(data(rows), title=titled(title, "Norm of the gradient over the norm of the weights"))
        .mark_bar()
        .encode(
            y=alt.Y("layer:N", sort=[one.name for one in found], title="attention", axis=alt.Axis(labelLimit=240)),
            yOffset=alt.YOffset("part:N", sort=PARTS),
            x=alt.X("share:Q", title="gradient / weight"),
            color=alt.Color("part:N", sort=PARTS, scale=alt.Scale(range=list(COLORS)), title=None),
            tooltip=["layer:N", "part:N", "share:Q", "gradient:Q"],
        )
        .properties(width=420)
    )


def shrinkage_chart(
    found: Sequence[Shrinkage], title: str = "What each norm does to a gradient on its way back"
) -> "alt.Chart":
    alt = altair()
    rows = [
        {"norm": one.name, "gradient": number(one.gradient), "spread": number(one.spread), "size": number(one.size)}
        for one in found
    ]
    return (
        alt.Chart(data(rows), title=titled(title, "Below 1 it shrinks: the gain over the spread of what comes in"))
        .mark_bar(color=COLORS[0])
        .encode(
            y=alt.Y(
                "norm:N",
                sort=[one.name for one in found],
                title="norm, from the input up",
                axis=alt.Axis(labelLimit=240),
            ),
            x=alt.X("gradient:Q", title="times as long"),
            tooltip=["norm:N", "gradient:Q", "spread:Q", "size:Q"],
        )
        .properties(width=420)
    )


def cost_chart(found: Sequence[Cost], title: str = "What each body costs as sequences grow") -> "alt.HConcatChart":
    alt = altair()
    rows = [
        {
            "body": f"{cost.body} ({cost.parameters:,} parameters)",
            "length": cost.length,
            "forward": number(1000 * cost.forward),
            "training": number(1000 * cost.training),
            "memory": number(cost.memory / 1e6),
        }
        for cost in found
    ]
    base = alt.Chart(data(rows)).mark_line(point=True)
    panels = [
        base.encode(
            x=alt.X("length:Q", title="steps", scale=alt.Scale(type="log", base=2)),
            y=alt.Y(f"{name}:Q", title=words, scale=alt.Scale(type="log")),
            color=alt.Color(
                "body:N",
                scale=alt.Scale(range=list(COLORS)),
                title=None,
                legend=alt.Legend(labelLimit=300, orient="bottom", columns=2),
            ),
            tooltip=["body:N", "length:Q", f"{name}:Q"],
        ).properties(width=220, height=220, title=heading)
        for name, words, heading in (
            ("forward", "milliseconds a sequence", "Reading"),
            ("training", "milliseconds a sequence", "Reading and learning"),
            ("memory", "megabytes a sequence", "Memory while learning"),
        )
    ]
    return alt.hconcat(*panels).properties(
        title=titled(title, "Both axes in powers: a steeper line grows with a higher power of the length")
    )


def _thinned(values: Floats) -> list[tuple[int, float]]:
    """At most so many points of a line, the first and the last among them."""
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), POINTS)).astype(int))
    return [(int(place), float(values[place])) for place in places]


def _log_lines(
    rows: list[dict[str, Any]], x: str, axis: Any, y: str, label: str, color: str, title: Any, number: int = 1
) -> Any:
    alt = altair()
    return (
        alt.Chart(data(rows), title=title)
        .mark_line(point=len(rows) <= 3 * LABELS)
        .encode(
            x=alt.X(f"{x}:Q", axis=axis),
            y=alt.Y(f"{y}:Q", title=label, scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=6)),
            color=alt.Color(f"{color}:N", scale=alt.Scale(range=list(COLORS)), title=None),
            tooltip=[f"{color}:N", f"{x}:Q", alt.Tooltip(f"{y}:Q", format=".3g")],
        )
        .properties(width=520, height=260)
        .interactive(name=f"zoom_{number}", bind_y=False)
    )


def _empty() -> Any:
    alt = altair()
    return alt.Chart(data([])).mark_point().properties(width=100, height=20)
