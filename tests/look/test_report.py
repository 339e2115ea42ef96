"""The page about a run, without a browser: what stands in it, what is said where something is missing, and that text
stays text."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from seqloom.config.recipe import Recipe
from seqloom.look.report import page as reports
from seqloom.look.report.html import Html, html, items, page, script, table, tag
from seqloom.runs.run import load, train

from ..recipes import forecasting, walks

HOSTILE = "</script><script>alert('x')</script>&\"<!--"
WORDS = ["good film", "bad plot", "fine film", "awful plot"] * 8


@pytest.fixture(autouse=True)
def _no_library(monkeypatch):
    """Putting Vega together takes seconds, and is tried in the browser."""
    monkeypatch.setattr(reports, "read_library", lambda: "const vegaEmbed = 1;")


def quick(folder, task, examples, *changes):
    recipe = forecasting() if task == "forecast" else Recipe.of({"task": task})
    list(train(recipe.override("model.size=8", "train.steps=2", *changes), folder, examples=examples))
    return load(folder)


class Outline(HTMLParser):
    """The elements of a page, and whether they are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.found.append(name)
        if name not in ("meta", "img"):
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name


def test_text_is_escaped_and_html_is_not():
    assert tag("p", HOSTILE, kind='a"b') == Html(
        '<p class="a&quot;b">&lt;/script&gt;&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;&lt;!--</p>'
    )
    assert html("<", tag("b", "x"), ">") == "&lt;<b>x</b>&gt;"
    assert items(["<"]) == "<ul><li>&lt;</li></ul>" and "<td>&lt;</td>" in table(["a"], [["<"]])
    assert tag("img", src='x" onerror="y', alt="<") == '<img src="x&quot; onerror=&quot;y" alt="&lt;">'


def test_no_text_can_end_a_script():
    told = script(json.dumps({"a": HOSTILE}), "application/json", "charts")
    assert told.count("<script") == told.count("</script") == 1
    assert json.loads(re.search(r">(.*)</script>$", told)[1]) == {"a": HOSTILE}
    assert script("let a = '</script>';").count("</script") == 1
    Outline(page("<title>", "b {}", tag("p", HOSTILE), told))


def test_a_page_tells_everything_about_a_run(tmp_path):
    examples = [(text, HOSTILE if text[0] in "gf" else "sad") for text in WORDS]
    run = quick(tmp_path / "run", "classify", examples, "train.watch_every=1", "data.source_tokenizer=words")
    text = run.report(tmp_path / "page.html", examples=examples).read_text()
    found = Outline(text)
    assert found.found.count("script") == 3 and found.found.count("h2") == 7
    assert HOSTILE not in text and HOSTILE in unescape(re.sub(r"<script.*?</script>", "", text, flags=re.S))
    for words in ("most frequent", "test examples", "seqloom train recipe.toml", 'kind = "', "SHA-256", "torch"):
        assert words in unescape(text), words
    assert not re.search(r'(src|href)="(?!data:|#)', text) and "default-src 'none'" in text
    specs = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S)[1])
    assert {"scores", "curves", "flow", "gates", "probe"} <= set(specs)
    assert "lengths" not in specs  # all are of one length
    assert all("title" not in spec for spec in specs.values())


def test_what_cannot_be_had_is_said(tmp_path):
    run = quick(tmp_path / "run", "classify", [(text, text[0]) for text in WORDS], "data.source_tokenizer=words")
    text = unescape(run.report(tmp_path / "page.html", "good film").read_text())
    assert "There are no examples to show" in text and "was trained on examples from Python" in text
    assert "no step was watched: train.watch_every is 100, of 2 steps" in text
    assert "probe: it needs several examples" in text


def test_answers_are_sorted_into_right_and_wrong():
    answered = [reports.AnsweredExample(str(n), "t", "a", wrong) for n, wrong in enumerate([0, 1, 0, 1])]
    told = reports._answers(story(answers=answered))
    assert "2 of 4 test examples" in told and told.index("Right") < told.index("Wrong")
    numbers = [reports.AnsweredExample(str(n), "t", "a", wrong) for n, wrong in enumerate([0.3, 0.1, 0.9])]
    told = reports._answers(story(answers=numbers))
    nearest = re.findall(r'<span class="token">(\d)</span>', told.partition("The furthest")[0])
    assert nearest == ["1", "0", "2"] and "never right" in told


def story(**given):
    fields = {
        "title": "",
        "about": [],
        "look": SimpleNamespace(views={}),
        "data": {},
        "data_lines": [],
        "scores": {},
        "answers": [],
    }
    fields |= {"part": "test", "findings": [], "commands": [], "recipe": "", "versions": []}
    return reports.PageContent(**(fields | given))


def test_a_forecaster_has_a_page_with_its_forecast_drawn_and_errors_by_its_scale(tmp_path):
    run = quick(tmp_path / "run", "forecast", walks())
    text = run.report(tmp_path / "page.html", examples=walks()).read_text()
    assert "never right to the letter" in text and 'id="chart-forecast"' in text
    [_, asked] = run.pick_examples(3, walks())
    for one in asked:
        assert len(one.input.values) == 8 and len(one.inspected.values) == 11
        np.testing.assert_array_equal(one.inspected.values[:8], one.input.values)
        answer = run.predict(one.input)[0]
        errors = [np.abs(np.array(answer.values[name]) - one.target[name]) for name in answer.values]
        wanted = np.nanmean(np.array(errors) / np.array(run.task.fields["series"].scale.spread)[:, None])
        assert run.task.shape.error(answer, one) == pytest.approx(np.nan_to_num(wanted))


def test_charts_that_would_make_a_page_too_large_are_left_out_with_the_command_that_draws_them(tmp_path, monkeypatch):
    examples = [(text, text[::-1]) for text in WORDS]
    run = quick(tmp_path / "run", "seq2seq", examples, "model.kind=transformer")
    whole = run.report(tmp_path / "whole.html", "good film", examples=examples).stat().st_size
    monkeypatch.setattr(reports, "LIMIT", 300_000 + whole // 2)
    text = run.report(tmp_path / "small.html", "good film", examples=examples).read_text()
    specs = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S)[1])
    left = [name for name, spec in specs.items() if isinstance(spec, str)]
    assert left and all(f"--view {name} draws it" in specs[name] for name in left) and len(left) < len(specs)
    assert len(text.encode()) < whole
