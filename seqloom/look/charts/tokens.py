"""Charts about symbols: what drove a decision, what comes next, who lies near whom, which layer knows what."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..measures.attribution import Attribution
from ..measures.faithfulness import Faithfulness
from ..measures.next_tokens import Expectations
from ..measures.order import OrderMatters, Swaps
from ..measures.probes import Probe
from ..measures.vectors import Map, Neighbors
from ..names import shown
from .base import COLORS, LABELS, SIDE, altair, data, extent, number, piece_names, pieces, titled, token_axis

if TYPE_CHECKING:
    import altair as alt

FOR, AGAINST = COLORS[0], COLORS[1]
SPECIAL = re.compile("<.*>")  # symbols that stand for no text
NAMED = 48  # symbols of a map that are named


def attribution_chart(
    found: Sequence[Attribution],
    trust: Sequence[Faithfulness] = (),
    title: str = "Attribution: which elements drove the answer",
) -> "alt.VConcatChart":
    """A bar for each element and method, and under its name how far it may be trusted."""
    alt = altair()
    scores = {one.method: one for one in trust}
    charts = []
    for one in found:
        parts, total = pieces(len(one.elements), SIDE), float(abs(one.shares).sum()) or 1.0
        rows = [
            {"place": n, "element": name, "share": number(float(one.shares[part].sum()) / total)}
            | {"nats": number(float(one.shares[part].sum()))}
            for n, (part, name) in enumerate(zip(parts, piece_names(one.elements, parts), strict=True))
        ]
        charts.append(
            alt.Chart(data(rows), title=titled(one.method, _sum(one), _trust(scores.get(one.method)), _missing(one)))
            .mark_bar()
            .encode(
                x=alt.X("place:O", axis=token_axis(piece_names(one.elements, parts), "element read", across=True)),
                y=alt.Y("share:Q", title=["contribution", "for ↑  against ↓"], axis=alt.Axis(format="%")),
                color=alt.condition("datum.share >= 0", alt.value(FOR), alt.value(AGAINST)),
                tooltip=["element:N", alt.Tooltip("share:Q", format=".1%"), alt.Tooltip("nats:Q", title="in nats")],
            )
            .properties(width=extent(len(parts)), height=120)
        )
    about = (
        f"Log-probability of {found[0].about}: {found[0].whole:.2g} nats; with nothing read {found[0].nothing:.2g} nats"
        if found
        else ""
    )
    return alt.vconcat(*charts).properties(title=titled(title, about))


def _sum(found: Attribution) -> str:
    return f"contributions sum to {found.shares.sum():+.2g} nats"


def _trust(found: Faithfulness | None) -> str:
    if found is None:
        return "faithfulness not measured"
    verdict = "better than chance" if found.score > 0.02 and found.beaten > 0.8 else "no better than chance"
    return f"faithfulness {found.score:+.2f}, beats {found.beaten:.0%} of random orders: {verdict}"


def _missing(found: Attribution) -> str:
    """Says so, where the shares do not add up to what the input has done; only of the method that promises it."""
    done = found.whole - found.nothing
    if found.method != "integrated gradients" or abs(found.gap) <= 0.1 * abs(done):
        return ""
    return f"they should sum to {done:+.2g} nats: the integral along the path is not exact"


def faithfulness_chart(found: Faithfulness, title: str = "Faithfulness of the attribution") -> "alt.HConcatChart":
    """Deletion must fall faster and insertion rise faster than when elements are taken at random."""
    alt = altair()
    panels = []
    for words, own, rivals in (
        ("Deletion: the most important elements first", found.deletion, found.random_deletion),
        ("Insertion: the most important elements first", found.insertion, found.random_insertion),
    ):
        curves = {"by attribution": own} | ({"at random": rivals.mean(0)} if len(rivals) else {})
        rows = [{"count": n, "value": number(v), "order": name} for name, c in curves.items() for n, v in enumerate(c)]
        panels.append(
            alt.Chart(data(rows), title=words)
            .mark_line(point=len(own) <= LABELS)
            .encode(
                x=alt.X("count:Q", title="elements deleted or inserted", axis=alt.Axis(tickMinStep=1)),
                y=alt.Y("value:Q", title="log-probability of the answer", scale=alt.Scale(zero=False)),
                color=alt.Color("order:N", scale=alt.Scale(range=list(COLORS)), title=None),
                tooltip=["order:N", "count:Q", "value:Q"],
            )
            .properties(width=260, height=200)
        )
    return alt.hconcat(*panels).properties(title=titled(title, found.method, _trust(found)))


def next_chart(
    found: Expectations, vocabulary: Sequence[str] = (), title: str = "Most probable next tokens"
) -> "alt.Chart":
    """The most probable symbols at every position; the temperature can be moved in the page."""
    alt = altair()
    steps = pieces(len(found.steps), LABELS)[:LABELS]
    names = found.named(vocabulary or list(map(str, range(int(found.symbols.max(initial=0)) + 1))))
    came = [shown(token) for token in found.target]
    rows = [
        {
            "step": n,
            "rank": rank + 1,
            "symbol": shown(names[part.start][rank]),
            "right": rank_name == _at(found.target, part.start),
            "probability": number(float(found.probabilities[t, part.start, rank])),
            "temperature": temperature,
        }
        for t, temperature in enumerate(found.temperatures)
        for n, part in enumerate(steps)
        for rank, rank_name in enumerate(names[part.start])
    ]
    heat = alt.binding_select(options=list(found.temperatures), name="temperature: ")
    at = 1.0 if 1.0 in found.temperatures else found.temperatures[0] if found.temperatures else 1.0
    pick = alt.selection_point(fields=["temperature"], value=at, bind=heat)
    columns = [f"{shown(_at(found.steps, part.start))} → {_at(came, part.start)}" for part in steps]
    base = (
        alt.Chart(data(rows))
        .transform_filter(pick)
        .encode(
            x=alt.X("step:O", axis=token_axis(columns, "last token read → true next token", across=True)),
            y=alt.Y("rank:O", title="rank", axis=alt.Axis(labelAngle=0)),
        )
    )
    cells = (
        base.mark_rect()
        .encode(
            color=alt.Color("probability:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1])),
            tooltip=["symbol:N", "probability:Q", "temperature:Q", alt.Tooltip("right:N", title="true")],
        )
        .add_params(pick)
    )
    words = base.mark_text(fontSize=11, limit=52).encode(
        text="symbol:N",
        color=alt.condition("datum.probability > 0.5", alt.value("#000000"), alt.value("#ffffff")),
    )
    return alt.layer(cells, words).properties(
        width=extent(len(steps), 56, 1600),
        height=extent(int(found.symbols.shape[1])),
        title=titled(title, "At every position, the most probable on top"),
    )


def _at(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else ""


def map_chart(
    found: Map, marked: Sequence[str] = (), title: str = "Embeddings in two dimensions (PCA)", at_most: int = 500
) -> "alt.LayerChart":
    """Symbols in the plane of their largest differences: those of the example and the most frequent are named."""
    alt = altair()
    own = set(marked)
    named = [symbol for symbol in dict.fromkeys([*marked, *found.symbols]) if not SPECIAL.fullmatch(symbol)][:NAMED]
    rows = [
        {"symbol": shown(symbol), "x": number(place[0]), "y": number(place[1])}
        | {"kind": "in this example" if symbol in own else "other", "label": shown(symbol) if symbol in named else ""}
        for symbol, place in zip(found.symbols[:at_most], found.places[:at_most], strict=False)
    ]
    left = len(found.symbols) - len(rows)
    colors = alt.Scale(domain=["in this example", "other"], range=[COLORS[1], COLORS[0]])
    base = alt.Chart(data(rows)).encode(
        x=alt.X("x:Q", title=f"first component ({found.explained[0]:.0%} of the variance)"),
        y=alt.Y("y:Q", title=f"second component ({found.explained[1]:.0%})"),
        color=alt.Color("kind:N", scale=colors, title=None, legend=alt.Legend() if own else None),
        opacity=alt.condition("datum.label == ''", alt.value(0.25), alt.value(1)),
        tooltip=["symbol:N"],
    )
    dots = base.mark_circle(size=30).interactive()
    words = base.mark_text(dy=-9, fontSize=12).encode(text="label:N")
    about = f"{min(len(named), len(rows))} symbols are named, the others are dots" if len(rows) > len(named) else ""
    return alt.layer(dots, words).properties(
        width=560, height=460, title=titled(title, about, f"{left:,} more are not drawn" if left else "")
    )


def neighbors_chart(found: Sequence[Neighbors], title: str = "") -> "alt.Chart":
    """Who lies nearest; of several symbols that were asked about, one can be picked."""
    alt = altair()
    asked = [shown(one.asked) for one in found]
    rows = [
        {"asked": name, "symbol": shown(symbol), "rank": rank, "cosine": number(float(cosine))}
        for name, one in zip(asked, found, strict=True)
        for rank, (symbol, cosine) in enumerate(zip(one.symbols, one.cosines, strict=True))
    ]
    words = f"Nearest neighbors of {asked[0]} in embedding space"
    other = "" if len(asked) == 1 else f"In the page: {len(asked)} symbols to choose from"
    chart = (
        alt.Chart(data(rows), title=titled(title or words, other))
        .mark_bar(color=COLORS[0])
        .encode(
            y=alt.Y("symbol:N", sort=alt.EncodingSortField("rank"), title="nearest symbols"),
            x=alt.X("cosine:Q", title="cosine similarity", scale=alt.Scale(domainMax=1)),
            tooltip=["asked:N", "symbol:N", "cosine:Q"],
        )
        .properties(width=320)
    )
    if len(asked) < 2:
        return chart
    pick = alt.selection_point(
        fields=["asked"], value=asked[0], bind=alt.binding_select(options=asked, name="nearest to: ")
    )
    return chart.add_params(pick).transform_filter(pick)


def probe_chart(found: Sequence[Probe], title: str = "Linear probes of every layer") -> "alt.LayerChart":
    """How well the labels can be read off each layer by a linear probe; the mark is the most frequent label alone."""
    alt = altair()
    rows = [{"layer": p.name, "accuracy": number(p.accuracy), "majority": number(p.majority)} for p in found]
    base = alt.Chart(data(rows)).encode(y=alt.Y("layer:N", sort=[p.name for p in found], title="layer"))
    bars = base.mark_bar(color=COLORS[0]).encode(
        x=alt.X("accuracy:Q", title="accuracy on held-out sequences", scale=alt.Scale(domain=[0, 1])),
        tooltip=["layer:N", "accuracy:Q", "majority:Q"],
    )
    marks = base.mark_tick(color=COLORS[1], thickness=3).encode(x="majority:Q")
    return alt.layer(bars, marks).properties(
        width=360, title=titled(title, "Bar: accuracy of a linear probe. Mark: always the most frequent label")
    )


def order_chart(
    found: OrderMatters, pairs: Swaps | None = None, title: str = "Effect of the order of the elements"
) -> "alt.VConcatChart":
    """The loss as it is and shuffled; below, what it costs to swap every two neighbors."""
    alt = altair()
    rows: list[dict[str, Any]] = [{"input": "as it is", "loss": number(found.ordered)}]
    rows += [{"input": "shuffled", "loss": number(float(value))} for value in found.shuffled]
    whole = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=80, opacity=0.7, color=COLORS[0])
        .encode(
            y=alt.Y("input:N", sort=None, title="input"),
            x=alt.X("loss:Q", title="loss (nats per target element)", scale=alt.Scale(zero=False)),
            tooltip=["input:N", "loss:Q"],
        )
        .properties(width=360)
    )
    charts = [whole]
    if pairs is not None and len(pairs.costs):
        names = [f"{shown(a)} ↔ {shown(b)}" for a, b in pairwise(pairs.elements)]
        bars = [
            {"place": n, "pair": name, "cost": number(float(cost))}
            for n, (name, cost) in enumerate(zip(names, pairs.costs, strict=True))
        ]
        charts.append(
            alt.Chart(data(bars), title="Two neighbors swapped")
            .mark_bar()
            .encode(
                x=alt.X("place:O", axis=token_axis(names, "pair", across=True)),
                y=alt.Y("cost:Q", title="increase of the loss"),
                color=alt.condition("datum.cost >= 0", alt.value(FOR), alt.value(AGAINST)),
                tooltip=["pair:N", "cost:Q"],
            )
            .properties(width=extent(len(names)), height=120)
        )
    return alt.vconcat(*charts).properties(
        title=titled(title, f"Shuffling changes the loss by {found.cost:+.3f} nats per target element")
    )
