"""Charts about symbols: what drove a decision, what comes next, who lies near whom, which layer knows what."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..measures.attribution import Attribution
from ..measures.faithfulness import Faithfulness
from ..measures.next_tokens import NextTokens
from ..measures.order import OrderSensitivity, Swaps
from ..measures.probes import Probe
from ..measures.vectors import Angles, Map, Neighbors
from ..names import format_token
from .base import (
    COLORS,
    LABELS,
    SIDE,
    import_altair,
    make_data,
    make_extent,
    make_title,
    make_token_axis,
    name_pieces,
    round_number,
    split_axis,
)

if TYPE_CHECKING:
    import altair as alt

FOR, AGAINST = COLORS[0], COLORS[1]
SPECIAL = re.compile("<.*>")  # symbols that stand for no text
NO_NATS = 1e-6  # what single precision cannot tell from a probability of 1
NAMED = 48  # symbols of a map that are named, at most
MAP = (560, 460)  # pixels


def attribution_chart(
    attributions: Sequence[Attribution],
    trust: Sequence[Faithfulness] = (),
    title: str = "Attribution: which elements drove the answer",
) -> "alt.VConcatChart":
    """A bar for each element and method, and under its name how far it may be trusted."""
    alt = import_altair()
    scores = {one.method: one for one in trust}
    charts = []
    for one in attributions:
        parts, total = split_axis(len(one.elements), SIDE), float(abs(one.shares).sum()) or 1.0
        rows = [
            {"place": n, "element": name, "share": round_number(float(one.shares[part].sum()) / total)}
            | {"nats": round_number(float(one.shares[part].sum()))}
            for n, (part, name) in enumerate(zip(parts, name_pieces(one.elements, parts), strict=True))
        ]
        charts.append(
            alt.Chart(
                make_data(rows),
                title=make_title(one.method, _sum(one), _describe_trust(scores.get(one.method)), _describe_gap(one)),
            )
            .mark_bar()
            .encode(
                x=alt.X("place:O", axis=make_token_axis(name_pieces(one.elements, parts), "element read", across=True)),
                y=alt.Y("share:Q", title=["contribution", "for ↑  against ↓"], axis=alt.Axis(format="%")),
                color=alt.condition("datum.share >= 0", alt.value(FOR), alt.value(AGAINST)),
                tooltip=["element:N", alt.Tooltip("share:Q", format=".1%"), alt.Tooltip("nats:Q", title="in nats")],
            )
            .properties(width=make_extent(len(parts)), height=120)
        )
    about = ""
    if attributions:
        first = attributions[0]
        about = f"Log-probability of {first.about}: {_chance(first.whole)}; with nothing read {_chance(first.nothing)}"
    return alt.vconcat(*charts).properties(title=make_title(title, about))


def _sum(attribution: Attribution) -> str:
    if not attribution.shares.any():
        return "no bars: the answer is as sure without any one of the elements"
    return f"contributions sum to {_nats(attribution.shares.sum(), '+')}"


def _chance(log: float) -> str:
    """A log-probability; also as a percentage, unless that of a long text is next to nothing."""
    return _nats(log) + (f" ({np.exp(log):.1%})" if np.exp(log) >= 0.001 else "")


def _nats(value: float, sign: str = "") -> str:
    if abs(value) < NO_NATS:
        return "0 nats"
    return f"{value:{sign}.0f} nats" if abs(value) >= 99.5 else f"{value:{sign}.2g} nats"


def _describe_trust(faithfulness: Faithfulness | None) -> str:
    if faithfulness is None:
        return "faithfulness not measured"
    verdict = (
        "better than chance" if faithfulness.score > 0.02 and faithfulness.beaten > 0.8 else "no better than chance"
    )
    return f"faithfulness {faithfulness.score:+.2f}, beats {faithfulness.beaten:.0%} of random orders: {verdict}"


def _describe_gap(attribution: Attribution) -> str:
    """Says so, where the shares do not add up to what the input has done; only of the method that promises it."""
    done = attribution.whole - attribution.nothing
    if attribution.method != "integrated gradients" or abs(attribution.gap) <= 0.1 * abs(done):
        return ""
    return f"they should sum to {_nats(done, '+')}: the integral along the path is not exact"


def faithfulness_chart(
    faithfulness: Faithfulness, title: str = "Faithfulness of the attribution"
) -> "alt.HConcatChart":
    """Deletion must fall faster and insertion rise faster than when elements are taken at random."""
    alt = import_altair()
    panels = []
    for words, own, rivals in (
        ("Deletion: the most important elements first", faithfulness.deletion, faithfulness.random_deletion),
        ("Insertion: the most important elements first", faithfulness.insertion, faithfulness.random_insertion),
    ):
        curves = {"by attribution": own} | ({"at random": rivals.mean(0)} if len(rivals) else {})
        rows = [
            {"count": n, "value": round_number(v), "order": name} for name, c in curves.items() for n, v in enumerate(c)
        ]
        panels.append(
            alt.Chart(make_data(rows), title=words)
            .mark_line(point=len(own) <= LABELS)
            .encode(
                x=alt.X("count:Q", title="elements deleted or inserted", axis=alt.Axis(tickMinStep=1)),
                y=alt.Y("value:Q", title="log-probability of the answer", scale=alt.Scale(zero=False)),
                color=alt.Color("order:N", scale=alt.Scale(range=list(COLORS)), title=None),
                tooltip=["order:N", "count:Q", "value:Q"],
            )
            .properties(width=260, height=200)
        )
    return alt.hconcat(*panels).properties(title=make_title(title, faithfulness.method, _describe_trust(faithfulness)))


def next_chart(tokens: NextTokens, vocabulary: Sequence[str] = (), title: str = "") -> "alt.Chart":
    """The most probable symbols at every position; in the page a slider moves the temperature."""
    alt = import_altair()
    steps = split_axis(len(tokens.steps), LABELS)[:LABELS]
    names = tokens.name_symbols(vocabulary or list(map(str, range(int(tokens.symbols.max(initial=0)) + 1))))
    came = [format_token(token) for token in tokens.target]
    rows = [
        {
            "step": n,
            "rank": rank + 1,
            "symbol": format_token(names[part.start][rank]),
            "right": rank_name == _get_name(tokens.target, part.start),
            "at": [round_number(float(value)) for value in tokens.probabilities[:, part.start, rank]],
        }
        for n, part in enumerate(steps)
        for rank, rank_name in enumerate(names[part.start])
    ]
    slider, place = make_temperature_slider(tokens.temperatures)
    columns = [f"{format_token(_get_name(tokens.steps, part.start))} → {_get_name(came, part.start)}" for part in steps]
    title = title or ("Most probable labels" if tokens.labels else "Most probable next tokens")
    across = "element read → label" if tokens.labels else "last token read → true next token"
    base = (
        alt.Chart(make_data(rows))
        .transform_calculate(probability=f"datum.at[{place}]")
        .encode(
            x=alt.X("step:O", axis=make_token_axis(columns, across, across=True)),
            y=alt.Y("rank:O", title="rank", axis=alt.Axis(labelAngle=0)),
        )
    )
    cells = (
        base.mark_rect()
        .encode(
            color=alt.Color("probability:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1])),
            tooltip=["symbol:N", alt.Tooltip("probability:Q", format=".3f"), alt.Tooltip("right:N", title="true")],
        )
        .add_params(slider)
    )
    words = base.mark_text(fontSize=11, limit=52).encode(
        text="symbol:N",
        color=alt.condition("datum.probability > 0.5", alt.value("#000000"), alt.value("#ffffff")),
    )
    return alt.layer(cells, words).properties(
        width=make_extent(len(steps), 56, 1600),
        height=make_extent(int(tokens.symbols.shape[1])),
        title=make_title(title, "At every position, the most probable on top"),
    )


def make_temperature_slider(temperatures: Sequence[float]) -> tuple[Any, str]:
    """A slider over temperatures at equal distances, and which of them it stands at, as an expression."""
    alt = import_altair()
    low, high = temperatures[0], temperatures[-1]
    step = (high - low) / max(len(temperatures) - 1, 1) or 1.0
    bind = alt.binding_range(min=low, max=high, step=step, name="temperature: ")
    return alt.param(name="temperature", value=1.0, bind=bind), f"round((temperature - {low}) / {step})"


def _get_name(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else ""


def map_chart(
    projection: Map, marked: Sequence[str] = (), title: str = "Embeddings in two dimensions (PCA)", at_most: int = 500
) -> "alt.LayerChart":
    """Symbols in the plane of their largest differences: those of the example and the most frequent are named."""
    alt = import_altair()
    own = set(marked)
    known = set(projection.symbols[:at_most])
    texts = [symbol for symbol in dict.fromkeys([*marked, *projection.symbols]) if not SPECIAL.fullmatch(symbol)]
    named = _choose_apart(projection, [symbol for symbol in texts if symbol in known])
    rows = [
        {"symbol": format_token(symbol), "x": round_number(place[0]), "y": round_number(place[1])}
        | {
            "kind": "in this example" if symbol in own else "other",
            "label": format_token(symbol) if symbol in named else "",
        }
        for symbol, place in zip(projection.symbols[:at_most], projection.places[:at_most], strict=False)
    ]
    left = len(projection.symbols) - len(rows)
    colors = alt.Scale(domain=["in this example", "other"], range=[COLORS[1], COLORS[0]])
    base = alt.Chart(make_data(rows)).encode(
        x=alt.X("x:Q", title=f"first component ({projection.explained[0]:.0%} of the variance)"),
        y=alt.Y("y:Q", title=f"second component ({projection.explained[1]:.0%})"),
        color=alt.Color("kind:N", scale=colors, title=None, legend=alt.Legend() if own else None),
        opacity=alt.condition("datum.label == ''", alt.value(0.25), alt.value(1)),
        tooltip=["symbol:N"],
    )
    dots = base.mark_circle(size=30).interactive()
    words = base.mark_text(dy=-9, fontSize=12).encode(text="label:N")
    about = f"{len(named)} symbols are named, the others are dots" if len(rows) > len(named) else ""
    return alt.layer(dots, words).properties(
        width=MAP[0], height=MAP[1], title=make_title(title, about, f"{left:,} more are not drawn" if left else "")
    )


def _choose_apart(projection: Map, symbols: Sequence[str]) -> list[str]:
    """The first symbols, as many as can be named without one name on top of another."""
    low, high = projection.places.min(0, initial=0), projection.places.max(0, initial=0)
    where = dict(zip(projection.symbols, (projection.places - low) / np.maximum(high - low, 1e-12) * MAP, strict=True))
    named: list[str] = []
    for symbol in symbols:
        x, y = where[symbol]
        if len(named) < NAMED and all(
            abs(x - where[other][0]) > 4 * (len(symbol) + len(other)) + 4 or abs(y - where[other][1]) > 13
            for other in named
        ):
            named.append(symbol)
    return named


def neighbors_chart(neighbors: Sequence[Neighbors], title: str = "") -> "alt.Chart":
    """Who lies nearest; of several symbols that were asked about, one can be picked."""
    alt = import_altair()
    queries = [format_token(one.asked) for one in neighbors]
    rows = [
        {"asked": name, "symbol": format_token(symbol), "rank": rank, "cosine": round_number(float(cosine))}
        for name, one in zip(queries, neighbors, strict=True)
        for rank, (symbol, cosine) in enumerate(zip(one.symbols, one.cosines, strict=True))
    ]
    words = f"Nearest neighbors of {queries[0]} in embedding space"
    other = "" if len(queries) == 1 else f"In the page: {len(queries)} symbols to choose from"
    chart = (
        alt.Chart(make_data(rows), title=make_title(title or words, other))
        .mark_bar(color=COLORS[0])
        .encode(
            y=alt.Y("symbol:N", sort=alt.EncodingSortField("rank"), title="nearest symbols"),
            x=alt.X("cosine:Q", title="cosine similarity", scale=alt.Scale(domainMax=1)),
            tooltip=["asked:N", "symbol:N", "cosine:Q"],
        )
        .properties(width=320)
    )
    if len(queries) < 2:
        return chart
    pick = alt.selection_point(
        fields=["asked"], value=queries[0], bind=alt.binding_select(options=queries, name="nearest to: ")
    )
    return chart.add_params(pick).transform_filter(pick)


def orthogonality_chart(angles: Angles, title: str = "Angles between the vectors of symbols") -> "alt.Chart":
    """Histograms of cosines, learned and random, one below the other."""
    alt = import_altair()
    edges = np.linspace(-1, 1, 81)
    rows = [
        {"vectors": name, "low": round_number(low), "high": round_number(high), "share": round_number(float(share))}
        for name, cosines in (("learned", angles.learned), ("random", angles.random))
        for low, high, share in zip(
            edges[:-1], edges[1:], np.histogram(cosines, edges)[0] / max(len(cosines), 1), strict=True
        )
    ]
    words = (
        f"Random directions in {angles.size} dimensions have cosines of 0 ± {angles.expected:.3f} (1/√d); "
        f"learned ones of {float(angles.learned.mean() if len(angles.learned) else 0):+.3f} ± "
        f"{float(angles.learned.std() if len(angles.learned) else 0):.3f}"
    )
    return (
        alt.Chart(make_data(rows))
        .mark_bar()
        .encode(
            x=alt.X("low:Q", title="cosine of two vectors", scale=alt.Scale(domain=[-1, 1])),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of pairs", axis=alt.Axis(format="%")),
            y2=alt.datum(0),
            row=alt.Row("vectors:N", title=None),
            color=alt.Color("vectors:N", legend=None, scale=alt.Scale(range=list(COLORS))),
            tooltip=["vectors:N", "low:Q", "high:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=420, height=120, title=make_title(title, words))
    )


def probe_chart(probes: Sequence[Probe], title: str = "Linear probes of every layer") -> "alt.LayerChart":
    """How well the labels can be read off each layer by a linear probe; the mark is the most frequent label alone."""
    alt = import_altair()
    rows = [
        {"layer": p.name, "accuracy": round_number(p.accuracy), "majority": round_number(p.majority)} for p in probes
    ]
    base = alt.Chart(make_data(rows)).encode(y=alt.Y("layer:N", sort=[p.name for p in probes], title="layer"))
    bars = base.mark_bar(color=COLORS[0]).encode(
        x=alt.X("accuracy:Q", title="accuracy on held-out sequences", scale=alt.Scale(domain=[0, 1])),
        tooltip=["layer:N", "accuracy:Q", "majority:Q"],
    )
    marks = base.mark_tick(color=COLORS[1], thickness=3).encode(x="majority:Q")
    return alt.layer(bars, marks).properties(
        width=360, title=make_title(title, "Bar: accuracy of a linear probe. Mark: always the most frequent label")
    )


def order_chart(
    sensitivity: OrderSensitivity, pairs: Swaps | None = None, title: str = "Effect of the order of the elements"
) -> "alt.VConcatChart":
    """The loss as it is and shuffled; below, what it costs to swap every two neighbors."""
    alt = import_altair()
    rows: list[dict[str, Any]] = [{"input": "as it is", "loss": round_number(sensitivity.ordered)}]
    rows += [{"input": "shuffled", "loss": round_number(float(value))} for value in sensitivity.shuffled]
    whole = (
        alt.Chart(make_data(rows))
        .mark_point(filled=True, size=80, opacity=0.7, color=COLORS[0])
        .encode(
            y=alt.Y("input:N", sort=None, title="input"),
            x=alt.X(
                "loss:Q",
                title="loss (nats per target element)",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(tickCount=5),
            ),
            tooltip=["input:N", "loss:Q"],
        )
        .properties(width=360)
    )
    charts = [whole]
    if pairs is not None and len(pairs.costs):
        names = [f"{format_token(a)} ↔ {format_token(b)}" for a, b in pairwise(pairs.elements)]
        bars = [
            {"place": n, "pair": name, "cost": round_number(float(cost))}
            for n, (name, cost) in enumerate(zip(names, pairs.costs, strict=True))
        ]
        charts.append(
            alt.Chart(make_data(bars), title="Two neighbors swapped")
            .mark_bar()
            .encode(
                x=alt.X("place:O", axis=make_token_axis(names, "pair", across=True)),
                y=alt.Y("cost:Q", title="increase of the loss"),
                color=alt.condition("datum.cost >= 0", alt.value(FOR), alt.value(AGAINST)),
                tooltip=["pair:N", "cost:Q"],
            )
            .properties(width=make_extent(len(names)), height=120)
        )
    return alt.vconcat(*charts).properties(
        title=make_title(title, f"Shuffling changes the loss by {sensitivity.cost:+.3f} nats per target element")
    )
