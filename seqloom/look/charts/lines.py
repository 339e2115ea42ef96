"""Curves over steps and lags: gates, what a memory keeps, Jacobians, spectra, cost."""

import warnings
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
from ..names import GATES, STATES
from .base import (
    COLORS,
    DASHES,
    LABELS,
    import_altair,
    make_data,
    make_step_axis,
    make_title,
    raise_zeros,
    round_number,
    zoom,
)

if TYPE_CHECKING:
    import altair as alt

JACOBIANS = ("‖∂s_T/∂s_t‖ (measured)", "product of one-step norms (bound)", "(γ·λ₁)^k (bound by the weights)")
PARTS = ["W_q", "W_k", "W_v"]
POINTS = 400  # of a line, at most
BANDS = "Line: mean over the units. Band: from the 10th to the 90th percentile"


def gates_chart(traces: Sequence[Trace], title: str = "Gate activations at every step") -> "alt.VConcatChart":
    """A panel for each gate of each layer: the mean over its units, in the band between which most units lie."""
    rows = [(trace, GATES, list(trace.gates)) for trace in traces if trace.gates]
    words = f"0 is closed, 1 is open. {BANDS}" if rows else "No layer here has gates"
    return _band_panels(rows, "activation", [0, 1]).properties(title=make_title(title, words))


def states_chart(traces: Sequence[Trace], title: str = "Values of the states at every step") -> "alt.VConcatChart":
    """The same for what a cell remembers and gives on."""
    rows = [(trace, STATES, list(trace.entries)) for trace in traces]
    return _band_panels(rows, "value").properties(title=make_title(title, BANDS))


def _band_panels(
    rows: Sequence[tuple[Trace, dict[str, str], list[str]]], label: str, domain: list[float] | None = None
) -> Any:
    """A row for each layer, a panel for each of its gates or states; a cursor moves through those that read alike."""
    alt = import_altair()
    cursors: dict[tuple[str, ...], Any] = {}
    for trace, _, _ in rows:
        name = f"cursor_{len(cursors)}"
        cursors.setdefault(
            tuple(trace.steps),
            alt.selection_point(
                name=name, fields=["step"], on="pointermove", nearest=True, empty=False, clear="pointerout"
            ),
        )
    with warnings.catch_warnings():  # panels share a cursor on purpose
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        lines = [
            alt.hconcat(
                *(
                    _band_panel(trace, name, words.get(name, name), label, domain, cursors[tuple(trace.steps)])
                    for name in names
                ),
                title=trace.name,
            )
            for trace, words, names in rows
            if len(trace.steps)
        ]
        return alt.vconcat(*(lines or [_make_empty_chart()]))


def _band_panel(trace: Trace, name: str, words: str, label: str, domain: list[float] | None, cursor: Any) -> Any:
    alt = import_altair()
    mean, (low, high) = trace.mean(name), trace.quantiles(name)
    rows = [
        {"step": n, "mean": round_number(m), "low": round_number(a), "high": round_number(b)}
        | {"said": f"{trace.steps[n]}: {m:.2f} ({a:.2f} to {b:.2f})"}
        for n, (m, a, b) in enumerate(zip(mean, low, high, strict=True))
    ]
    scale = alt.Scale(domain=domain) if domain else alt.Scale(zero=False)
    color = COLORS[list(GATES).index(name) % len(COLORS) if name in GATES else 0]
    base = alt.Chart(make_data(rows), title=alt.Title(words, fontSize=11, fontWeight="normal")).encode(
        x=alt.X("step:Q", axis=make_step_axis(trace.steps, "element read"))
    )
    band = base.mark_area(opacity=0.2, color=color).encode(y=alt.Y("low:Q", title=label, scale=scale), y2="high:Q")
    line = base.mark_line(point={"color": color} if len(trace.steps) <= LABELS else False, color=color).encode(
        y=alt.Y("mean:Q", title=label, scale=scale)
    )
    width = min(420, max(160, 16 * len(trace.steps)))
    # The layer of the cursor holds the zoom too, by a name of its own: in two layers, or by names that Altair makes up,
    # they are confused where panels are several.
    zooming = zoom(f"{trace.name} {name}")
    moves = [alt.selection_interval(name=zooming, bind="scales", encodings=["x"])] if len(trace.steps) > LABELS else []
    dots = base.mark_point(opacity=0).encode(y="mean:Q").properties(name=f"dots_{zooming}").add_params(cursor, *moves)
    here = alt.condition(cursor, alt.value(1), alt.value(0))
    rule = base.mark_rule(color="#888888").encode(opacity=here)
    labels = base.mark_text(align="right", style="guide-label").encode(
        x=alt.value(width - 4), y=alt.value(10), text="said:N", opacity=here
    )
    return alt.layer(band, line, rule, labels, dots).properties(width=width, height=120)


def memory_path_chart(
    traces: Sequence[Trace], title: str = "Memory path: how much of each step is left at the end"
) -> "alt.VConcatChart":
    """The product of the keeping gates after each step: the path on which an LSTM's memory lives."""
    alt = import_altair()
    shown = [trace for trace in traces if trace.keeping and trace.steps]
    charts = []
    for part, steps in enumerate(dict.fromkeys(tuple(trace.steps) for trace in shown)):
        rows = [
            {"step": n, "token": steps[n], "layer": trace.name, "left": round_number(v)}
            for trace in shown
            if tuple(trace.steps) == steps
            for n, v in _thin(raise_zeros(trace.memory_path.mean(1)))
        ]
        charts.append(
            _log_lines(
                rows, "step", make_step_axis(steps, "element read"), "left", "∏ f (share left)", "layer", "", part
            )
        )
    return (
        alt.vconcat(*(charts or [_make_empty_chart()]))
        .resolve_scale(color="independent", strokeDash="independent")
        .properties(
            title=make_title(title, "Product of the forget (or update) gates of all later steps, mean over units")
        )
    )


def decay_chart(
    decays: Sequence[Decay], title: str = "Jacobian norms: how much a state still moves the last one"
) -> "alt.ConcatChart":
    """A panel for each layer: the norm of the Jacobian by lag, and the bounds it keeps below."""
    alt = import_altair()
    panels = []
    curves = [
        {
            kind: values
            for kind, values in zip(JACOBIANS, (decay.norms, decay.steps, decay.bound), strict=True)
            if values is not None
        }
        for decay in decays
    ]
    names = [kind for kind in JACOBIANS if any(kind in each for each in curves)]
    for place, (decay, each) in enumerate(zip(decays, curves, strict=True)):
        rows = [
            {"lag": n, "norm": round_number(v), "kind": kind}
            for kind, values in each.items()
            for n, v in _thin(raise_zeros(np.minimum(values, 1e300)))
        ]
        axis = alt.Axis(title="lag k = T − t (steps back from the end)", tickMinStep=1)
        chart = _log_lines(rows, "lag", axis, "norm", "norm", "kind", decay.name, place, names)
        panels.append(chart.properties(width=300, height=180))
    words = "Log scale: a straight line down vanishes, a straight line up explodes"
    return alt.concat(*(panels or [_make_empty_chart()]), columns=2).properties(title=make_title(title, words))


def scalar_chart(
    decay: ScalarDecay, own: float | None = None, title: str = "A single linear unit: what is left of its gradient"
) -> "alt.Chart":
    """(γ̄ w)^lag for each weight; `own` adds that of a model's own largest eigenvalue."""
    lags = np.arange(decay.left.shape[1])
    curves = [(f"w = {weight:g}", values) for weight, values in zip(decay.weights, decay.left, strict=True)]
    curves += [] if own is None else [(f"w = {own:.3g} (this model)", np.power(decay.slope * own, lags.astype(float)))]
    rows = [
        {"lag": n, "left": round_number(v), "weight": words}
        for words, values in curves
        for n, v in _thin(raise_zeros(np.abs(values)))
    ]
    axis = import_altair().Axis(title="lag k (steps back from the end)", tickMinStep=1)
    words = make_title(title, "Below a weight of 1 it vanishes, above 1 it explodes")
    names = [name for name, _ in curves]
    return _log_lines(rows, "lag", axis, "left", f"gradient left, ({decay.slope:g} · w)^k", "weight", words, 1, names)


def spectrum_chart(
    spectra: Sequence[Spectrum], title: str = "Singular values of the recurrent weights"
) -> "alt.FacetChart":
    """A panel for each recurrent matrix of each layer; the line at 1 is where nothing shrinks or grows."""
    alt = import_altair()
    rows = [
        {
            "k": n + 1,
            "value": round_number(v),
            "layer": layer,
            "matrix": name_matrix(matrix),
            "radius": round_number(one.radius or 0),
        }
        for one in spectra
        for layer, _, matrix in [one.name.partition(", ")]
        for n, v in _thin(one.singular)
    ]
    lines = (
        alt.Chart()
        .mark_line(point=True, color=COLORS[0])
        .encode(
            x=alt.X("k:Q", axis=alt.Axis(title="k (largest first)", tickMinStep=1)),
            y=alt.Y("value:Q", title="singular value σ_k", scale=alt.Scale(domainMin=0)),
            tooltip=["layer:N", "matrix:N", "k:Q", "value:Q", alt.Tooltip("radius:Q", title="spectral radius")],
        )
    )
    one = alt.Chart().transform_calculate(one="1")  # a single line, not one for each row of the data
    rule = one.mark_rule(strokeDash=[4, 4], color="#888888").encode(y="min(one):Q")
    order = {field: list(dict.fromkeys(row[field] for row in rows)) for field in ("layer", "matrix")}
    return (
        alt.layer(rule, lines, data=make_data(rows))
        .properties(width=150, height=110)
        .facet(
            row=alt.Row("layer:N", sort=order["layer"], title=None),
            column=alt.Column("matrix:N", sort=order["matrix"], title=None),
        )
        .properties(title=make_title(title, "Above the dashed line at 1 a state can grow, below it shrinks"))
    )


def name_matrix(matrix: str) -> str:
    """ "W_h of f" as a person would say it; a plain recurrence has one matrix and no gates."""
    gate = matrix.partition(" of ")[2]
    return f"{matrix}, {GATES[gate]}" if gate in GATES else matrix


def query_key_value_chart(
    gradients: Sequence[QueryKeyValue], title: str = "Gradients of queries, keys and values"
) -> "alt.Chart":
    alt = import_altair()
    rows = [
        {
            "layer": one.name,
            "part": part,
            "share": round_number(value / max(weight, 1e-12)),
            "gradient": round_number(value),
        }
        for one in gradients
        for part, value, weight in zip(PARTS, (one.query, one.key, one.value), one.weights, strict=True)
    ]
    return (
        alt.Chart(make_data(rows), title=make_title(title, "Gradient norm over weight norm, ‖∂L/∂W‖ / ‖W‖"))
        .mark_bar()
        .encode(
            y=alt.Y("layer:N", sort=[one.name for one in gradients], title="attention", axis=alt.Axis(labelLimit=240)),
            yOffset=alt.YOffset("part:N", sort=PARTS),
            x=alt.X("share:Q", title="relative gradient ‖∂L/∂W‖ / ‖W‖"),
            color=alt.Color("part:N", sort=PARTS, scale=alt.Scale(range=list(COLORS)), title=None),
            tooltip=["layer:N", "part:N", "share:Q", "gradient:Q"],
        )
        .properties(width=420)
    )


def shrinkage_chart(
    shrinkages: Sequence[Shrinkage], title: str = "How much each normalization scales a gradient on its way back"
) -> "alt.Chart":
    alt = import_altair()
    rows = [
        {
            "norm": one.name,
            "gradient": round_number(one.gradient),
            "spread": round_number(one.spread),
            "size": round_number(one.size),
        }
        for one in shrinkages
    ]
    return (
        alt.Chart(
            make_data(rows),
            title=make_title(title, "The learned gain over the standard deviation of the input; below 1 it shrinks"),
        )
        .mark_bar(color=COLORS[0])
        .encode(
            y=alt.Y(
                "norm:N",
                sort=[one.name for one in shrinkages],
                title="normalization",
                axis=alt.Axis(labelLimit=240),
            ),
            x=alt.X("gradient:Q", title="factor (gain / σ)"),
            tooltip=["norm:N", "gradient:Q", "spread:Q", "size:Q"],
        )
        .properties(width=420)
    )


def cost_chart(costs: Sequence[Cost], title: str = "Time and memory by sequence length") -> "alt.HConcatChart":
    alt = import_altair()
    rows = [
        {
            "body": f"{cost.body} ({cost.parameters:,} parameters)",
            "length": cost.length,
            "forward": round_number(1000 * cost.forward),
            "training": round_number(1000 * cost.training),
            "memory": round_number(cost.memory / 1e6),
        }
        for cost in costs
    ]
    base, names = alt.Chart(make_data(rows)).mark_line(point=True), list(dict.fromkeys(row["body"] for row in rows))
    legend = alt.Legend(labelLimit=300, orient="bottom", columns=2, symbolType="stroke", symbolSize=400)
    colors = [COLORS[place % len(COLORS)] for place in range(len(names))]
    dashes = [DASHES[place // len(COLORS) % len(DASHES)] for place in range(len(names))]  # where colors come again
    panels = [
        base.encode(
            x=alt.X("length:Q", title="sequence length", scale=alt.Scale(type="log", base=2)),
            y=alt.Y(f"{name}:Q", title=words, scale=alt.Scale(type="log")),
            color=alt.Color("body:N", scale=alt.Scale(domain=names, range=colors), title=None, legend=legend),
            strokeDash=alt.StrokeDash("body:N", scale=alt.Scale(domain=names, range=dashes), title=None, legend=legend),
            tooltip=["body:N", "length:Q", f"{name}:Q"],
        ).properties(width=220, height=220, title=heading)
        for name, words, heading in (
            ("forward", "milliseconds per sequence", "Forward pass"),
            ("training", "milliseconds per sequence", "Forward and backward pass"),
            ("memory", "megabytes per sequence", "Memory of training"),
        )
    ]
    return alt.hconcat(*panels).properties(
        title=make_title(title, "Both axes are logarithmic: a steeper line grows with a higher power of the length")
    )


def _thin(values: Floats) -> list[tuple[int, float]]:
    """At most so many points of a line, the first and the last among them."""
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), POINTS)).astype(int))
    return [(int(place), float(values[place])) for place in places]


def _log_lines(
    rows: list[dict[str, Any]],
    x: str,
    axis: Any,
    y: str,
    label: str,
    color: str,
    title: Any,
    number: int = 1,
    names: Sequence[str] = (),
) -> Any:
    """Lines on a logarithmic axis that differ in color and in dashes."""
    alt = import_altair()
    names = list(names or dict.fromkeys(row[color] for row in rows))
    legend = alt.Legend(labelLimit=320, symbolType="stroke", symbolSize=300, symbolStrokeWidth=2)
    short = "format(datum.value, datum.value > 1e5 || datum.value < 1e-4 ? '.0e' : '~g')"
    return (
        alt.Chart(make_data(rows), title=title)
        .mark_line(point=len(rows) <= 3 * LABELS)
        .encode(
            x=alt.X(f"{x}:Q", axis=axis),
            y=alt.Y(f"{y}:Q", title=label, scale=alt.Scale(type="log"), axis=alt.Axis(labelExpr=short, tickCount=6)),
            color=alt.Color(f"{color}:N", scale=alt.Scale(domain=names, range=list(COLORS)), title=None, legend=legend),
            strokeDash=alt.StrokeDash(f"{color}:N", scale=alt.Scale(domain=names, range=DASHES), title=None),
            tooltip=[f"{color}:N", f"{x}:Q", alt.Tooltip(f"{y}:Q", format=".3g")],
        )
        .properties(width=520, height=260)
        .interactive(name=f"zoom_{number}", bind_y=False)
    )


def _make_empty_chart() -> Any:
    alt = import_altair()
    return alt.Chart(make_data([])).mark_point().properties(width=100, height=20)
