"""Cells that hold nothing: refused as missing, or left out and counted; never a class or a word of their own."""

import numpy as np
import pandas
import pytest

from seqloom.config.recipe import Recipe
from seqloom.data.datasets import is_missing
from seqloom.errors import DataError
from tests.preparing import prepare_task

NOTHING = [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pandas.NaT, pandas.NA]
SHARES = ("data.validation_share=0.1", "data.test_share=0.1")


def frame(missing, column="target"):
    rows = {"source": ["a b", "b c"] * 15, "target": ["x", "y"] * 15}
    rows[column][3] = missing
    return pandas.DataFrame({name: pandas.Series(cells, dtype=object) for name, cells in rows.items()})


def recipe(*more):
    return Recipe.of({"task": "classify"}).override(*SHARES, *more).resolved()


@pytest.mark.parametrize("value", NOTHING, ids=repr)
@pytest.mark.parametrize("column", ["source", "target"])
def test_a_missing_cell_is_refused_with_its_place(value, column):
    assert is_missing(value)
    with pytest.raises(DataError, match=f"example 3 of train: the {column} is missing"):
        prepare_task(recipe(), print, frame(value, column))


@pytest.mark.parametrize("value", [*NOTHING, "", "  "], ids=repr)
def test_it_is_left_out_and_counted_where_bad_rows_are_skipped(value):
    task, prepared = prepare_task(recipe("data.on_bad_row=skip"), print, frame(value))
    assert set(task.target.names) == {"x", "y"}
    assert sum(split.examples for split in prepared.report.splits.values()) == 29
    [(reason, skipped)] = prepared.report.skipped.items()
    assert reason in ("the target is missing", "the target is empty") and skipped.rows == 1
    assert "3" in skipped.first and prepared.report.rows_read == 30


def test_the_same_rows_are_left_out_of_a_list_as_of_a_frame():
    rows = [("a", "x"), ("b", "y")] * 10 + [("c", None), (None, "x")]
    task, prepared = prepare_task(recipe("data.on_bad_row=skip"), print, rows)
    assert task.target.names == ("x", "y") and prepared.report.rows_read == 22
    assert {reason: one.rows for reason, one in prepared.report.skipped.items()} == {
        "the target is missing": 1,
        "the source is missing": 1,
    }


@pytest.mark.parametrize("value", NOTHING, ids=repr)
def test_of_several_columns_some_may_be_missing_but_not_all(value):
    table = pandas.DataFrame({"a": ["p", value] * 10, "b": ["q", "r"] * 10, "target": ["x", "y"] * 10}, dtype=object)
    columns = recipe("data.source=a,b")
    _, prepared = prepare_task(columns, print, table)
    texts = {text for split in prepared.splits.values() for text in split.raws["source"]}
    assert texts == {"p | q", "| r"}
    with pytest.raises(DataError, match="example 1 of train: the source is missing"):
        prepare_task(columns, print, table.assign(b=["q", value] * 10))


def test_what_is_there_is_not_missing():
    for value in ("nan", "", 0, 0.0, False, np.int64(0), [], np.array([np.nan]), np.datetime64("2020-01-01")):
        assert not is_missing(value)
