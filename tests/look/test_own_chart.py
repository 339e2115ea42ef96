"""A chart as CONTRIBUTING says one is added: one measure, one chart, one line; and the view that nobody named."""

import pytest
from typer.testing import CliRunner

from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.look import measuring
from seqloom.look.charts.base import import_altair, make_data, make_title
from seqloom.look.views import VIEWS, View
from seqloom.runs.run import Run, load, train

EXAMPLES = [("good film", "glad"), ("bad plot", "sad")] * 8
READING = "The longer the bar, the longer the word."


def measure_lengths(look):
    return {name: len(name) for name in look.names.of(look.side)}


def lengths_chart(found):
    rows = [{"word": word, "length": length} for word, length in found.items()]
    chart = import_altair().Chart(make_data(rows), title=make_title("Lengths of the words"))
    return chart.mark_bar().encode(x="word:N", y="length:Q")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "run"
    settings = ("model.kind=gru", "model.size=16", "train.steps=2", "data.source_tokenizer=words")
    list(train(Recipe.of({"task": "classify"}).override(*settings), folder, examples=EXAMPLES))
    return load(folder)


def test_a_chart_of_ones_own_is_drawn_from_python_by_command_and_in_the_report(run, tmp_path, monkeypatch):
    with pytest.raises(AttributeError, match="word_lengths"):
        run.look("good film").word_lengths()
    monkeypatch.setitem(VIEWS, "word-lengths", View(measure_lengths, lengths_chart, READING))  # the one line
    look = run.look("good film")
    assert look.measure("word-lengths") == {"good": 4, "film": 4}
    assert look.word_lengths().to_dict() == look.draw("word-lengths").to_dict() and "word-lengths" in look.views
    out = tmp_path / "own.svg"
    done = CliRunner().invoke(
        build_app(), ["look", str(run.folder), "good film", "--view", "word-lengths", "--out", str(out)]
    )
    assert done.exit_code == 0 and "Lengths of the words" in out.read_text()
    monkeypatch.setattr(Run, "diagnose", lambda *_, **__: [])
    page = run.report(tmp_path / "page.html", "good film", examples=EXAMPLES).read_text()
    assert READING in page and "chart-word-lengths" in page


def test_a_view_that_does_not_fit_says_why(run, monkeypatch):
    monkeypatch.setitem(VIEWS, "never", View(lambda look: 1, lengths_chart, "", lambda look: "it never does"))
    look = run.look("good film")
    assert look.missing["never"] == "it never does" and "never" not in look.views
    with pytest.raises(RecipeError, match="the view never does not fit this model: it never does"):
        look.never()


def test_without_a_view_one_that_fits_is_drawn_and_the_others_are_listed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(build_app(), ["look", str(run.folder), "good film"])
    assert done.exit_code == 0 and done.stdout.strip().endswith("gates.html") and (tmp_path / "gates.html").exists()
    assert "this is the view gates" in done.stderr and "attribution" in done.stderr and "heads" not in done.stderr


def test_what_two_views_need_is_measured_once(run, monkeypatch):
    """Attributions are most of what a report computes; the view of their faithfulness reads the same."""
    asked, find = [], measuring.find_decision
    monkeypatch.setattr(measuring, "find_decision", lambda *of: asked.append(of) or find(*of))
    look = run.look(EXAMPLES[0][0])
    best = look.measure("faithfulness")
    assert any(best is trust for _, trust in look.measure("attribution")) and len(asked) == 1
