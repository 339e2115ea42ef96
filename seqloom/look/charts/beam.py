"""The tree of a beam search as a picture that replays: a column a step, a token a place, a line to where it came from.

What was pruned stays beside what was kept, thin and gray, and says why. A slider goes through the steps.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...search.tree import Node, Tree
from ..names import format_token
from .base import COLORS, import_altair, make_data, make_title, round_number

if TYPE_CHECKING:
    import altair as alt

FATES = {"kept": COLORS[0], "finished": COLORS[2], "pruned": "#999999"}
COLUMN, LINE = 100, 28  # points between steps, and between tokens
STEPS = 60  # columns, at most: a longer search is drawn up to there
RANKS = 12  # tokens of a step, at most; all that were kept or finished are among them


def beam_chart(tree: Tree, symbols: Sequence[str] = ()) -> "alt.LayerChart":
    """Tokens by step and rank. `symbols` names the tokens; without them they go by their numbers."""
    alt = import_altair()
    rows, height = place_nodes(tree, symbols)
    steps = max(row["step"] for row in rows)
    slider = alt.param(name="step", value=steps, bind=alt.binding_range(min=0, max=steps, step=1, name="up to step "))
    axis = alt.Axis(tickMinStep=1, grid=False)
    base = (
        alt.Chart(make_data(rows))
        .transform_filter("datum.step <= step")
        .encode(
            x=alt.X("step:Q", title="step", axis=axis, scale=alt.Scale(domain=[-0.5, steps + 0.5])),
            y=alt.Y("place:Q", title="rank (the likeliest on top)", axis=axis, scale=alt.Scale(domain=[height, -1])),
            color=alt.Color("fate:N", title="", scale=alt.Scale(domain=list(FATES), range=list(FATES.values()))),
            tooltip=[
                alt.Tooltip("text:N", title="so far"),
                *("token:N", "probability:Q"),
                alt.Tooltip("score:Q", title="ranked by (log-probability)"),
                *("fate:N", "why:N", "group:N"),
            ],
        )
    )

    def mark_pruned(pruned: Any, otherwise: Any) -> Any:
        return alt.condition("datum.fate === 'pruned'", alt.value(pruned), alt.value(otherwise))

    lines = (
        base.transform_filter("datum.step > 0")
        .mark_rule()
        .encode(
            x2="from_step:Q",
            y2="from_place:Q",
            strokeWidth=alt.condition("datum.best", alt.value(3), alt.value(1)),
            strokeDash=mark_pruned([3, 3], [1, 0]),
            opacity=mark_pruned(0.5, 0.9),
        )
    )
    dots = base.mark_circle(opacity=1).encode(size=mark_pruned(25, 70))
    names = [
        base.transform_filter(f"{'' if best else '!'}datum.best")
        .mark_text(dy=-10, limit=COLUMN - 10, fontSize=11, fontWeight="bold" if best else "normal")
        .encode(text="label:N")
        for best in (False, True)
    ]
    words = "Each token with its probability. Bold is the best answer; dashed was pruned: point at it for why."
    cut = "" if tree.nodes[-1].step <= STEPS else f"The first {STEPS} of {tree.nodes[-1].step} steps."
    size = {"width": COLUMN * (steps + 1), "height": LINE * (height + 1)}
    chart = alt.layer(lines, dots, *names).add_params(slider)
    return chart.properties(title=make_title("Beam search for the answer", words, cut), **size)


def place_nodes(tree: Tree, symbols: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
    """The nodes that are drawn, each with its place, and how many stand under one another at most."""
    best = best_path(tree)
    where: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    for step, places in enumerate(tree.steps()):
        if step > STEPS:
            break
        ranked = sorted(places, key=lambda place: (tree.nodes[place].fate == "pruned", -tree.nodes[place].score))
        living = sum(tree.nodes[place].fate != "pruned" for place in ranked)
        for rank, place in enumerate(ranked[: max(RANKS, living)]):
            node = tree.nodes[place]
            where[place] = rank
            parent = 0 if node.parent is None else node.parent
            rows.append(
                describe_node(node, symbols)
                | {
                    "step": step,
                    "place": rank,
                    "from_step": max(step - 1, 0),
                    "from_place": where[parent],
                    "best": place in best,
                    "text": " ".join(map(lambda token: name_token(token, symbols), tree.path(place))),
                }
            )
    return rows, max(row["place"] for row in rows) + 1


def describe_node(node: Node, symbols: Sequence[str]) -> dict[str, Any]:
    if node.token is None:
        return {"token": "", "label": "start", "probability": 1, "score": 0, "fate": "kept", "why": "", "group": 1}
    name, chance = name_token(node.token, symbols), float(np.exp(node.log))
    return {
        "token": name,
        "label": f"{name} {chance:.0%}" if chance >= 0.005 else f"{name} <1%",
        "probability": round_number(chance),
        "score": round_number(node.score),
        "fate": node.fate,
        "why": node.why,
        "group": node.group + 1,
    }


def name_token(token: int, symbols: Sequence[str]) -> str:
    return format_token(symbols[token]) if symbols else str(token)


def best_path(tree: Tree) -> set[int]:
    """The nodes that lead to the finished one with the highest score."""
    ended = [place for place, node in enumerate(tree.nodes) if node.fate == "finished"]
    path: set[int] = set()
    place = max(ended, key=lambda place: tree.nodes[place].score, default=None)
    while place is not None:
        path.add(place)
        place = tree.nodes[place].parent
    return path
