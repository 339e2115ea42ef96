"""How a table is written: separators and headers are detected, said, overridden, and refused where two fit."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats.dialects import SEPARATORS, detect_header, detect_separator
from seqloom.data.formats.series import TableReading, read_table
from seqloom.data.formats.tables import Reading, SkippedRows, read_rows
from seqloom.errors import DataError


def read(
    folder: Path, content: str, *columns: str, name: str = "t.csv", **how
) -> tuple[list[tuple[str, ...]], list[str]]:
    (folder / name).write_text(content, encoding="utf-8")
    skipped = SkippedRows()
    rows = [row.values for row in read_rows([str(folder / name)], Reading(columns, **how), skipped)]
    return rows, skipped.notes


def refusal(folder: Path, content: str, *columns: str, **how) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, content, *columns, **how)
    return str(caught.value)


# --- separators --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_separator_is_found_and_said(tmp_path, separator):
    content = 'id,text,label\n1,"good, really; so | so\tso",pos\n2,bad,neg\n'.replace(",", "\0")
    content = content.replace("good\0", "good,").replace("\0", separator)
    rows, notes = read(tmp_path, content, "text", "label")
    assert rows == [("good, really; so | so\tso", "pos"), ("bad", "neg")]
    assert [SEPARATORS[separator] in note for note in notes] == ([] if separator == "," else [True])


@given(
    st.sampled_from(list(SEPARATORS)),
    st.lists(st.tuples(st.text('abc ,;|\t"\n', max_size=8), st.text("xyz ,;", max_size=5)), min_size=1, max_size=20),
)
def test_whatever_stands_in_the_cells_named_columns_decide(tmp_path_factory, separator, rows):
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([("the text", "the label"), *rows])
    file = tmp_path_factory.mktemp("t") / "t.csv"
    file.write_text(written.getvalue(), encoding="utf-8", newline="")
    assert detect_separator(str(file), "utf-8", ("the text", "the label")) == separator


def test_one_that_fits_twice_is_refused_with_both_readings(tmp_path):
    content = "1,5;2,5\n3,5;4,5\n"
    assert (
        "the columns may be divided by commas (3 columns: 1 | 5;2 | 5) or semicolons (2 columns: 1,5 | 2,5): "
        "data.separator says which"
    ) in refusal(tmp_path, content, "1", "2")
    assert read(tmp_path, content, "1", "2", separator=";")[0] == [("1,5", "2,5"), ("3,5", "4,5")]


def test_one_that_is_said_holds(tmp_path):
    assert read(tmp_path, "a;b#c\nx#y\n", "a;b", "c", separator="#")[0] == [("x", "y")]
    assert "one character" in refusal(tmp_path, "a::b\n", "a", "b", separator="::")
    assert "divided by tabs" in refusal(tmp_path, "a;b\n", "a", "b", name="t.tsv", separator=";")


def test_a_single_column_with_commas_inside_is_refused_as_before(tmp_path):
    assert "line 2: the row has 2 fields, but 1 were expected" in refusal(tmp_path, "text\na, b\nc\n", "text")


# --- extra columns ----------------------------------------------------------------------------------------------


def test_a_third_column_is_no_part_of_the_target(tmp_path):
    line = "Go.\tGeh.\tCC-BY 2.0 (France)\n"
    sentence = refusal(tmp_path, line, "source", "target", name="deu.txt")
    assert "line 1: the line has 3 columns (Go. | Geh. | CC-BY 2.0 (France)), but source and target are two" in sentence
    assert "data.format=tsv data.source=1 data.target=2" in sentence
    rows, _ = read(tmp_path, line * 3, "1", "2", name="deu.txt", format="tsv")
    assert rows == [("Go.", "Geh.")] * 3


# --- headers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (["text,label", "so good,1", "so bad,0"], True),  # a word above numbers
        (["so good,1", "so bad,0", "fine,1"], False),
        (["polarity,sentence", "pos,it is good", "neg,it is bad", "pos,yes sir", "neg,no sir"], True),
        (["pos,it is good", "neg,it is bad", "pos,yes sir", "neg,no sir"], False),
        (["Smith,English", "Müller,German", "Jones,English", "Maier,German", "Brown,English"], False),
        (["Go.,Geh.", "Hi.,Hallo.", "Run!,Lauf!"], False),
        (["english,german", "Go.,Geh.", "Hi.,Hallo."], True),
        (["foo,bar", "x y,a", "y z,b", "z x,a", "y x,b"], None),  # a header, or a label that occurs once
        (["2019,text", "2020,so good", "2021,so bad"], False),
        (["year,1", "2020,a", "2021,a", "2022,1", "2023,1"], None),  # one cell says yes, another no
    ],
)  # fmt: skip
def test_a_header_is_a_row_of_another_kind(rows, found):
    assert detect_header([row.split(",") for row in rows]) is found


def test_column_numbers_do_not_make_the_header_an_example(tmp_path):
    content = "text,label\nso good,1\nso bad,0\n"
    rows, notes = read(tmp_path, content, "1", "2")
    assert rows == [("so good", "1"), ("so bad", "0")]
    assert "(2 columns: text | label) was taken for a header (data.header)" in notes[0]
    rows, notes = read(tmp_path, content, "1", "2", header="no")
    assert rows[0] == ("text", "label") and notes == []


def test_what_cannot_be_told_is_refused_with_what_to_type(tmp_path):
    content = "foo,bar\nx y,a\ny z,b\nz x,a\ny x,b\n"
    sentence = refusal(tmp_path, content, "1", "2")
    assert "the first row (2 columns: foo | bar) may name the columns or be an example" in sentence
    assert "data.header=yes or data.header=no" in sentence
    assert len(read(tmp_path, content, "1", "2", header="yes")[0]) == 4
    assert len(read(tmp_path, content, "1", "2", header="no")[0]) == 5


def test_names_and_no_header_exclude_each_other(tmp_path):
    assert "data.header is no" in refusal(tmp_path, "a,b\nx,y\n", "a", "2", header="no")


def test_a_table_of_numbers_without_a_header_keeps_its_first_row(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n5,6\n")
    skipped = SkippedRows()
    [series] = read_table(str(tmp_path / "t.csv"), TableReading(), skipped)
    assert series.values.tolist() == [[1, 2], [3, 4], [5, 6]] and series.columns == ("1", "2")
    assert "no header was found" in skipped.notes[0]
    (tmp_path / "t.csv").write_text("2019,2020\n3,4\n5,6\n")
    [series] = read_table(str(tmp_path / "t.csv"), TableReading(header="yes"), SkippedRows())
    assert series.values.tolist() == [[3, 4], [5, 6]] and series.columns == ("2019", "2020")


# --- nested objects ----------------------------------------------------------------------------------------------


def test_a_path_of_keys_reaches_into_objects(tmp_path):
    content = '{"user": {"name": "x"}, "reviews": [{"text": "good"}], "a.b": "dotted"}\n'
    rows, _ = read(tmp_path, content, "user.name", "reviews.0.text", "a.b", name="t.jsonl")
    assert rows == [("x", "good", "dotted")]
    sentence = refusal(tmp_path, content, "user.nam", "a.b", name="t.jsonl")
    assert (
        "the object has no 'user.nam'; there are 'user.name', 'reviews', 'a.b'; did you mean 'user.name'?" in sentence
    )
