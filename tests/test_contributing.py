"""What CONTRIBUTING.md says is enough to add something: done from here, touching what the page names and nothing else.

A cell, a field and a chart have files of their own: test_own_kind.py, test_own_field.py, look/test_own_chart.py.
"""

from pathlib import Path

import pytest

from seqloom import Recipe, load, train
from seqloom.data import readers
from seqloom.data.formats import tables
from seqloom.data.formats.lines import Fault
from seqloom.errors import DataError
from seqloom.metrics.score import ratio, score_sums
from seqloom.tasks.classify import TARGETS

SMALL = ("model.kind=gru", "model.size=8", "train.steps=4", "train.validate_every=2")


def read_arrows(files, schema, skipped):
    """A format of one's own: `source -> target`, a line an example."""
    for number, line in enumerate(Path(files[0]).read_text().splitlines(), 1):
        source, arrow, target = line.partition(" -> ")
        if arrow:
            yield (source, target), files[0], number
        else:
            yield Fault("no arrow", "no arrow stands between source and target", files[0], number)


@pytest.fixture
def arrows(monkeypatch, tmp_path):
    monkeypatch.setitem(tables.ENDINGS, ".arrows", "arrows")
    monkeypatch.setitem(readers.READERS, "arrows", read_arrows)
    path = tmp_path / "pairs.arrows"
    path.write_text("".join(f"{word} -> {word[::-1]}\n" for word in ("abc", "bca", "cab", "aab") for _ in "12345"))
    return path


def test_a_file_format_is_a_reader_and_a_line_for_it_and_its_ending(arrows, tmp_path):
    list(train(Recipe.read("seq2seq", f"data.train={arrows}", *SMALL), tmp_path / "run"))
    assert load(tmp_path / "run").task.target.symbols[-3:] == ("a", "b", "c")


def test_its_bad_rows_are_named_with_file_and_line_or_counted(arrows, tmp_path):
    arrows.write_text(arrows.read_text() + "abc bca\n")
    recipe = Recipe.read("seq2seq", f"data.train={arrows}", *SMALL)
    with pytest.raises(DataError, match="pairs.arrows, line 21: no arrow"):
        list(train(recipe, tmp_path / "run"))
    records = list(train(recipe.override("data.on_bad_row=skip"), tmp_path / "run"))
    assert any("no arrow" in record.text for record in records if record.kind == "note")


def vowels_right(predictions, targets, /, *, intervals=True):
    """A metric of one's own: whether a vowel was called one."""
    right = [[(p in "aeiou") == (t in "aeiou"), 1] for p, t in zip(predictions, targets, strict=True)]
    return score_sums(right, ratio, "higher", "share; 1 is all", intervals=intervals)


def test_a_metric_is_a_function_and_a_line_in_the_task(monkeypatch, tmp_path):
    monkeypatch.setitem(TARGETS["label"].metrics, "vowels", vowels_right)
    examples = [(letter * 3, letter) for letter in "aeioubcd" for _ in range(6)]
    recipe = Recipe.read("classify", *SMALL)
    *_, end = train(recipe, tmp_path / "run", examples=examples)
    found = end.final["scores"]["vowels"]
    assert 0 <= found["value"] <= 1 and {"most frequent", "chance"} <= found["baselines"].keys()
