"""Sheets of Excel files: as the same table in csv gives them, and refused in a sentence."""

import csv
import sys
from datetime import date, datetime

import pytest

from seqloom.data.files import digest_file
from seqloom.data.formats.series import TableReading, read_table
from seqloom.data.formats.tables import Reading, SkippedRows, read_rows
from seqloom.errors import DataError, MissingExtra

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")

ROWS = [["text", "n", "day"], ["so, so", 3, date(2021, 1, 31)], ["two\nlines", 2.5, date(2021, 2, 1)], ["x", 7.0, None]]


def write(folder, rows, other=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    if other:
        sheet = book.create_sheet("more")
        for row in other:
            sheet.append(row)
    book.save(folder / "t.xlsx")
    return str(folder / "t.xlsx")


def read(file, *columns, **how):
    skipped = SkippedRows()
    return [row.values for row in read_rows([file], Reading(columns, **how), skipped)], skipped.notes


def test_a_sheet_is_chosen_on_the_command_line(tmp_path, typed):
    rows = [["text", "label"], *[[f"day {n}", "good" if n % 2 else "bad"] for n in range(20)]]
    write(tmp_path, [["note"], ["see the next sheet"]], rows)
    asked = ("data", "classify", "data.source=text", "data.target=label")
    out, error, code = typed(*asked, "data.train=t.xlsx")
    assert code == 2 and "there are 'note'; FILE.xlsx#SHEET reads another sheet" in error
    out, error, code = typed(*asked, "data.train=t.xlsx#more")
    assert code == 0 and "20 rows read" in out, error
    assert digest_file("t.xlsx#more") != digest_file("t.xlsx")


def test_a_sheet_gives_what_the_same_csv_gives(tmp_path):
    rows = [row[:2] for row in ROWS]
    with open(tmp_path / "t.csv", "w", newline="") as out:
        csv.writer(out).writerows([[cell if cell != 7.0 else 7 for cell in row] for row in rows])
    assert read(write(tmp_path, rows), "text", "n")[0] == read(str(tmp_path / "t.csv"), "text", "n")[0]


def test_the_first_sheet_is_read_unless_another_is_named(tmp_path):
    file = write(tmp_path, ROWS, other=[["text"], ["other"]])
    found, notes = read(file, "text", "n")
    assert found[0] == ("so, so", "3") and "the sheet Sheet was read, not more" in notes[0]
    assert read(f"{file}#more", "text")[0] == [("other",)]
    with pytest.raises(DataError, match=r"there is no sheet 'mroe'; there are Sheet, more"):
        read(f"{file}#mroe", "text")


def test_a_missing_cell_is_missing(tmp_path):
    with pytest.raises(DataError, match="line 4: the column 'day' is empty"):
        read(write(tmp_path, ROWS), "text", "day")


def test_series_have_their_times(tmp_path):
    rows = [["when", "x"], *([datetime(2021, 1, 1, hour), hour / 2] for hour in range(5))]
    [series] = read_table(write(tmp_path, rows), TableReading(time=("when",)), SkippedRows())
    assert series.step == "3600000 ms" and series.values[:, 0].tolist() == [0, 0.5, 1, 1.5, 2]


def test_what_is_no_excel_file_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(DataError, match="cannot be read as an Excel file"):
        read(str(tmp_path / "t.xlsx"), "text")


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.formats.xlsx.MOST_BYTES", 1000)
    with pytest.raises(DataError, match="unpacks to more than"):
        read(write(tmp_path, ROWS), "text")


def test_without_openpyxl_the_command_is_said(tmp_path, monkeypatch):
    file = write(tmp_path, ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match="seqloom\\[excel\\]"):
        read(file, "text")
