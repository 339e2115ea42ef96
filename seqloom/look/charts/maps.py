"""Heat maps: attention, gradients over time and layers, receptive fields, positions, units over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats
from ..measures.attention import OVER_ITSELF, OVER_SOURCE, SUMMARY, AttentionMap
from ..measures.gates import UnitValues
from ..measures.gradients import GradientFlow
from ..measures.positions import PositionVectors
from ..measures.receptive_field import ReceptiveField
from ..names import GATES, STATES
from .base import (
    CELLS,
    SIDE,
    import_altair,
    make_data,
    make_extent,
    make_log_color,
    make_title,
    make_token_axis,
    name_pieces,
    pool,
    raise_zeros,
    round_number,
    split_axis,
)

if TYPE_CHECKING:
    import altair as alt

MEAN, WEIGHT = "mean of all", "attention weight"
LABELED, TINY = 8, 60  # heads side by side that have tokens on their axes; the size of the maps of more heads
SIDES = {"source": "source element", "inputs": "element read"}
AXES = {  # by the kind of attention: the elements attended to, and those that attend
    OVER_SOURCE: ("source element (attended to)", "target element (attends)"),
    OVER_ITSELF: ("element attended to", "element that attends"),
    SUMMARY: ("element attended to", "query of the pooling"),
}


def name_maps(attention: AttentionMap) -> dict[str, NDArray[np.float32]]:
    """The maps by their names, of several the mean first."""
    mean = {} if len(attention.names) == 1 else {MEAN: attention.weights.mean(0)}
    return mean | dict(zip(attention.names, attention.weights, strict=True))


def pick_map(chart: Any, names: Sequence[str]) -> Any:
    """Let the reader choose one of several maps; at first it is the first one."""
    alt = import_altair()
    if len(names) < 2:
        return chart
    choice = alt.binding_select(options=list(names), name="layer and head: ")
    pick = alt.selection_point(name="map", fields=["map"], value=names[0], bind=choice)
    return chart.add_params(pick).transform_filter(pick)


def attention_chart(attention: AttentionMap) -> "alt.Chart":
    """A row for each element that attends, a column for each attended to. One map can be picked; at first the mean."""
    alt = import_altair()
    maps = name_maps(attention)
    side = max(8, min(SIDE, int((CELLS / len(maps)) ** 0.5)))
    rows, columns = split_axis(len(attention.target), side), split_axis(len(attention.source), side)
    values = [
        cell | {"map": name}
        for name, weights in maps.items()
        for cell in _cells(weights, rows, columns, attention.target, attention.source, "sum")
    ]
    brightest = max(float(attention.weights.max(initial=0)), min(1.0, 4 / max(len(attention.source), 1)))
    across, down = AXES[attention.kind]
    chart = _heat(values, make_title(attention.title, attention.example, _note_pooling(attention)))
    chart = chart.encode(
        x=alt.X("column:O", axis=make_token_axis(name_pieces(attention.source, columns), across, across=True)),
        y=alt.Y("row:O", axis=make_token_axis(name_pieces(attention.target, rows), down)),
        color=alt.Color("value:Q", scale=alt.Scale(scheme="viridis", domain=[0, brightest]), title=WEIGHT),
        tooltip=[_make_tooltip(down, "y"), _make_tooltip(across, "x"), alt.Tooltip("value:Q", title=WEIGHT), "map:N"],
    ).properties(width=make_extent(len(columns)), height=make_extent(len(rows)))
    return pick_map(chart, list(maps))


def heads_chart(maps: Sequence[AttentionMap]) -> "alt.VConcatChart":
    """Every layer and head of each kind of attention as a small map: a row of maps for each layer."""
    panels = [_heads_panel(one, CELLS // sum(len(each.names) for each in maps)) for one in maps]
    return (
        import_altair()
        .vconcat(*panels)
        .properties(
            title=make_title(
                "Attention weights of every layer and head",
                "Columns are attended to, rows attend; a row of maps for each layer, a column for each head",
            )
        )
    )


def _heads_panel(attention: AttentionMap, cells: int) -> Any:
    alt = import_altair()
    side = max(6, min(24, int(cells**0.5)))
    rows, columns = split_axis(len(attention.target), side), split_axis(len(attention.source), side)
    values = []
    for name, weights in zip(attention.names, attention.weights, strict=True):
        layer, _, head = name.partition(", ")
        for cell in _cells(weights, rows, columns, attention.target, attention.source, "sum"):
            values.append(cell | {"layer": layer, "head": head or "one head"})
    layers = list(dict.fromkeys(cell["layer"] for cell in values))
    heads = list(dict.fromkeys(cell["head"] for cell in values))
    labeled = len(heads) <= LABELED
    width, height = (max(TINY, 10 * len(side)) if labeled else TINY for side in (columns, rows))
    across, down = AXES[attention.kind]
    return (
        _heat(values, make_title(attention.title, f"columns: {across}; rows: {down}"))
        .encode(
            x=alt.X(
                "column:O",
                axis=_make_small_axis(name_pieces(attention.source, columns), across=True) if labeled else None,
            ),
            y=alt.Y("row:O", axis=_make_small_axis(name_pieces(attention.target, rows)) if labeled else None),
            color=alt.Color("value:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), title=WEIGHT),
            tooltip=["layer:N", "head:N", _make_tooltip(down, "y"), _make_tooltip(across, "x"), "value:Q"],
            row=alt.Row("layer:N", sort=layers, title=None, header=alt.Header(labelAngle=0, labelAlign="left")),
            column=alt.Column("head:N", sort=heads, title=None),
        )
        .properties(width=width, height=height)
    )


def _make_small_axis(names: Sequence[str], across: bool = False) -> Any:
    """The tokens beside a small map; long ones are cut."""
    axis = make_token_axis(names, "", across)
    axis.labelLimit, axis.labelFontSize = 60, 9
    if across and max(map(len, names), default=0) > 1:
        axis.labelAngle, axis.labelAlign, axis.labelBaseline = -90, "right", "middle"
    return axis


FLOW = "‖∂L/∂h_t‖: of the loss by the output of each layer at each step; logarithmic colors"


def flow_chart(
    flows: Sequence[GradientFlow], title: str = "Gradient norm at every layer and step"
) -> "alt.VConcatChart":
    """The gradient of the loss at every step of every layer, in powers of ten: dark is vanished."""
    domain = _span_norms(flows)
    maps = [_flow_map(flow, domain) for flow in flows]
    return import_altair().vconcat(*maps).properties(title=make_title(title, FLOW))


def flow_history_chart(
    history: Sequence[tuple[str, Sequence[GradientFlow]]], title: str = "Gradient norm over training"
) -> "alt.VConcatChart":
    """The same after some steps of training, one below the other, with the same colors."""
    domain = _span_norms([flow for _, flows in history for flow in flows])
    maps = [_flow_map(flow, domain, when) for when, flows in history for flow in flows]
    return import_altair().vconcat(*maps).properties(title=make_title(title, FLOW))


def _span_norms(flows: Sequence[GradientFlow]) -> tuple[float, float]:
    everything = np.concatenate([flow.norms.ravel() for flow in flows]) if flows else np.zeros(0)
    safe = raise_zeros(everything)
    return (float(safe.min()), float(safe.max())) if safe.size else (1e-12, 1.0)


def _flow_map(flow: GradientFlow, domain: tuple[float, float], words: str = "") -> "alt.Chart":
    alt = import_altair()
    columns, rows = split_axis(len(flow.steps), SIDE), split_axis(len(flow.levels), SIDE)
    values = list(_cells(np.maximum(flow.norms, domain[0]), rows, columns, flow.levels, flow.steps, "max"))
    return (
        _heat(values, words)
        .encode(
            x=alt.X("column:O", axis=make_token_axis(name_pieces(flow.steps, columns), SIDES[flow.side], True)),
            y=alt.Y("row:O", sort="descending", axis=make_token_axis(flow.levels, "layer")),
            color=make_log_color("value", "gradient norm ‖∂L/∂h_t‖", *domain),
            tooltip=[
                _make_tooltip("layer", "y"),
                _make_tooltip("step", "x"),
                alt.Tooltip("value:Q", title="gradient norm", format=".2e"),
            ],
        )
        .properties(width=make_extent(len(columns)), height=make_extent(len(rows)))
    )


def field_chart(
    field: ReceptiveField, title: str = "Receptive field: how much each element moves each output"
) -> "alt.Chart":
    """How much each element read moves each output."""
    alt = import_altair()
    rows, columns = split_axis(len(field.outputs), SIDE), split_axis(len(field.read), SIDE)
    values = list(_cells(field.influence, rows, columns, field.outputs, field.read, "max"))
    moving = [cell["value"] for cell in values if cell["value"]]
    return (
        _heat(values, make_title(title, "Norm of the derivative ‖∂y_t/∂x_s‖; an empty cell cannot be seen at all"))
        .transform_filter("datum.value > 0")
        .encode(
            x=alt.X("column:O", axis=make_token_axis(name_pieces(field.read, columns), "element read x_s", True)),
            y=alt.Y("row:O", axis=make_token_axis(name_pieces(field.outputs, rows), "output y_t")),
            color=make_log_color(
                "value", "derivative ‖∂y_t/∂x_s‖", min(moving, default=1e-12), max(moving, default=1.0)
            ),
            tooltip=[
                _make_tooltip("output", "y"),
                _make_tooltip("read", "x"),
                alt.Tooltip("value:Q", title="influence", format=".2e"),
            ],
        )
        .properties(width=make_extent(len(columns)), height=make_extent(len(rows)))
    )


def units_chart(levels: Sequence[UnitValues], title: str = "Every unit over time") -> "alt.VConcatChart":
    """Every unit over time, a map for each gate or state."""
    return (
        import_altair()
        .vconcat(*map(_unit_map, levels))
        .resolve_scale(color="independent")
        .properties(title=make_title(title))
    )


def _unit_map(level: UnitValues) -> "alt.Chart":
    alt = import_altair()
    values, quantity = level.values.T, level.quantity  # (units, T)
    rows, columns = split_axis(len(values), SIDE // 2), split_axis(len(level.steps), SIDE)
    most = 1.0 if level.gate else float(np.abs(values).max(initial=1e-9))
    scale = (
        alt.Scale(scheme="viridis", domain=[0, 1])
        if level.gate
        else alt.Scale(scheme="blueorange", domain=[-most, most])
    )
    units = [str(n + 1) for n in range(len(values))]
    cells = list(_cells(values, rows, columns, units, level.steps, "max"))
    words = f"{GATES.get(quantity, quantity)}: 0 is closed, 1 is open" if level.gate else STATES.get(quantity, quantity)
    return (
        _heat(cells, make_title(level.name, words))
        .encode(
            x=alt.X("column:O", axis=make_token_axis(name_pieces(level.steps, columns), "element read", True)),
            y=alt.Y("row:O", axis=make_token_axis(name_pieces(units, rows), "unit")),
            color=alt.Color("value:Q", scale=scale, title=quantity),
            tooltip=[_make_tooltip("unit", "y"), _make_tooltip("step", "x"), alt.Tooltip("value:Q", title=quantity)],
        )
        .properties(width=make_extent(len(columns)), height=make_extent(len(rows), 12, 640))
    )


def position_chart(positions: PositionVectors, title: str = "Position vectors") -> "alt.HConcatChart":
    """The vectors themselves, and how alike the vectors of two places are."""
    alt = import_altair()
    places = [str(n) for n in range(len(positions.values))]
    features = [str(n) for n in range(positions.values.shape[1])]
    charts = []
    for values, across, label, words in (
        (positions.values, features, "feature", "The vector of each position"),
        (positions.alike, places, "position", "Cosine similarity of two positions"),
    ):
        rows, columns = split_axis(len(places), SIDE), split_axis(len(across), SIDE)
        most = float(np.abs(values).max(initial=1e-9))
        charts.append(
            _heat(list(_cells(values, rows, columns, places, across, "max")), words)
            .encode(
                x=alt.X("column:O", axis=alt.Axis(title=label, labelOverlap=True, labelAngle=0)),
                y=alt.Y("row:O", axis=alt.Axis(title="position", labelOverlap=True)),
                color=alt.Color("value:Q", scale=alt.Scale(scheme="blueorange", domain=[-most, most]), title="value"),
                tooltip=[_make_tooltip("position", "y"), _make_tooltip(label, "x"), "value:Q"],
            )
            .properties(width=300, height=300)
        )
    return alt.hconcat(*charts).resolve_scale(color="independent").properties(title=make_title(title, positions.name))


def _cells(
    values: Floats,
    rows: Sequence[slice],
    columns: Sequence[slice],
    row_names: Sequence[str],
    column_names: Sequence[str],
    across: str,
) -> Any:
    """The rectangles of a heat map, with what they are called."""
    joined = pool(np.asarray(values, float), rows, columns, across)
    down, right = name_pieces(row_names, rows), name_pieces(column_names, columns)
    for row in range(len(rows)):
        for column in range(len(columns)):
            value = round_number(joined[row, column])
            yield {"row": row, "column": column, "value": value, "y": down[row], "x": right[column]}


def _heat(values: list[dict[str, Any]], title: Any) -> Any:
    alt = import_altair()
    return alt.Chart(make_data(values), title=title).mark_rect()


def _make_tooltip(words: str, field: str) -> Any:
    return import_altair().Tooltip(f"{field}:N", title=words)


def _note_pooling(attention: AttentionMap) -> str:
    """Says so, where several elements share a cell."""
    longest = max(len(attention.source), len(attention.target), 0)
    return f"{longest} elements: neighbors share a cell, whose attention is summed" if longest > SIDE else ""
