"""Heat maps: attention, gradients over time and layers, receptive fields, positions, units over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats
from ..measures.attention import OVER_ITSELF, OVER_SOURCE, SUMMARY, AttentionMap
from ..measures.gates import Trace
from ..measures.gradients import GradientFlow
from ..measures.positions import PositionVectors
from ..measures.receptive_field import Field
from .base import CELLS, SIDE, above_zero, altair, data, extent, number, piece_names, pieces, pooled, titled, token_axis
from .lines import GATES, STATES

if TYPE_CHECKING:
    import altair as alt

MEAN, WEIGHT = "mean of all", "attention weight"
AXES = {  # by the kind of attention: the elements attended to, and those that attend
    OVER_SOURCE: ("source element (attended to)", "target element (attends)"),
    OVER_ITSELF: ("element attended to", "element that attends"),
    SUMMARY: ("element attended to", "query of the pooling"),
}


def named_maps(found: AttentionMap) -> dict[str, NDArray[np.float32]]:
    """The maps by their names, of several the mean first."""
    mean = {} if len(found.names) == 1 else {MEAN: found.weights.mean(0)}
    return mean | dict(zip(found.names, found.weights, strict=True))


def pick_map(chart: Any, names: Sequence[str]) -> Any:
    """Let the reader choose one of several maps; at first it is the first one."""
    alt = altair()
    if len(names) < 2:
        return chart
    choice = alt.binding_select(options=list(names), name="layer and head: ")
    pick = alt.selection_point(name="map", fields=["map"], value=names[0], bind=choice)
    return chart.add_params(pick).transform_filter(pick)


def attention_chart(found: AttentionMap) -> "alt.Chart":
    """A row for each element that attends, a column for each attended to. One map can be picked; at first the mean."""
    alt = altair()
    maps = named_maps(found)
    side = max(8, min(SIDE, int((CELLS / len(maps)) ** 0.5)))
    rows, columns = pieces(len(found.target), side), pieces(len(found.source), side)
    values = [
        cell | {"map": name}
        for name, weights in maps.items()
        for cell in _cells(weights, rows, columns, found.target, found.source, "sum")
    ]
    brightest = max(float(found.weights.max(initial=0)), min(1.0, 4 / max(len(found.source), 1)))
    across, down = AXES[found.kind]
    chart = _heat(values, titled(found.title, found.example, _long(found)))
    chart = chart.encode(
        x=alt.X("column:O", axis=token_axis(piece_names(found.source, columns), across, across=True)),
        y=alt.Y("row:O", axis=token_axis(piece_names(found.target, rows), down)),
        color=alt.Color("value:Q", scale=alt.Scale(scheme="viridis", domain=[0, brightest]), title=WEIGHT),
        tooltip=[_tip(down, "y"), _tip(across, "x"), alt.Tooltip("value:Q", title=WEIGHT), "map:N"],
    ).properties(width=extent(len(columns)), height=extent(len(rows)))
    return pick_map(chart, list(maps))


def heads_chart(maps: Sequence[AttentionMap]) -> "alt.VConcatChart":
    """Every layer and head of each kind of attention as a small map: a row of maps for each layer."""
    panels = [_heads_panel(one, CELLS // sum(len(each.names) for each in maps)) for one in maps]
    return (
        altair()
        .vconcat(*panels)
        .properties(
            title=titled(
                "Attention weights of every layer and head",
                "Across: the element attended to; down: the element that attends",
            )
        )
    )


def _heads_panel(found: AttentionMap, cells: int) -> Any:
    alt = altair()
    side = max(6, min(24, int(cells**0.5)))
    rows, columns = pieces(len(found.target), side), pieces(len(found.source), side)
    values = []
    for name, weights in zip(found.names, found.weights, strict=True):
        layer, _, head = name.partition(", ")
        for cell in _cells(weights, rows, columns, found.target, found.source, "sum"):
            values.append(cell | {"layer": layer, "head": head or "one head"})
    layers = list(dict.fromkeys(cell["layer"] for cell in values))
    heads = list(dict.fromkeys(cell["head"] for cell in values))
    size = 60 if len(heads) > 4 else 120
    across, down = AXES[found.kind]
    return (
        _heat(values, titled(found.title))
        .encode(
            x=alt.X("column:O", axis=_small_axis(piece_names(found.source, columns), size, across=True)),
            y=alt.Y("row:O", axis=_small_axis(piece_names(found.target, rows), size)),
            color=alt.Color("value:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), title=WEIGHT),
            tooltip=["layer:N", "head:N", _tip(down, "y"), _tip(across, "x"), "value:Q"],
            row=alt.Row("layer:N", sort=layers, title=None, header=alt.Header(labelAngle=0, labelAlign="left")),
            column=alt.Column("head:N", sort=heads, title=None),
        )
        .properties(width=size, height=size)
    )


def _small_axis(names: Sequence[str], size: int, across: bool = False) -> Any:
    """The tokens, where they fit beside a small map."""
    longest = max(map(len, names), default=0)
    if len(names) * 9 > size or longest > 8:
        return None
    axis = token_axis(names, "", across)
    if across and longest > 1:
        axis.labelAngle, axis.labelAlign, axis.labelBaseline = -90, "right", "middle"
    return axis


def flow_chart(
    flows: Sequence[GradientFlow], title: str = "Gradient norm at every layer and step"
) -> "alt.VConcatChart":
    """The gradient of the loss at every step of every layer, in powers of ten: dark is vanished."""
    alt = altair()
    charts = []
    everything = np.concatenate([flow.norms.ravel() for flow in flows]) if flows else np.zeros(0)
    safe = above_zero(everything)
    domain = [float(safe.min()), float(safe.max())] if safe.size else [1e-12, 1.0]
    for flow in flows:
        columns, rows = pieces(len(flow.steps), SIDE), pieces(len(flow.levels), SIDE)
        norms = np.maximum(flow.norms, domain[0])
        values = list(_cells(norms, rows, columns, flow.levels, flow.steps, "max"))
        charts.append(
            _heat(values, "")
            .encode(
                x=alt.X("column:O", axis=token_axis(piece_names(flow.steps, columns), f"{flow.side} element", True)),
                y=alt.Y("row:O", sort="descending", axis=token_axis(flow.levels, "layer")),
                color=alt.Color(
                    "value:Q",
                    scale=alt.Scale(type="log", scheme="viridis", domain=domain),
                    title="gradient norm ‖∂L/∂h_t‖",
                    legend=alt.Legend(format=".0e", tickCount=5),
                ),
                tooltip=[
                    _tip("layer", "y"),
                    _tip("step", "x"),
                    alt.Tooltip("value:Q", title="gradient norm", format=".2e"),
                ],
            )
            .properties(width=extent(len(columns)), height=extent(len(rows)))
        )
    return alt.vconcat(*charts).properties(
        title=titled(title, "‖∂L/∂h_t‖: of the loss by the output of each layer at each step; logarithmic colors")
    )


def field_chart(field: Field, title: str = "Receptive field: how much each element moves each output") -> "alt.Chart":
    """How much each element read moves each output."""
    alt = altair()
    rows, columns = pieces(len(field.outputs), SIDE), pieces(len(field.read), SIDE)
    values = list(_cells(field.influence, rows, columns, field.outputs, field.read, "max"))
    return (
        _heat(values, titled(title, "Norm of the derivative ‖∂y_t/∂x_s‖; an empty cell cannot be seen at all"))
        .transform_filter("datum.value > 0")
        .encode(
            x=alt.X("column:O", axis=token_axis(piece_names(field.read, columns), "element read x_s", True)),
            y=alt.Y("row:O", axis=token_axis(piece_names(field.outputs, rows), "output y_t")),
            color=alt.Color("value:Q", scale=alt.Scale(type="log", scheme="viridis"), title="derivative ‖∂y_t/∂x_s‖"),
            tooltip=[_tip("output", "y"), _tip("read", "x"), alt.Tooltip("value:Q", title="influence", format=".2e")],
        )
        .properties(width=extent(len(columns)), height=extent(len(rows)))
    )


def units_chart(trace: Trace, quantity: str = "", title: str = "") -> "alt.Chart":
    """Every unit of one gate or state over time; if it is not named, of the first state."""
    alt = altair()
    quantity = quantity or next(iter(trace.entries))
    values = trace.of(quantity).T  # (units, T)
    rows, columns = pieces(len(values), SIDE // 2), pieces(len(trace.steps), SIDE)
    gate = quantity in trace.gates
    most = 1.0 if gate else float(np.abs(values).max(initial=1e-9))
    scale = alt.Scale(scheme="viridis", domain=[0, 1]) if gate else alt.Scale(scheme="blueorange", domain=[-most, most])
    cells = list(_cells(values, rows, columns, [str(n + 1) for n in range(len(values))], trace.steps, "max"))
    words = f"{GATES.get(quantity, quantity)}: 0 is closed, 1 is open" if gate else STATES.get(quantity, quantity)
    return (
        _heat(cells, titled(title or f"Every unit of {trace.name}", words))
        .encode(
            x=alt.X("column:O", axis=token_axis(piece_names(trace.steps, columns), "element read", True)),
            y=alt.Y("row:O", axis=alt.Axis(title="unit", labels=len(rows) <= 24)),
            color=alt.Color("value:Q", scale=scale, title=quantity),
            tooltip=[_tip("unit", "y"), _tip("step", "x"), alt.Tooltip("value:Q", title=quantity)],
        )
        .properties(width=extent(len(columns)), height=extent(len(rows), 8, 400))
    )


def position_chart(found: PositionVectors, title: str = "Position vectors") -> "alt.HConcatChart":
    """The vectors themselves, and how alike the vectors of two places are."""
    alt = altair()
    places = [str(n) for n in range(len(found.values))]
    features = [str(n) for n in range(found.values.shape[1])]
    charts = []
    for values, across, label, words in (
        (found.values, features, "feature", "The vector of each position"),
        (found.alike, places, "position", "Cosine similarity of two positions"),
    ):
        rows, columns = pieces(len(places), SIDE), pieces(len(across), SIDE)
        most = float(np.abs(values).max(initial=1e-9))
        charts.append(
            _heat(list(_cells(values, rows, columns, places, across, "max")), words)
            .encode(
                x=alt.X("column:O", axis=alt.Axis(title=label, labelOverlap=True, labelAngle=0)),
                y=alt.Y("row:O", axis=alt.Axis(title="position", labelOverlap=True)),
                color=alt.Color("value:Q", scale=alt.Scale(scheme="blueorange", domain=[-most, most]), title="value"),
                tooltip=[_tip("position", "y"), _tip(label, "x"), "value:Q"],
            )
            .properties(width=300, height=300)
        )
    return alt.hconcat(*charts).resolve_scale(color="independent").properties(title=titled(title, found.name))


def _cells(
    values: Floats,
    rows: Sequence[slice],
    columns: Sequence[slice],
    row_names: Sequence[str],
    column_names: Sequence[str],
    across: str,
) -> Any:
    """The rectangles of a heat map, with what they are called."""
    joined = pooled(np.asarray(values, float), rows, columns, across)
    down, right = piece_names(row_names, rows), piece_names(column_names, columns)
    for row in range(len(rows)):
        for column in range(len(columns)):
            value = number(joined[row, column])
            yield {"row": row, "column": column, "value": value, "y": down[row], "x": right[column]}


def _heat(values: list[dict[str, Any]], title: Any) -> Any:
    alt = altair()
    return alt.Chart(data(values), title=title).mark_rect()


def _tip(words: str, field: str) -> Any:
    return altair().Tooltip(f"{field}:N", title=words)


def _long(found: AttentionMap) -> str:
    """Says so, where several elements share a cell."""
    longest = max(len(found.source), len(found.target), 0)
    return f"{longest} elements: neighbors share a cell, whose attention is summed" if longest > SIDE else ""
