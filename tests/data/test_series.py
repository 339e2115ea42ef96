"""Tables of numbers over time: every way to write a time, gaps, long tables, and what people get wrong."""

import csv
import gzip
import math
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats.series import Series, TableReading, read_table
from seqloom.data.formats.tables import SkippedRows
from seqloom.errors import DataError


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


def read(file: str, *time: str, skipped: SkippedRows | None = None, **how) -> list[Series]:
    return list(read_table(file, TableReading(time=time, **how), skipped or SkippedRows()))


def refusal(file: str, *time: str, **how) -> str:
    with pytest.raises(DataError) as caught:
        read(file, *time, **how)
    return str(caught.value)


def test_a_wide_table_gives_one_series_with_its_columns(tmp_path):
    [series] = read(write(tmp_path, "date,a,b\n2020-01-01,1,2.5\n2020-01-02,-3,1e3\n"), "date")
    assert series.name == "t" and series.columns == ("a", "b") and series.step == "86400000 ms"
    assert series.times.tolist() == [datetime(2020, 1, 1), datetime(2020, 1, 2)]
    np.testing.assert_array_equal(series.values, [[1, 2.5], [-3, 1000]])


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "nan", "null", " NULL "])
def test_what_is_missing_is_nan(tmp_path, missing):
    [series] = read(write(tmp_path, f"x,y\n1,2\n{missing},4\n"))
    np.testing.assert_array_equal(series.values, [[1, 2], [math.nan, 4]])


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
def test_tabs_and_gzip(tmp_path, name):
    [series] = read(write(tmp_path, "t\tx\n5\t1\n7\t2\n", name), "t")
    assert series.times.tolist() == [5, 7] and series.step == "2.0" and series.name == "t"


@pytest.mark.parametrize(
    ("header", "rows", "time"),
    [
        ("d", ["2021-03-01T05:00:00", "2021-03-01T06:00:00"], ("d",)),
        ("d", ["2021-03-01 05:00", "2021-03-01 06:00"], ("d",)),
        ("d", ["2021-03-01T05:00:00Z", "2021-03-01T08:00:00+02:00"], ("d",)),
        ("d,c", ["2021-03-01,05:00", "2021-03-01,06:00"], ("d", "c")),
        ("y,m,d,h", ["2021,3,1,5", "2021,3,1,6"], ("y", "m", "d", "h")),
    ],
)
def test_one_hour_written_in_several_ways_is_the_same_hour(tmp_path, header, rows, time):
    [series] = read(write(tmp_path, f"{header},x\n" + "".join(f"{row},1\n" for row in rows)), *time)
    assert series.times.tolist() == [datetime(2021, 3, 1, 5), datetime(2021, 3, 1, 6)]
    assert series.columns == ("x",)


@pytest.mark.parametrize("rows", [["20210131", "20210201"], ["2021-01-31", "2021-02-01"]])
def test_dates_without_hyphens_are_dates(tmp_path, rows):
    [series] = read(write(tmp_path, "d,x\n" + "".join(f"{row},1\n" for row in rows)), "d")
    assert series.times.tolist() == [datetime(2021, 1, 31), datetime(2021, 2, 1)]


@given(gaps=st.lists(st.integers(1, 3), min_size=3, max_size=30), hours=st.sampled_from([1, 6, 24]))
def test_rows_missing_from_a_grid_are_put_in_and_counted(tmp_path_factory, gaps, hours):
    gaps = gaps + [1] * len(gaps)  # the most common step is the grid's
    places = [0, *np.cumsum(gaps).tolist()]
    start = datetime(2019, 12, 30, 3)
    rows = "".join(f"{start + timedelta(hours=hours * place)},{place}\n" for place in places)
    [series] = read(write(tmp_path_factory.mktemp("grid"), "t,x\n" + rows), "t")
    assert series.filled == places[-1] + 1 - len(places)
    assert series.times.tolist() == [start + timedelta(hours=hours * place) for place in range(places[-1] + 1)]
    expected = [place if place in places else math.nan for place in range(places[-1] + 1)]
    np.testing.assert_array_equal(series.values[:, 0], expected)


def test_months_are_a_grid_though_they_are_not_equally_long(tmp_path):
    months = ["1949-01", "1949-02", "1949-03", "1949-04", "1949-06"]
    [series] = read(write(tmp_path, "m,x\n" + "".join(f"{month},1\n" for month in months)), "m")
    assert series.step == "1 months" and series.filled == 1
    assert [moment.isoformat()[:10] for moment in series.times.tolist()] == [f"1949-0{m}-01" for m in range(1, 7)]


@pytest.mark.parametrize("rows", [["1", "2", "3.5", "4.5"], ["1", "2", "1000000"], ["-1e308", "0", "1e308"]])
def test_times_on_no_grid_stay_as_they_are(tmp_path, rows):
    [series] = read(write(tmp_path, "t,x\n" + "".join(f"{row},1\n" for row in rows)), "t")
    assert series.times.tolist() == list(map(float, rows)) and series.filled == 0 and series.step == ""


def test_a_long_table_gives_a_series_an_id_even_if_they_interleave(tmp_path):
    content = "who,t,x\nb,1,10\na,1,20\nb,2,11\na,3,22\na,5,23\nb,3,12\n"
    first, second = read(write(tmp_path, content), "t", id="who")
    assert (first.name, second.name) == ("b", "a") and first.columns == ("x",)
    assert first.values[:, 0].tolist() == [10, 11, 12]
    assert second.times.tolist() == [1, 3, 5] and second.values[:, 0].tolist() == [20, 22, 23]


def test_columns_are_chosen_by_name_or_number(tmp_path):
    file = write(tmp_path, "t,x,y,z\n1,2,3,4\n")
    assert read(file, "t", values=("z", "x"))[0].values.tolist() == [[4, 2]]
    assert read(file, "1", values=("3",))[0].columns == ("y",)
    assert "there is no column 'Z1'" in refusal(file, "t", values=("Z1",))


@pytest.mark.parametrize("times", [["2020-01-02", "2020-01-01"], ["2020-01-01", "2020-01-01"]])
def test_times_that_do_not_increase_are_refused_with_both_lines(tmp_path, times):
    file = write(tmp_path, "t,x\n2019-01-01,1\n" + "".join(f"{time},1\n" for time in times))
    sentence = refusal(file, "t")
    assert sentence.startswith(f"{file}, line 4: ") and "of line 3" in sentence and "must increase" in sentence


@pytest.mark.parametrize("bad", ["NW", "1,5,5", "inf", "1_000", "12a", "0x10"])
def test_what_is_no_number_is_refused_with_file_line_and_column(tmp_path, bad):
    with open(tmp_path / "t.csv", "w", newline="") as out:
        csv.writer(out).writerows([["a", "b"], ["1", "2"], ["3", bad]])
    file = str(tmp_path / "t.csv")
    assert refusal(file) == f"{file}, line 3: the column 'b' is {bad!r}, but a number was expected"


@pytest.mark.parametrize(
    ("content", "time", "part"),
    [
        ("", (), "is empty"),
        ("a,b\n", (), "no rows"),
        ("a,b\n1\n", (), "line 2: the row has 1 field, but 2 were expected"),
        ("t,x\nyesterday,1\n", ("t",), "line 2: the time in 't' is 'yesterday', which cannot be read"),
        ("t,x\n2020-01-01,1\n2020-02-30,1\n", ("t",), "line 3: the time in 't'"),
        ("t,x\n2020-01-01,1\n2020-01-02T00:00Z,1\n", ("t",), "the first time has no offset"),
        ("t,x\n0001-01-01T00:00+05:00,1\n", ("t",), "beyond the calendar"),
        ("y,m,x\n2020,99999999999999999999,1\n", ("y", "m"), "beyond the calendar"),
        ("t\n1\n", ("t",), "no column is left"),
        ("a,a\n1,1\n", (), "line 1: the header has the column 'a' more than once"),
        ("a,b\n,NA\n", (), "no number in the columns"),
    ],
)
def test_refusals_say_where_and_what(tmp_path, content, time, part):
    assert part in refusal(write(tmp_path, content), *time)


def test_skipped_rows_are_counted_and_become_gaps(tmp_path):
    skipped = SkippedRows()
    days = [f"2020-01-0{day},{'oops' if day == 3 else day}\n" for day in range(1, 6)]
    [series] = read(write(tmp_path, "t,x\n" + "".join(days)), "t", skip=True, skipped=skipped)
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, math.nan, 4, 5])
    assert series.filled == 1 and skipped.counts == {"'x' is not a number": 1}


def test_without_a_time_a_skipped_row_keeps_its_place(tmp_path):
    skipped = SkippedRows()
    [series] = read(write(tmp_path, "x,y\n1,1\noops,2\n3\n4,4\n"), skip=True, skipped=skipped)
    np.testing.assert_array_equal(series.values[:, 1], [1, math.nan, math.nan, 4])
    assert skipped.counts.total() == 2


def test_a_first_chunk_without_a_good_row_is_no_trouble(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.formats.series.CHUNK", 2)
    file = write(tmp_path, "t,x\nsoon,1\nlater,2\n5,3\n6,4\n7,5\n")
    [series] = read(file, "t", skip=True)
    assert series.times.tolist() == [5, 6, 7]


def test_chunks_leave_no_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.formats.series.CHUNK", 7)
    [series] = read(write(tmp_path, "t,x\n" + "".join(f"{i},{i * i}\n" for i in range(100))), "t")
    np.testing.assert_array_equal(series.values[:, 0], np.arange(100) ** 2)


@given(
    raw=st.binary(max_size=200)
    | st.text("0123456789-:T,\n\"'.eNa+", max_size=200).map(lambda text: ("t,x,y\n" + text).encode()),
    time=st.sampled_from([(), ("t",), ("t", "x")]),
    skip=st.booleans(),
)
def test_any_bytes_give_series_or_a_sentence(tmp_path_factory, raw, time, skip):
    file = write(tmp_path_factory.mktemp("bytes"), raw)
    try:
        for series in read(file, *time, skip=skip):
            assert series.values.shape == (len(series.times), len(series.columns))
            assert len(series.times) > 0 and (np.diff(series.times.astype(np.float64)) > 0).all()
    except DataError as error:
        assert str(error).startswith(file)


def test_the_real_tables(shared_data):
    [beijing] = read(
        str(shared_data / "beijing_pm25/pollution.csv.gz"), "year", "month", "day", "hour", values=("pm2.5", "TEMP")
    )
    assert beijing.values.shape == (43824, 2) and beijing.filled == 0 and beijing.step == "3600000 ms"
    assert np.isnan(beijing.values).sum(0).tolist() == [2067, 0]
    assert str(beijing.times[-1]) == "2014-12-31T23:00:00.000"
    [ett] = read(str(shared_data / "ett/ETTh1.csv.gz"), "date")
    assert ett.values.shape == (17420, 7) and ett.filled == 0 and not np.isnan(ett.values).any()
    [delhi] = read(str(shared_data / "delhi_climate/DailyDelhiClimateTrain.csv"), "date")
    assert delhi.values.shape == (1462, 4) and delhi.step == "86400000 ms"
