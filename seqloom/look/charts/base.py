"""What all charts share: colors, axes that say the tokens, heat maps that stay readable when long, and saving.

A chart is one Altair definition: in a notebook, as a file, and later in a page. Text and background are left to the
reader's theme, so that it can be read in the light and in the dark.
"""

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from html import escape
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Floats
from ...data.cache import find_cache_folder
from ...errors import MissingExtra, RunError
from ..names import CONTROLS, format_token
from .drawing import MARKER, Drawing

if TYPE_CHECKING:
    import altair as alt

ENDINGS = (".html", ".png", ".svg", ".json")
COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)  # apart for every eye (Okabe and Ito, 2008)
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3]]  # lines differ in more than their color
LABELS = 60  # tokens that fit beside one another on an axis
WIDTH = 640  # pixels of a picture with many cells, at most
LEANING = 45  # tokens too long to stand upright that fit
LINE = 110  # characters of a line of a title, at most: a longer one would widen the picture
CELLS = 20_000  # rectangles of a heat map, at most: more is slow to draw and nothing to see
SIDE = 120  # cells along an axis, at most


# --- pieces ---


def split_axis(length: int, at_most: int) -> list[slice]:
    """An axis of so many elements in as many pieces as can be drawn, each of one element if possible."""
    edges = np.linspace(0, length, min(length, max(at_most, 1)) + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in zip(edges, edges[1:], strict=False)]


def name_pieces(names: Sequence[str], parts: Sequence[slice]) -> list[str]:
    """The token itself, or from which to which position a piece goes."""
    return [
        format_token(names[part.start]) if part.stop - part.start == 1 else f"{part.start + 1}–{part.stop}"
        for part in parts
    ]


def pool(values: Floats, rows: Sequence[slice], columns: Sequence[slice], across: str = "max") -> Floats:
    """(R, C) in pieces: the mean over rows; over columns the largest or, of shares that sum to one, the sum."""
    join: Callable[..., Floats] = np.max if across == "max" else np.sum
    if len(rows) == values.shape[0] and len(columns) == values.shape[1]:
        return values
    wide = np.stack([join(values[:, part], axis=1) for part in columns], 1)
    return np.stack([wide[part].mean(0) for part in rows])


def raise_zeros(values: Floats) -> Floats:
    """For a logarithmic axis: what is zero lies a little below the smallest that is not."""
    positive = values[values > 0]
    floor = float(positive.min()) / 10 if positive.size else 1e-12
    return np.maximum(values, max(floor, 1e-300))


# --- axes and titles ---


def make_title(title: str, *lines: str) -> Any:
    return import_altair().Title(cut(title), subtitle=[cut(line) for line in lines if line], anchor="start")


def cut(text: str, longest: int = LINE) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def make_token_axis(names: Sequence[str], title: str, across: bool = False) -> Any:
    """An axis that says the tokens; positions keep equal tokens apart. `across` is the one at the bottom."""
    longest = max(map(len, names), default=0)
    leaning = across and longest > 3
    fitting = LABELS if not across else LEANING if leaning else WIDTH // (7 * longest + 4)
    every = math.ceil(len(names) / fitting)
    return import_altair().Axis(
        title=title,
        values=list(range(0, len(names), max(every, 1))),
        labelExpr=f"{json.dumps(list(map(format_token, names)), ensure_ascii=False)}[datum.value]",
        **_angle(leaning),
        labelOverlap=False,
        labelLimit=180 if not across else 120,
        ticks=False,
    )


def make_step_axis(names: Sequence[str], title: str) -> Any:
    """The same for lines: tokens while they fit, then positions."""
    if len(names) > LABELS:
        return import_altair().Axis(title=f"{title} (position)", labelExpr="datum.value + 1", tickMinStep=1)
    return import_altair().Axis(
        title=title,
        values=list(range(len(names))),
        labelExpr=f"{json.dumps(list(map(format_token, names)), ensure_ascii=False)}[datum.value]",
        labelOverlap="parity",
        **_angle(max(map(len, names), default=0) > 3),
    )


def _angle(leaning: bool) -> dict[str, Any]:
    """Labels that are too long to stand side by side lean, and end at their tick."""
    return {"labelAngle": -45, "labelAlign": "right", "labelBaseline": "middle"} if leaning else {"labelAngle": 0}


def make_log_color(field: str, title: str, low: float, high: float) -> Any:
    """A logarithmic color, whose bar has powers of ten or, where there are hardly any, values between its ends."""
    alt = import_altair()
    powers = [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    wide = len(powers) > 2
    values = powers[:: math.ceil(len(powers) / 5)] if wide else np.geomspace(low, max(high, low * 1.01), 4).tolist()
    return alt.Color(
        f"{field}:Q",
        scale=alt.Scale(type="log", scheme="viridis", domain=[low, max(high, low * 1.01)]),
        title=title,
        legend=alt.Legend(values=values, format=".0e" if wide else ".2g", gradientLength=100),
    )


def make_data(rows: list[dict[str, Any]]) -> Any:
    """The rows as one piece of text: Altair walks through everything else again and again."""
    alt = import_altair()
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return alt.InlineData(values=text, format=alt.JsonDataFormat(type="json"))


def zoom(name: str) -> str:
    """What the zoom of one panel is called, so that panels zoom by themselves."""
    return "zoom_" + re.sub(r"\W", "_", name)


def round_number(value: float) -> float | None:
    """Four digits are enough for a picture, and what is not a number is left out."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def make_extent(count: int, step: int = 24, most: int = WIDTH) -> Any:
    """A width or height for so many cells."""
    return import_altair().Step(step) if count * step <= most else most


def import_altair() -> Any:
    """The package, as a value without a type: it is imported only when a chart is drawn."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("altair", "look") from None
    return altair


# --- files ---

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1rem; font-family: system-ui, sans-serif; background: #ffffff; color: #1b1b1b; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #333333; color: #eeeeee; }} }}
</style>
{script}
</head>
<body>
{body}
</body>
</html>
"""
EMBED = """<div id="chart"></div>
<script>
const dark = matchMedia("(prefers-color-scheme: dark)");
const draw = () => vegaEmbed("#chart", {spec}, {{theme: dark.matches ? "dark" : undefined}}).catch(console.error);
dark.addEventListener("change", draw);
draw();
</script>"""
IN_THE_DARK = """<style>@media (prefers-color-scheme: dark) {
svg { background: #333333 } svg > rect:first-of-type { fill: #333333 }
[class*="role-axis"] text, [class*="role-title"] text, [class*="role-legend"] text, [class*="role-header"] text {
 fill: #eeeeee } [class*="role-axis"] line { stroke: #999999 } }</style>"""


def save(chart: "alt.TopLevelMixin | Drawing", path: Path | str) -> Path:
    """Write a chart as .html (interactive, needs no network), .png, .svg or .json."""
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise RunError(
            f"{path.name}: a chart is written as one of {', '.join(ENDINGS)}, not as {path.suffix or 'that'}"
        )
    return write_chart(path, render(chart, path.suffix))


def write_chart(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path


def render(chart: "alt.TopLevelMixin | Drawing", ending: str) -> bytes:
    """A chart as the bytes of such a file."""
    if isinstance(chart, Drawing):
        return _render_drawing(chart, ending)
    spec = chart.to_dict()
    if ending == ".json":
        rows = {name: json.loads(text) for name, text in spec.get("datasets", {}).items()}  # for programs that read it
        return json.dumps(spec | {"datasets": rows}, ensure_ascii=False).encode()
    if ending == ".png":
        return import_converter().vegalite_to_png(show_controls(spec), scale=2)
    if ending == ".svg":
        svg = str(import_converter().vegalite_to_svg(show_controls(spec)))
        return svg.replace(">", f">{IN_THE_DARK}", 1).encode()
    inline = json.dumps(spec, ensure_ascii=False).replace("<", "\\u003c")  # no text of a chart may end its script
    return PAGE.format(title=_name(spec), script=make_library_tag(), body=EMBED.format(spec=inline)).encode()


def _render_drawing(drawing: Drawing, ending: str) -> bytes:
    if ending == ".json":
        return json.dumps(drawing.parts, ensure_ascii=False).encode()
    if ending == ".png":  # which has no theme to follow
        ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
        svg = drawing.svg.translate(CONTROLS)
        return import_converter().svg_to_png(svg.replace(MARKER, f"{ground}{MARKER}", 1), scale=2)
    if ending == ".svg":
        return drawing.svg.translate(CONTROLS).encode()
    return PAGE.format(title=escape(drawing.title), script="", body=drawing.svg).encode()


def show_controls(part: Any) -> Any:
    """A chart with a visible sign in place of every character that XML cannot hold, such as a byte of a cut letter: at
    the first of them the converter takes the whole process with it."""
    if isinstance(part, str):
        return part.translate(CONTROLS)
    if isinstance(part, list):
        return [show_controls(one) for one in part]
    if not isinstance(part, dict):
        return part
    shown = {show_controls(name): show_controls(one) for name, one in part.items() if name != "datasets"}
    if "datasets" in part:  # each of them as a text of JSON
        tables = part["datasets"].items()
        shown["datasets"] = {name: json.dumps(show_controls(json.loads(text))) for name, text in tables}
    return shown


def _name(spec: dict[str, Any]) -> str:
    title = spec.get("title", "seqloom")
    return escape(str(title.get("text", "seqloom") if isinstance(title, dict) else title))


def import_converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("vl-convert-python", "look") from None
    return vl_convert


def make_library_tag() -> str:
    """The same as an element of a page."""
    return f"<script>{read_library()}</script>"


@cache
def read_library() -> str:
    """Vega with all it needs, as a script: a page then needs no network.

    It takes seconds to put together, so it is kept beside prepared data, under a name that says what it holds.
    """
    converts, folder = import_converter(), find_cache_folder()
    start = f"vega-{metadata.version('vl-convert-python')}-"
    for kept in sorted(folder.glob(f"{start}*.js")):
        with suppress(OSError):
            if sha256(library := kept.read_bytes()).hexdigest() == kept.stem.removeprefix(start):
                return library.decode()
    script = str(converts.javascript_bundle())
    content = script.encode()
    with suppress(OSError):  # kept or not, it is there
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{start}{os.getpid()}.part"
        temporary.write_bytes(content)
        temporary.rename(folder / f"{start}{sha256(content).hexdigest()}.js")
    return script
