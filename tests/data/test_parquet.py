"""Rows of Parquet files: as csv gives them, in batches, and refused in a sentence."""

import gzip
import sys
from datetime import date, datetime

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from seqloom import Recipe
from seqloom.data.documents import read_documents
from seqloom.data.formats.series import TableReading, read_table
from seqloom.data.formats.tables import Reading, SkippedRows, read_rows
from seqloom.errors import DataError, MissingExtra


def write(folder, columns: dict) -> str:
    parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    return str(folder / "t.parquet")


def read(file: str, *columns: str, skipped: SkippedRows | None = None, **how) -> list:
    return list(read_rows([file], Reading(columns=columns, **how), skipped or SkippedRows()))


def test_chosen_columns_come_as_texts_with_their_row(tmp_path):
    file = write(tmp_path, {"text": [" ä ", "b"], "n": [1, 20], "x": [0.5, 1e-7], "ok": [True, False]})
    assert [row.values for row in read(file, "ok", "text", "n", "x")] == [
        ("true", "ä", "1", "0.5"),
        ("false", "b", "20", "1e-7"),
    ]
    assert [row.line for row in read(file, "2")] == [1, 2] and read(file, "2")[0].values == ("1",)


def test_categories_and_dates_are_texts(tmp_path):
    labels = pyarrow.array(["spam", "ham"]).dictionary_encode()
    file = write(tmp_path, {"label": labels, "day": [date(2020, 1, 2)] * 2})
    assert [row.values for row in read(file, "label", "day")] == [("spam", "2020-01-02"), ("ham", "2020-01-02")]


def test_batches_leave_no_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.formats.parquet.BATCH", 3)
    file = write(tmp_path, {"n": list(range(100))})
    assert [(row.values, row.line) for row in read(file, "n")] == [((str(n),), n + 1) for n in range(100)]


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({"tetx": ["a"]}, "there is no column 'text'; there are 'tetx'; did you mean 'tetx'?"),
        ({"text": [["a"]]}, "the column 'text' is list"),
        ({"text": [b"a"]}, "the column 'text' is binary"),
        ({"text": ["a", None]}, "line 2: the column 'text' is empty"),
        ({"text": ["a", " "]}, "line 2: the column 'text' is empty"),
        ({"text": ["a\0"]}, "line 1: 'text' holds a NUL"),
        ({"text": pyarrow.array([], pyarrow.string())}, "is empty"),
    ],
)
def test_refusals(tmp_path, columns, part):
    with pytest.raises(DataError) as caught:
        read(write(tmp_path, columns), "text")
    assert part in str(caught.value)


def test_empty_values_can_be_skipped(tmp_path):
    skipped = SkippedRows()
    file = write(tmp_path, {"text": ["a", None, ""]})
    assert len(read(file, "text", skip=True, skipped=skipped)) == 1 and skipped.counts.total() == 2


@given(place=st.integers(0, 400), byte=st.integers(1, 255), cut=st.integers(0, 400))
def test_damaged_files_give_rows_or_a_sentence(tmp_path_factory, place, byte, cut):
    folder = tmp_path_factory.mktemp("parquet")
    file = write(folder, {"text": ["alpha", "beta"]})
    raw = bytearray((folder / "t.parquet").read_bytes())
    raw[place % len(raw)] ^= byte
    (folder / "t.parquet").write_bytes(bytes(raw[: len(raw) - max(cut - 200, 0)]))
    try:
        read(file, "text")
    except DataError as error:
        assert "\n" not in str(error)


def test_a_compressed_file_is_the_same(tmp_path):
    plain = write(tmp_path, {"text": ["a", "b"]})
    (tmp_path / "p.parquet.gz").write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    assert [row.values for row in read(str(tmp_path / "p.parquet.gz"), "text")] == [
        row.values for row in read(plain, "text")
    ]


def test_series_and_documents_are_read(tmp_path):
    hours = [datetime(2021, 1, 1, hour) for hour in range(4)]
    file = write(tmp_path, {"t": hours, "x": [1.0, None, 3.0, 4.0], "unread": [["a"]] * 4})
    [series] = read_table(file, TableReading(time=("t",), values=("x",)), SkippedRows())
    assert series.step == "3600000 ms" and np.isnan(series.values[1, 0]) and series.values[3, 0] == 4
    data = Recipe.read("language", f"data.train={write(tmp_path, {'target': ['one', 'two']})}").data
    assert list(read_documents(data.train, data, SkippedRows())) == [("one",), ("two",)]


def test_without_pyarrow_the_command_is_said(tmp_path, monkeypatch):
    file = write(tmp_path, {"text": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="seqloom\\[parquet\\]"):
        read(file, "text")
