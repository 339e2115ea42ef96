"""The model drawn as textbooks draw it: unrolled over time, from the input at the bottom to the answer at the top.

Plain SVG text: it needs no library, scales, and follows the reader's light or dark theme.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

from ...layers.description import AROUND, BOTH, FORWARDS, ONE, PAST
from ...models import Batch
from ..measures.reading import INPUTS, SOURCE, Model, Names, number_positions, take_row
from ..names import format_token
from ..parts import Part, list_parts

BOX, GAP, ROW, LEFT, HEIGHT, TOP = 58, 22, 52, 196, 26, 84  # pixels
STEPS = 6  # boxes side by side, at most
FILLS = {"memory": "#E69F00", "across": "#56B4E9", "time": "#009E73", "each": "#DDDDDD"}
STYLE = """<style>
text { font-family: system-ui, sans-serif; font-size: 12px; fill: #1b1b1b }
.small { font-size: 10.5px; fill: #555555 } .name { font-weight: 600 } .title { font-size: 15px; font-weight: 600 }
.in { fill: #1b1b1b } .box { stroke: #1b1b1b } .arrow { stroke: #1b1b1b; fill: none }
@media (prefers-color-scheme: dark) { svg { background: #333333 } text { fill: #eeeeee } .small { fill: #bbbbbb }
.box, .arrow { stroke: #eeeeee } .in { fill: #1b1b1b } .head { fill: #eeeeee } }
</style>"""
MARKER = (
    '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


@dataclass(frozen=True)
class Drawing:
    """A picture with what it was drawn from."""

    title: str
    svg: str
    parts: list[dict[str, Any]] = field(default_factory=list)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.title}


def draw_model(model: Model, batch: Batch, names: Names | None = None, title: str = "The model, unrolled") -> Drawing:
    """As it reads the first row of the batch; long sequences are shown by their beginning and end."""
    batch = take_row(batch)
    names = number_positions(batch) if names is None else names
    parts = list_parts(model, batch)
    total = sum(part.parameters for part in parts)
    panels = [side for side in (SOURCE, INPUTS) if any(part.side == side for part in parts)]
    tallest = max(len([part for part in parts if part.side == side]) for side in panels)
    lines, left = [], 16
    encoder: _Panel | None = None
    for side in panels:
        here = [part for part in parts if part.side == side]
        panel = _Panel(here, names.of(side), left, TOP + tallest * ROW)
        lines += panel.lines(names.target if side == INPUTS else [])
        if encoder is not None:
            lines += _memory(encoder, panel)
        encoder = panel
        left += panel.width + 24
    height = TOP + tallest * ROW + 32
    heading = f'<text class="title" x="16" y="24">{escape(title)}</text>'
    count = f'<text class="small" x="16" y="42">{total:,} parameters in all; shapes are steps × features</text>'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left} {height}" width="{left}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">{STYLE}{MARKER}{heading}{count}{"".join(lines)}</svg>'
    )
    return Drawing(title, svg, [asdict(part) for part in parts])


def choose_steps(count: int) -> list[int | None]:
    """The steps that are drawn; None stands for those left out."""
    if count <= STEPS:
        return list(range(count))
    return [*range(STEPS - 2), None, count - 1]


class _Panel:
    """One side of the model: rows of boxes, a box for each step."""

    def __init__(self, rows: Sequence[Part], names: Sequence[str], left: float, bottom: float) -> None:
        self.rows, self.names, self.left, self.bottom = rows, names, left, bottom
        self.steps = choose_steps(len(names))
        self.width = LEFT + max(len(self.steps), 1) * (BOX + GAP)

    def x(self, column: int) -> float:
        return self.left + LEFT + column * (BOX + GAP)

    def y(self, row: int) -> float:
        return self.bottom - (row + 1) * ROW

    def lines(self, target: Sequence[str]) -> list[str]:
        shapes = []
        for column, step in enumerate(self.steps):
            name = "…" if step is None else self.names[step]
            shapes.append(_text(self.x(column) + BOX / 2, self.bottom + 16, _shorten(format_token(name)), middle=True))
        for number, part in enumerate(self.rows):
            shapes += self._row(number, part)
        last = self.rows[-1]
        for column, step in enumerate(self.steps if target and last.flow != ONE else []):
            if step is not None and step < len(target):
                shapes.append(
                    _text(self.x(column) + BOX / 2, self.y(len(self.rows) - 1) - 20, _shorten(target[step]), True)
                )
        if target and last.flow == ONE:
            shapes.append(_text(self.middle(), self.y(len(self.rows) - 1) - 20, _shorten(target[0]), True))
        return shapes

    def middle(self) -> float:
        return self.x(0) + (len(self.steps) * (BOX + GAP) - GAP) / 2

    def _row(self, number: int, part: Part) -> list[str]:
        y = self.y(number)
        many = part.flow != ONE
        shape = f"{len(self.names)} × {part.size}" if many else str(part.size)
        shapes = [
            _text(self.left, y + 12, part.name, kind="name"),
            _text(self.left, y + 26, f"{shape} · {part.parameters:,} parameters", kind="small"),
        ]
        wide = max(len(self.steps) * (BOX + GAP) - GAP, BOX)
        if part.flow == ONE:
            shapes.append(_box(self.middle() - BOX / 2, y, BOX, FILLS["memory"]))
            below = self.rows[number - 1] if number else None
            from_one = below is not None and below.flow == ONE
            starts = [self.middle()] if from_one else [self.x(column) + BOX / 2 for column in self._columns()]
            return [*shapes, *(_draw_arrow(start, y + ROW, self.middle(), y + HEIGHT) for start in starts)]
        if part.flow in (AROUND, PAST):
            words = "every step sees all" if part.flow == AROUND else "every step sees the past"
            shapes += [_box(self.x(0), y, wide, FILLS["across"]), _text(self.middle(), y + 17, words, True, "in small")]
        for column in self._columns():
            middle = self.x(column) + BOX / 2
            shapes.append(_draw_arrow(middle, y + ROW, middle, y + HEIGHT))
            if part.flow not in (AROUND, PAST):
                fill = FILLS["memory"] if part.looks else FILLS["time" if part.flow in (FORWARDS, BOTH) else "each"]
                shapes.append(_box(self.x(column), y, BOX, fill))
        return [*shapes, *self._time(part, y)]

    def _columns(self) -> list[int]:
        return [column for column, step in enumerate(self.steps) if step is not None]

    def _time(self, part: Part, y: float) -> list[str]:
        """The arrows of a recurrence from step to step."""
        arrows = []
        columns = self._columns() if part.flow in (FORWARDS, BOTH) else []
        for before, after in pairwise(columns):
            there, here = self.x(before) + BOX, self.x(after)
            shift = 5 if part.flow == BOTH else 0
            arrows.append(_draw_arrow(there, y + HEIGHT / 2 - shift, here, y + HEIGHT / 2 - shift))
            if part.flow == BOTH:
                arrows.append(_draw_arrow(here, y + HEIGHT / 2 + shift, there, y + HEIGHT / 2 + shift))
        return arrows


def _memory(encoder: _Panel, decoder: _Panel) -> list[str]:
    """From what the encoder found to the rows of the decoder that look at it; if none does, from its summary to where
    they start."""
    looking = [number for number, part in enumerate(decoder.rows) if part.looks]
    starts = [number for number, part in enumerate(decoder.rows) if part.flow == FORWARDS]
    from_row = max(number for number, part in enumerate(encoder.rows) if (part.flow == ONE) != bool(looking))
    edge = encoder.x(max(len(encoder.steps), 1) - 1) + BOX if looking else encoder.middle() + BOX / 2
    height, turn = encoder.y(from_row) + HEIGHT / 2, decoder.left - 14
    return [
        f'<path class="arrow" stroke-dasharray="4 3" marker-end="url(#to)" '
        f'd="M{edge:.1f} {height:.1f} H{turn} V{decoder.y(row) + 8:.1f} H{decoder.left - 4}"/>'
        for row in looking or starts
    ]


def _text(x: float, y: float, words: str, middle: bool = False, kind: str = "") -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{anchor}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, fill: str) -> str:
    return f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{HEIGHT}" rx="5" fill="{fill}"/>'


def _draw_arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path class="arrow" marker-end="url(#to)" d="M{x:.1f} {y:.1f} L{to_x:.1f} {to_y:.1f}"/>'


def _shorten(name: str) -> str:
    return name if len(name) <= 9 else f"{name[:8]}…"
