"""Numbers and dates as people write them: read, said, and refused where two readings fit."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats.dates import FORMATS, detect_format
from seqloom.data.formats.numerals import detect_decimal, normalize
from seqloom.data.formats.series import TableReading, read_table
from seqloom.data.formats.tables import SkippedRows
from seqloom.errors import DataError


@given(st.integers(-(10**9), 10**9), st.integers(0, 99), st.booleans())
def test_a_number_written_with_a_comma_is_the_same_number(whole, hundredths, grouped):
    text = f"{whole:,}.{hundredths:02}" if grouped else f"{whole}.{hundredths:02}"
    swapped = text.translate(str.maketrans(",.", ".,"))
    assert float(normalize(swapped, "comma")) == float(normalize(text, "point")) == float(f"{whole}.{hundredths:02}")
    assert detect_decimal([swapped], "f") == "comma"


@pytest.mark.parametrize("text", ["1.5", "1,5,5", "1.23.456", "a,5", "1,2.3"])
def test_what_is_no_number_with_a_comma_stays_none(text):
    with pytest.raises(ValueError):
        float(normalize(text, "comma").replace(" ", "x"))


def test_groups_of_three_alone_are_refused_with_both_readings():
    with pytest.raises(DataError, match=r"'1,234' may be 1\.234 or 1234: data\.decimal=comma or data\.decimal=point"):
        detect_decimal(["12", "1,234"], "f")
    assert detect_decimal(["1,234", "0,5"], "f") == "comma"
    assert detect_decimal(["1.5", "", "x"], "f") == "auto"


@given(
    st.sampled_from([format for format in FORMATS if "%y" not in format]),
    st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2060, 1, 1)), min_size=3, max_size=30),
)
def test_dates_are_read_back_or_refused(format, times):
    texts = [time.strftime(format) for time in times]
    try:
        found = detect_format(texts, "f")
    except DataError as error:
        assert "data.time_format says which" in str(error) and all(time.day <= 12 for time in times)
    else:
        assert [datetime.strptime(text, found) for text in texts] == [datetime.strptime(text, format) for text in texts]


def write(folder, content):
    (folder / "t.csv").write_text(content)
    return str(folder / "t.csv")


def test_hourly_rows_with_day_first_and_decimal_commas(tmp_path):
    start = datetime(2021, 3, 30)
    rows = [f"{start + timedelta(hours=hour):%d/%m/%Y %H:%M};{hour},5;{hour}" for hour in range(0, 72, 1) if hour != 5]
    file, skipped = write(tmp_path, "\n".join(["when;temperature;count", *rows])), SkippedRows()
    [series] = read_table(file, TableReading(time=("when",)), skipped)
    assert series.times[0] == start and series.times[-1] == start + timedelta(hours=71)
    assert series.step == "3600000 ms" and series.filled == 1
    assert series.values[1].tolist() == [1.5, 1.0]
    assert [note.partition(": ")[2] for note in skipped.notes] == [
        "the columns are divided by semicolons (data.separator)",
        "numbers have a decimal comma (data.decimal)",
        "times are read as %d/%m/%Y %H:%M, as in 30/03/2021 00:00 (data.time_format)",
    ]


def test_a_date_that_may_be_two_is_refused(tmp_path):
    file = write(tmp_path, "t,x\n03/04/2021,1\n04/04/2021,2\n")
    with pytest.raises(DataError) as caught:
        list(read_table(file, TableReading(time=("t",)), SkippedRows()))
    assert "'03/04/2021' may be 03 April 2021 (%d/%m/%Y) or 04 March 2021 (%m/%d/%Y)" in str(caught.value)
    [series] = read_table(file, TableReading(time=("t",), time_format="%d/%m/%Y"), SkippedRows())
    assert series.times.tolist() == [datetime(2021, 4, 3), datetime(2021, 4, 4)]


def test_a_time_that_the_format_does_not_fit_is_said_with_its_line(tmp_path):
    file = write(tmp_path, "t,x\n31/03/2021,1\n32/03/2021,2\n")
    with pytest.raises(DataError, match=r"line 3: the time in 't' is '32/03/2021', which cannot be read \(times are"):
        list(read_table(file, TableReading(time=("t",)), SkippedRows()))
