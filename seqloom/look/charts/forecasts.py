"""The picture of a forecast: history, quantile fan, truth and baselines, a panel for each variable."""

import json
from typing import TYPE_CHECKING, Any

from ..measures.forecasts import ForecastFan
from .base import COLORS, DASHES, import_altair, make_data, make_title, round_number

if TYPE_CHECKING:
    import altair as alt

PANELS = 6  # variables, at most
BEFORE = 4  # horizons of history that are drawn, at most
TRUTH, FORECAST = "truth", "forecast (median or mean)"


def fan_chart(fan: ForecastFan, title: str = "Forecast beside the truth") -> "alt.VConcatChart":
    """Bands between opposite quantiles, the darker the nearer to the middle."""
    alt = import_altair()
    names = list(fan.forecast)
    panels = [_panel(fan, name) for name in names[:PANELS]]
    left = f"{len(names) - PANELS} more variables are not drawn" if len(names) > PANELS else ""
    levels = list(next(iter(fan.quantiles.values()), {}))
    bands = f"Band: quantiles {levels[0]} to {levels[-1]}" if len(levels) > 1 else ""
    words = f"From {fan.times[0]} to {fan.times[-1]}. {bands}"
    return alt.vconcat(*panels).properties(title=make_title(title, words, left))


def _panel(fan: ForecastFan, name: str) -> Any:
    alt = import_altair()
    read, horizon = len(fan.history[name]), len(fan.forecast[name])
    first = max(0, read - BEFORE * horizon)
    past = [(step, value) for step, value in enumerate(fan.history[name]) if step >= first]
    ends = past[-1:]  # so that lines go on from what was read
    lines = {TRUTH: [*past, *enumerate(fan.truth[name], read)]}
    lines[FORECAST] = [*ends, *enumerate(fan.forecast[name], read)]
    lines |= {baseline: [*ends, *enumerate(values[name], read)] for baseline, values in fan.baselines.items()}
    rows = [
        {"step": step, "time": fan.times[step], "value": round_number(value), "line": line}
        for line, points in lines.items()
        for step, value in points
    ]
    scale = alt.Scale(zero=False)
    axis = alt.Axis(labelExpr=f"{_list_times(fan.times)}[datum.value]", tickCount=6, tickMinStep=1, title="time")
    names = list(lines)
    colors = ["#777777", COLORS[0], *COLORS[1:]][: len(names)]
    drawn = (
        alt.Chart(make_data(rows))
        .mark_line()
        .encode(
            x=alt.X("step:Q", axis=axis, scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title=name, scale=scale),
            color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colors), title=None),
            strokeDash=alt.StrokeDash(
                "line:N", scale=alt.Scale(domain=names, range=[[1, 0], [1, 0], *DASHES[1:]][: len(names)]), title=None
            ),
            strokeWidth=alt.condition(f"datum.line == '{FORECAST}'", alt.value(2.5), alt.value(1.5)),
            tooltip=["line:N", "time:N", "value:Q"],
        )
    )
    begin = (
        alt.Chart(make_data([{"step": read - 0.5}])).mark_rule(strokeDash=[2, 4], color="#888888").encode(x="step:Q")
    )
    return alt.layer(*_bands(fan, name, read, scale), drawn, begin).properties(width=600, height=220)


def _bands(fan: ForecastFan, name: str, read: int, scale: Any) -> list[Any]:
    """One between each quantile and its opposite."""
    alt = import_altair()
    quantiles = list(fan.quantiles.get(name, {}).values())
    bands = []
    for low, high in zip(quantiles[: len(quantiles) // 2], quantiles[::-1], strict=False):
        rows = [
            {"step": read + n, "low": round_number(a), "high": round_number(b)}
            for n, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        band = alt.Chart(make_data(rows)).mark_area(opacity=0.2, color=COLORS[0])
        bands.append(band.encode(x="step:Q", y=alt.Y("low:Q", title=name, scale=scale), y2="high:Q"))
    return bands


def _list_times(times: list[str]) -> str:
    """The times as a list in the language of the chart."""
    return json.dumps(times, ensure_ascii=False)
