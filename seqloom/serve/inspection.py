"""What the page shows of a run beside its answers: the views that fit it, attention as numbers, what comes next.

Only called in the batcher's thread, like all that touches a model.
"""

import json
from typing import Any

import numpy as np

from ..data.formats.abc import parse_tune
from ..data.music.abc_playback import compute_whole_note_seconds, make_piano_roll
from ..look.charts.base import render
from ..look.charts.drawing import Drawing
from ..look.measures.attention import OVER_SOURCE, AttentionMap
from ..look.views import VIEWS
from ..runs.json_output import replace_nonfinite
from .models import Model

TOKENS = 4096  # of a vocabulary that are sent with their log-probabilities
SHOWN = 20_000  # numbers of an attention map that are sent


def describe_input(model: Model) -> dict[str, Any]:
    """What the run takes and gives, for a form."""
    reads = "text" if model.reads_text else "numbers"
    return {
        "reads": reads,
        "writes_on": model.writes_on,
        "writes_text": model.writes_text,
        "searches": model.answers_in_text,
    }


def list_next(model: Model, raw: Any) -> dict[str, Any]:
    """What may come after a text, the likeliest first: all tokens, or as many as are sent; and what the others have."""
    predictions = model.language.shape.predict(model.generator, [model.read_input(raw)], TOKENS)[0]
    logs = np.array([one.score for one in predictions])
    left = max(
        0.0, 1.0 - float(np.exp(logs).sum())
    )  # of those beyond the first TOKENS, and of <unk>, which is no answer
    return {
        "tokens": [one.output for one in predictions],
        "logs": replace_nonfinite(np.round(logs, 4).tolist()),
        "left_out": left,
    }


def list_views(model: Model, raw: Any, answer: str | None) -> dict[str, Any]:
    """The views that fit this run, in the order of the registry, and why the others do not."""
    look = model.look(raw, answer)
    fitting = [name for name in VIEWS if name not in look.missing]
    views = [{"name": name, "reading": VIEWS[name].reading, "training": VIEWS[name].of_training} for name in fitting]
    return {"title": look.title, "views": views, "missing": look.missing}


def draw_view(model: Model, raw: Any, answer: str | None, name: str) -> dict[str, Any]:
    """One view as a Vega-Lite definition, or as SVG; its title apart, since words on a page can wrap."""
    drawn = model.look(raw, answer).draw(name)
    head = {"view": name, "reading": VIEWS[name].reading}
    if isinstance(drawn, Drawing):
        return head | {"title": drawn.title, "lines": [], "svg": drawn.svg}
    spec = json.loads(render(drawn, ".json"))
    title = spec.pop("title", None) or {"text": name}
    return head | {
        "title": str(title["text"]),
        "lines": list(title.get("subtitle") or []),
        "spec": replace_nonfinite(spec),
    }


def attend(model: Model, raw: Any, answer: str | None) -> dict[str, Any]:
    """The attention weights behind an answer: which element attended to which, map by map."""
    look = model.look(raw, answer)
    if reason := VIEWS["attention"].missing(look):
        return {"maps": [], "why": reason}
    maps: list[AttentionMap] = [look.measure("attention")]
    if "heads" not in look.missing:
        maps = sorted(look.measure("heads"), key=lambda one: one.kind != OVER_SOURCE)
    if sum(one.weights.size for one in maps) > SHOWN:
        return {"maps": [], "why": f"the maps have more than {SHOWN:,} weights: try a shorter input"}
    return {
        "grid": look.picture and look.picture.grid,
        "maps": [
            {
                "title": one.title,
                "kind": one.kind,
                "source": one.source,
                "target": one.target,
                "names": one.names,
                "weights": replace_nonfinite(np.round(one.weights, 4).tolist()),
            }
            for one in maps
        ],
    }


def read_tune(text: str) -> dict[str, Any]:
    """The sounds of a tune in ABC notation: start and end in seconds, and MIDI pitch."""
    tune = parse_tune(text)
    quarter = compute_whole_note_seconds(tune) / 4
    sounds = make_piano_roll(tune)
    return {"sounds": [one | {"start": one["start"] * quarter, "end": one["end"] * quarter} for one in sounds]}  # type: ignore[operator]
