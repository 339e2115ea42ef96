"""Charts of what is inside, one Altair definition each: in a notebook, as a file, and later in a page."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingExtra, RunError
from .attention import AttentionMap

if TYPE_CHECKING:
    import altair as alt

ENDINGS = (".html", ".png", ".svg", ".json")


def attention_chart(found: AttentionMap, title: str = "Where the model looked") -> "alt.Chart":
    """The mean of all maps as a heat map: a row for each token written, a column for each token read."""
    alt = _altair()
    weights = found.weights.mean(0) if len(found.weights) else np.zeros((len(found.target), len(found.source)))
    rows = [
        {"read": s, "written": t, "weight": round(float(weights[t, s]), 4), "source": source, "target": target}
        for t, target in enumerate(found.target)
        for s, source in enumerate(found.source)
    ]
    return (
        alt.Chart(alt.Data(values=rows), title=alt.Title(title, subtitle=_subtitle(found), anchor="start"))
        .mark_rect()
        .encode(
            x=alt.X("read:O", axis=_tokens(found.source, "what is read")),
            y=alt.Y("written:O", axis=_tokens(found.target, "what is written")),
            color=alt.Color("weight:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), title="attention"),
            tooltip=["target:N", "source:N", "weight:Q"],
        )
        .properties(width=alt.Step(24), height=alt.Step(24))
    )


def save(chart: "alt.Chart", path: Path | str) -> Path:
    """Write a chart as .html (interactive, needs no network), .png, .svg or .json."""
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise RunError(
            f"{path.name}: a chart is written as one of {', '.join(ENDINGS)}, not as {path.suffix or 'that'}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(
        str(path),
        **({"inline": True} if path.suffix == ".html" else {"scale_factor": 2} if path.suffix == ".png" else {}),
    )
    return path


def _subtitle(found: AttentionMap) -> str:
    return f"mean of {len(found.names)} maps" if len(found.names) > 1 else ""


def _tokens(names: list[str], title: str) -> "alt.Axis":
    """An axis that says the tokens; positions keep equal tokens apart."""
    shown = [name if name.strip() else "␣" * max(len(name), 1) for name in names]
    return _altair().Axis(title=title, labelExpr=f"{json.dumps(shown)}[datum.value]", labelAngle=0, labelFontSize=12)


def _altair() -> Any:
    """The package, as a value without a type: it is imported only when a chart is drawn."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("altair", "look") from None
    return altair
