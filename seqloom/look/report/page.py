"""One page about a run: its data, training, scores, answers, what ails it, its pictures, and how to make it again.

A single file that opens from disk without a network. What is in it is given as a `Story`; how it looks is in
`report_page`. Knows no run folder.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import Look
from ..charts.base import read_library, render
from ..charts.drawing import Drawing
from ..charts.picture import encode_png
from ..charts.scores import lengths_chart, scores_chart
from ..doctor.findings import Finding
from ..views import ANSWERS, INSIDE, SCORES, TRAINING, VIEWS
from .html import Html, details, html, items, page, script, section, table, tag
from .style import DRAW, STYLE

LIMIT = 4_800_000  # bytes of a page
MAX_ANSWERS = 8  # answers of each kind


@dataclass(frozen=True)
class AnsweredExample:
    """An example with the model's answer."""

    asked: str
    truth: str
    answer: str
    wrong: float  # 0 is right
    picture: Any = None


@dataclass(frozen=True)
class PageContent:
    """Everything a page tells; what could not be had is a sentence that says why."""

    title: str
    about: Sequence[str]  # lines about the network and its training
    look: Look
    data: Mapping[str, Any]  # the data's report
    data_lines: Sequence[str]
    scores: Mapping[str, Any]  # as scores.json; empty if there are none
    answers: Sequence[AnsweredExample] | str
    part: str  # of the data, that the answers are of
    findings: Sequence[Finding] | str
    commands: Sequence[str]
    recipe: str  # TOML
    versions: Sequence[str]
    named: str = ""  # what the run is called in a command
    charts: dict[str, Any] = field(default_factory=dict)


def write_page(story: PageContent) -> bytes:
    """The page as bytes of UTF-8."""
    charts = _Charts(story)
    sections = {
        "scores": ("How good it is", _scores(story, charts)),
        "answers": ("What it gets right, and wrong", html(charts.views(ANSWERS), _answers(story))),
        "doctor": ("What ails it", _findings(story)),
        "training": ("How training went", charts.views(TRAINING)),
        "inside": ("What happens inside", _inside(story, charts)),
        "data": ("The data", _data(story, charts)),
        "again": ("How to make it again", _reproduction(story)),
    }
    contents = tag(
        "nav",
        tag("ol", *(tag("li", tag("a", title, href=f"#{id}")) for id, (title, _) in sections.items())),
    )
    head = tag("header", tag("h1", story.title), *(tag("p", line) for line in story.about))
    body = tag("main", *(section(id, title, inside) for id, (title, inside) in sections.items()))
    specs = script(json.dumps(charts.list_fitting(), ensure_ascii=False), "application/json", "charts")
    return page(story.title, STYLE, head, contents, body, specs, script(read_library()), script(DRAW)).encode()


class _Charts:
    """The charts of a page: each has a place in it, and its definition stands at the end."""

    def __init__(self, story: PageContent) -> None:
        self.story = story
        self.specs: dict[str, dict[str, Any]] = {}

    def views(self, section: str) -> Html:
        """Every view of a section that fits, with a sentence on how to read it."""
        drawn = self.story.look.views.items()
        shown = [(name, draw) for name, draw in drawn if VIEWS[name].section == section]
        return html(*(self.figure(name, VIEWS[name].reading, draw()) for name, draw in shown))

    def figure(self, name: str, how: str, drawn: Any) -> Html:
        words = tag("p", how, kind="how")
        if isinstance(drawn, Drawing):
            source = f"data:image/svg+xml;base64,{b64encode(drawn.svg.encode()).decode()}"
            place = tag("div", tag("img", src=source, alt=drawn.title), kind="wide")
            return tag("figure", tag("h3", drawn.title), words, place, id=f"view-{name}")
        spec = json.loads(render(drawn, ".json"))
        title, subtitles = _take_title(spec)
        self.specs[name] = spec
        place = tag("div", kind="wide chart", id=f"chart-{name}")
        return tag("figure", tag("h3", title), words, *(tag("p", line, kind="said") for line in subtitles), place)

    def list_fitting(self) -> dict[str, Any]:
        """All definitions, but for the largest where they would make the page too large: those say how to draw them."""
        room = LIMIT - len(read_library().encode()) - 300_000
        sizes = {name: len(json.dumps(spec, ensure_ascii=False).encode()) for name, spec in self.specs.items()}
        fitting: dict[str, Any] = dict(self.specs)
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            if sum(sizes[kept] for kept, spec in fitting.items() if isinstance(spec, dict)) <= room:
                break
            fitting[name] = f"too large for this page; seqloom look {self.story.named} --view {name} draws it"
        return fitting


def _take_title(spec: dict[str, Any]) -> tuple[str, list[str]]:
    """Take the title out of a chart, and what stands below it: on a page, words are text that can wrap."""
    title = spec.pop("title")
    return str(title["text"]), list(title.get("subtitle", []))


def _scores(story: PageContent, charts: _Charts) -> Html:
    if not story.scores:
        return tag("p", "This run has no final scores yet.")
    scores = story.scores["scores"]
    rows = []
    for name, score in scores.items():
        low, high = score["interval"]
        rivals = ", ".join(f"{rival} {value:.3f}" for rival, value in score["baselines"].items())
        interval = "–" if low is None or high is None else f"{low:.3f} – {high:.3f}"
        rows.append([name, f"{score['value']:.3f}", interval, rivals, score["scale"]])
    known = story.data.get("splits", {}).get(story.scores["split"], {}).get("overlap")
    seen = (
        f", {known:,} of which have an input that is one of training, too." if known else ", which training never saw."
    )
    counted = f"On {story.scores['examples']:,} {story.scores['split']} examples{seen}"
    how = (
        "The mark is this model with its 95 % interval; the others need no model: what is no better has learned little."
    )
    return html(
        tag("p", counted),
        table(["score", "this model", "95 % interval", "baselines", "what it means"], rows, "scores"),
        charts.figure("scores", how, scores_chart(scores)),
        charts.views(SCORES),
    )


def _answers(story: PageContent) -> Html:
    if isinstance(story.answers, str):
        return tag("p", story.answers)
    right = [one for one in story.answers if not one.wrong]
    wrong = sorted((one for one in story.answers if one.wrong), key=lambda one: one.wrong)
    if all(one.wrong in (0, 1) for one in story.answers):
        share = (
            f"{len(right):,} of {len(story.answers):,} {story.part} examples that were tried are right to the letter."
        )
        parts = [("Right", right[:MAX_ANSWERS]), ("Wrong", wrong[:MAX_ANSWERS])]
    else:
        share = f"{len(wrong):,} {story.part} examples were tried; numbers are never right to the letter."
        if "forecast" in story.look.views:  # which shows what tables would spell out
            return tag("p", share)
        parts = [("The nearest", wrong[:4]), ("The furthest", wrong[::-1][:4])]
    tables = [
        html(tag("h3", name), table(["what was asked", "right answer", "the model's"], map(_answer, some), "answers"))
        for name, some in parts
        if some
    ]
    return html(tag("p", share), *tables)


def _answer(one: AnsweredExample) -> list[str]:
    shown_input: str = tag("span", one.asked, kind="token")
    if one.picture is not None:
        shown_input = tag(
            "img", src=f"data:image/png;base64,{b64encode(encode_png(one.picture)).decode()}", alt=one.asked
        )
    return [shown_input, tag("span", one.truth, kind="token"), tag("span", one.answer, kind="token")]


def _findings(story: PageContent) -> Html:
    if isinstance(story.findings, str):
        return tag("p", story.findings)
    if not story.findings:
        return tag("p", "Nothing stands out.")
    rows = [
        [finding.name, finding.says, finding.change or "look at the data", finding.why] for finding in story.findings
    ]
    return html(
        tag("p", "The worst first, each with its measurement and the setting to change."),
        table(["what", "measured", "try", "why"], rows),
    )


def _inside(story: PageContent, charts: _Charts) -> Html:
    missing = [f"{name}: {why}." for name, why in story.look.missing.items()]
    return html(
        tag("p", "While it reads and answers: ", tag("span", story.look.title, kind="token")),
        charts.views(INSIDE),
        details(f"{len(missing)} views do not fit this model", items(missing)) if missing else Html(),
    )


def _data(story: PageContent, charts: _Charts) -> Html:
    drawn = lengths_chart(story.data)
    how = "How many examples have how many elements; what is far longer than the rest is where padding and memory go."
    chart = Html() if drawn is None else charts.figure("lengths", how, drawn)
    return html(items(line.replace("**", "") for line in story.data_lines), chart)


def _reproduction(story: PageContent) -> Html:
    return html(
        tag(
            "p", "Save the recipe below as recipe.toml, and with the same versions and data the same weights come out."
        ),
        tag("pre", "\n".join(story.commands), kind="wide"),
        items(story.versions),
        details("recipe.toml", tag("pre", story.recipe, kind="wide")),
    )
