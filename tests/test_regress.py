"""`make regress`: what is worse than its stored interval is seen, what is inside or better is not."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def regress(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("regress")


def stored(better):
    return {"score": "it", "scores": {"it": {"value": 0.8, "interval": [0.7, 0.9], "better": better}}}


@pytest.mark.parametrize(
    ("better", "worse", "fine"),
    [
        ("higher", [0.69], [0.7, 0.8, 0.95]),
        ("lower", [0.91], [0.9, 0.8, 0.1]),
        ("nearer", [0.69, 0.91], [0.7, 0.8, 0.9]),
    ],
)
def test_only_what_is_worse_than_the_interval_regressed(regress, better, worse, fine):
    for value in (*worse, *fine):
        [verdict] = regress.compare(stored(better), {"it": {"value": value}})
        assert verdict.regressed == (value in worse)


def test_the_short_rows_are_stored_rows_of_up_to_three_minutes(regress):
    names = regress.short_rows()
    assert names and set(names) <= set(regress.ledger())
    assert {regress.ROWS[name].budget for name in names} <= {"10s", "1m", "2m", "3m"}


def test_all_scores_of_a_row_are_compared_with_themselves_and_hold(regress):
    for name in regress.short_rows():
        row = regress.ledger()[name]
        verdicts = regress.compare(row, row["scores"])
        assert [one.score for one in verdicts] == row["score"].split(",")
        assert not any(one.regressed for one in verdicts)


def test_a_regression_is_an_exit_code(regress, monkeypatch, tmp_path, capsys):
    row = regress.ledger()["trec"]
    worse = {name: {"value": score["interval"][0] - 0.01} for name, score in row["scores"].items()}
    monkeypatch.setattr(regress, "train_again", lambda name, row: worse)
    monkeypatch.setattr(regress, "DATA", tmp_path)
    monkeypatch.setattr(sys, "argv", ["regress.py", "trec"])
    with pytest.raises(SystemExit) as ended:
        regress.main()
    assert ended.value.code == 1 and "WORSE" in capsys.readouterr().out
