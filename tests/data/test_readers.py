"""Reading files: every format, and everything people get wrong, each with its file and line.

`lines` and `formats` are tested here too, through the one function that others call.
"""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats import lines
from seqloom.data.formats.tables import Reading, Row, SkippedRows, read_rows
from seqloom.errors import DataError


def write(folder: Path, name: str, content: str | bytes) -> str:
    raw = content if isinstance(content, bytes) else content.encode("utf-8")
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


def read(*files: str, **how) -> list[Row]:
    return list(read_rows(files, Reading(**how), SkippedRows()))


def values(*files: str, **how) -> list[tuple[str, ...]]:
    return [row.values for row in read(*files, **how)]


def refusal(*files: str, **how) -> str:
    with pytest.raises(DataError) as caught:
        read(*files, **how)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def skips(*files: str, **how) -> tuple[list[tuple[str, ...]], dict[str, int], dict[str, str]]:
    skipped = SkippedRows()
    rows = [row.values for row in read_rows(files, Reading(skip=True, **how), skipped)]
    return rows, dict(skipped.counts), skipped.first


PAIRS = [("ein Haus", "a house"), ("zwei Häuser", "two houses")]
CONTENTS = {
    "p.csv": "source,target\nein Haus,a house\nzwei Häuser,two houses\n",
    "p.tsv": "source\ttarget\nein Haus\ta house\nzwei Häuser\ttwo houses\n",
    "p.jsonl": '{"source": "ein Haus", "target": "a house"}\n{"target": "two houses", "source": "zwei Häuser"}\n',
    "p.txt": "ein Haus\ta house\nzwei Häuser\ttwo houses\n",
}

# --- formats -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_format_gives_its_rows_with_file_and_line(tmp_path, name, ending):
    file = write(tmp_path, name + ending, CONTENTS[name])
    rows = read(file)
    assert [row.values for row in rows] == PAIRS
    assert {row.file for row in rows} == {file}
    first = 2 if name in ("p.csv", "p.tsv") else 1
    assert [row.line for row in rows] == [first, first + 1]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_byte_order_mark_and_carriage_returns_change_nothing(tmp_path, name):
    windows = "\ufeff" + CONTENTS[name].replace("\n", "\r\n")
    assert values(write(tmp_path, name, windows)) == PAIRS


def test_carriage_returns_within_a_quoted_field_are_dropped_too(tmp_path):
    assert values(write(tmp_path, "p.csv", 'source,target\r\n"a\r\nb",c\r\n')) == [("a\nb", "c")]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_missing_last_line_end_changes_nothing(tmp_path, name):
    assert values(write(tmp_path, name, CONTENTS[name].rstrip("\n"))) == PAIRS


@pytest.mark.parametrize("name", CONTENTS)
def test_lines_with_nothing_on_them_are_passed_over(tmp_path, name):
    assert values(write(tmp_path, name, CONTENTS[name].replace("\n", "\n\n  \n"))) == PAIRS


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8-sig"])
@pytest.mark.parametrize("name", CONTENTS)
def test_other_encodings_are_read_as_said(tmp_path, name, encoding):
    file = write(tmp_path, name, CONTENTS[name].encode(encoding))
    assert values(file, encoding=encoding) == PAIRS


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_parallel_files_are_read_line_by_line(tmp_path, ending):
    files = (
        write(tmp_path, f"t.de{ending}", "ein Haus\nzwei Häuser\n"),
        write(tmp_path, f"t.en{ending}", "a house\r\ntwo houses"),
    )
    assert values(*files) == PAIRS == values(*files, format="lines")
    assert values(*files, columns=("target", "source")) == [(target, source) for source, target in PAIRS]


def test_a_format_that_is_said_goes_before_the_ending(tmp_path):
    assert values(write(tmp_path, "p.csv", CONTENTS["p.tsv"]), format="tsv") == PAIRS
    assert values(write(tmp_path, "p.data", CONTENTS["p.jsonl"]), format="jsonl") == PAIRS


def test_endings_are_known_in_capitals(tmp_path):
    assert values(write(tmp_path, "P.CSV", CONTENTS["p.csv"])) == PAIRS


def test_an_ending_that_says_nothing_is_refused(tmp_path):
    assert "data.format" in refusal(write(tmp_path, "p.en.gz", "a"))
    assert "data.format" in refusal(write(tmp_path, "pairs", "a"))


def test_one_file_cannot_be_parallel_and_two_cannot_be_a_table(tmp_path):
    one, two = write(tmp_path, "a.csv", "x"), write(tmp_path, "b.csv", "x")
    assert "1 file given as lines" in refusal(one, format="lines")
    assert "2 files" in refusal(one, two, format="csv")


def test_a_text_line_is_split_where_the_separator_first_occurs(tmp_path):
    file = write(tmp_path, "cmu.txt", "AARDEMA  AA R  D EH M AH\nA\tB  C\n")
    assert values(file, separator="  ") == [("AARDEMA", "AA R  D EH M AH"), ("A\tB", "C")]


def test_a_tab_separated_file_knows_no_quotes(tmp_path):
    file = write(tmp_path, "p.tsv", 'source\ttarget\n"Hi," he said.\t"Hallo\n')
    assert values(file) == [('"Hi," he said.', '"Hallo')]


def test_only_line_feeds_end_a_line(tmp_path):
    source = "a\u2028b\x85c\x0bd\re"
    files = write(tmp_path, "t.a", source + "\nf\n"), write(tmp_path, "t.b", "1\n2\n")
    assert values(*files) == [(source, "1"), ("f", "2")]


cell = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1).filter(
    lambda text: text.strip() == text
)


@given(st.lists(st.tuples(cell, cell, cell), min_size=1))
def test_what_the_csv_module_writes_comes_back(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("csv") / "rows.csv"
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([("one", "two", "three"), *rows])
    file.write_text(buffer.getvalue(), encoding="utf-8", newline="")
    assert values(str(file), columns=("three", "1")) == [(row[2], row[0]) for row in rows]


@given(st.lists(st.tuples(cell, cell), min_size=1))
def test_what_the_json_module_writes_comes_back(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("json") / "rows.jsonl"
    file.write_text("".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in rows))
    assert values(str(file)) == rows


def test_a_quoted_field_may_go_over_several_lines_and_rows_are_where_they_begin(tmp_path):
    file = write(tmp_path, "p.csv", 'source,target\n"one\n\nthree",x\n"say ""hi""",y\n')
    assert [(row.values, row.line) for row in read(file)] == [(("one\n\nthree", "x"), 2), (('say "hi"', "y"), 5)]


# --- columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "separator"), [("p.csv", ","), ("p.tsv", "\t")])
def test_columns_are_found_by_name_or_number(tmp_path, name, separator):
    content = "\n".join(separator.join(row) for row in [("id", "text", "label"), ("7", "good", "yes")])
    file = write(tmp_path, name, content)
    assert values(file, columns=("text", "label")) == [("good", "yes")]
    assert values(file, columns=("label", "1")) == [("yes", "7")]


@pytest.mark.parametrize(("name", "separator"), [("p.csv", ","), ("p.tsv", "\t")])
def test_with_numbers_alone_there_is_no_header(tmp_path, name, separator):
    file = write(tmp_path, name, f"a{separator}b\nc{separator}d\n")
    assert values(file, columns=("2", "1")) == [("b", "a"), ("d", "c")]


def test_a_column_that_is_not_there_is_refused_with_those_that_are_and_the_nearest(tmp_path):
    file = write(tmp_path, "p.csv", "Text,label\na,b\n")
    sentence = refusal(file, columns=("text", "label"))
    assert sentence.startswith(f"{file}, line 1: ")
    assert "no column 'text'" in sentence and "'Text', 'label'" in sentence and "did you mean 'Text'?" in sentence


@pytest.mark.parametrize("number", ["0", "3", "9" * 5000, "-1"])
def test_a_number_beyond_the_columns_is_refused(tmp_path, number):
    assert "no column" in refusal(write(tmp_path, "p.csv", "a,b\nc,d\n"), columns=("1", number))


def test_column_faults_hold_for_skipping_too(tmp_path):
    for content, found in [("a,a\n1,2\n", "more than once"), ("a,b\n1,2\n", "no column")]:
        assert found in refusal(write(tmp_path, "p.csv", content), columns=("a", "c"), skip=True)


def test_columns_that_share_a_name_are_refused_only_where_that_name_is_asked_for(tmp_path):
    file = write(tmp_path, "p.tsv", "x\tsource\ttarget\tx\n1\t2\t3\t4\n")
    sentence = refusal(file, columns=("x", "target"))
    assert "'x' more than once: the numbers 1, 4 tell them apart" in sentence and "line 1" in sentence
    assert [row.values for row in read(file)] == [("2", "3")]
    assert [row.values for row in read(file, columns=("4", "target"))] == [("4", "3")]


@pytest.mark.parametrize(
    ("begin", "way"),
    [
        ("source,target\na,b\n".encode("utf-16"), "data.encoding=utf-16"),
        ("source,target\na,b\n".encode("utf-16-be").join([b"\xfe\xff", b""]), "data.encoding=utf-16"),
        (b"PK\x03\x04\r\n\0", "data.format=xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "save it as .xlsx or .csv"),
        (b"PAR1\x15\x04", "data.format=parquet"),
    ],
)
def test_a_file_that_is_not_what_its_ending_says_is_refused_with_what_reads_it(tmp_path, begin, way):
    assert way in refusal(write(tmp_path, "p.csv", begin))


def test_an_array_of_objects_is_refused_with_what_makes_lines_of_it(tmp_path):
    for name, content in (("p.json", "[]"), ("p.jsonl", '[\n {"source": "a"'), ("p.jsonl", '[{"source": "a"}]')):
        assert "orient='records', lines=True" in refusal(write(tmp_path, name, content))


def test_text_files_have_two_columns(tmp_path):
    file = write(tmp_path, "p.txt", "a\tb\n")
    assert values(file, columns=("2", "1")) == [("b", "a")]
    assert "'source', 'target'" in refusal(file, columns=("text", "label"))


# --- faults of whole files: always raised ------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["error", "skip"])
def skip(request) -> bool:
    return request.param


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path, skip):
    write(tmp_path, "train.csv", "x")
    file = str(tmp_path / "trian.csv")
    assert refusal(file, skip=skip) == f"{file}: there is no such file; the nearest name there is train.csv"


def test_a_missing_folder_is_named(tmp_path, skip):
    assert f"no folder {tmp_path / 'nowhere'}" in refusal(str(tmp_path / "nowhere" / "a.csv"), skip=skip)


def test_a_folder_is_no_file(tmp_path, skip):
    (tmp_path / "data.csv").mkdir()
    assert "this is a folder" in refusal(str(tmp_path / "data.csv"), skip=skip)


def test_a_pipe_is_no_file(tmp_path, skip):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a plain file" in refusal(str(tmp_path / "pipe.csv"), skip=skip)


@pytest.mark.parametrize("name", [*CONTENTS, *(f"{name}.gz" for name in CONTENTS)])
@pytest.mark.parametrize("content", ["", "\n", "\ufeff", " \n\n"])
def test_an_empty_file_is_refused(tmp_path, name, content, skip):
    assert "the file is empty" in refusal(write(tmp_path, name, content), skip=skip)


def test_a_file_of_no_bytes_at_all_is_empty_though_it_is_called_gz(tmp_path, skip):
    (tmp_path / "p.csv.gz").write_bytes(b"")
    assert "the file is empty" in refusal(str(tmp_path / "p.csv.gz"), skip=skip)


def test_two_empty_parallel_files_are_refused(tmp_path, skip):
    assert "the file is empty" in refusal(write(tmp_path, "a", ""), write(tmp_path, "b", ""), skip=skip)


@pytest.mark.parametrize(("name", "header"), [("p.csv", "source,target\n"), ("p.tsv", "source\ttarget")])
def test_a_header_alone_is_refused(tmp_path, name, header, skip):
    assert "a header, but no rows" in refusal(write(tmp_path, name, header), skip=skip)


def test_parallel_files_of_unequal_length_are_refused_with_both_counts(tmp_path, skip):
    longer, shorter = write(tmp_path, "t.de", "a\n" * 5), write(tmp_path, "t.en", "b\n" * 3)
    assert "5 lines" in (sentence := refusal(longer, shorter, skip=skip)) and f"{shorter} has 3" in sentence
    assert "3 lines" in (sentence := refusal(shorter, longer, skip=skip)) and f"{longer} has 5" in sentence


@pytest.mark.parametrize("name", CONTENTS)
def test_a_truncated_gzip_file_is_refused(tmp_path, name, skip):
    noise = "".join(f"{n * 7919 % 10007}\n" for n in range(20_000))  # does not pack into one block
    whole = gzip.compress((CONTENTS[name] + noise).encode())
    path = tmp_path / f"{name}.gz"
    for kept in (len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        if skip:
            assert "ends too early" in refusal(str(path), skip=True)
        else:  # rows that are no pairs come before the end does
            refusal(str(path))


def test_a_damaged_gzip_file_is_refused(tmp_path, skip):
    whole = bytearray(gzip.compress(CONTENTS["p.csv"].encode() * 100))
    whole[-6] ^= 0xFF  # in the checksum
    (tmp_path / "p.csv.gz").write_bytes(whole)
    assert "cannot be unpacked" in refusal(str(tmp_path / "p.csv.gz"), columns=("1", "2"), skip=skip)


def test_a_file_that_is_gzip_by_its_name_only_is_refused(tmp_path, skip):
    (tmp_path / "p.csv.gz").write_text(CONTENTS["p.csv"])
    assert "not compressed" in refusal(str(tmp_path / "p.csv.gz"), skip=skip)


def test_a_file_that_is_gzip_by_its_content_only_is_refused(tmp_path, skip):
    (tmp_path / "p.csv").write_bytes(gzip.compress(b"source,target\na,b\n"))
    assert "does not end in .gz" in refusal(str(tmp_path / "p.csv"), skip=skip)


def test_an_encoding_that_does_not_exist_is_refused(tmp_path, skip):
    assert "'utf-9'" in refusal(write(tmp_path, "p.csv", CONTENTS["p.csv"]), encoding="utf-9", skip=skip)


def test_a_header_that_cannot_be_read_is_refused(tmp_path, skip):
    assert "line 1: byte 0xff" in refusal(write(tmp_path, "p.csv", b"source,target\xff\na,b\n"), skip=skip)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_no_file_stays_open_whatever_happens(tmp_path, ending):
    """Warnings are errors here, and an open file that is forgotten warns."""
    files = [write(tmp_path, f"{n}.txt{ending}", "a\tb\nbroken\n") for n in range(2)]
    refusal(files[0])
    next(read_rows(files[:1], Reading(), SkippedRows()))
    next(read_rows(files, Reading(), SkippedRows()))


# --- faults of single rows: raised or counted --------------------------------------------------------------------

TABLE = {"p.csv": ",", "p.tsv": "\t"}
LONG = "x" * 10_000_000

# name of the file, content with a fault in the second row, reason it is counted under, words of the sentence
ROW_FAULTS = {
    "csv ragged": ("p.csv", "source,target\na,b\nc\nd,e\n", "wrong number of fields", "1 field, but 2"),
    "csv too many": ("p.csv", "source,target\na,b\nc,d,e\nd,e\n", "wrong number of fields", "3 fields, but 2"),
    "tsv ragged": ("p.tsv", "source\ttarget\na\tb\nc\nd\te\n", "wrong number of fields", "1 field, but 2"),
    "csv bad byte": ("p.csv", b"source,target\na,b\nc,\xe4\nd,e\n", "not utf-8", "byte 0xe4 is not utf-8"),
    "tsv bad byte": ("p.tsv", b"source\ttarget\na\tb\n\xff\tc\nd\te\n", "not utf-8", "byte 0xff"),
    "txt bad byte": ("p.txt", b"a\tb\n\xc3(\tc\nd\te\n", "not utf-8", "byte 0xc3"),
    "jsonl bad byte": (
        "p.jsonl",
        b'{"source": "a", "target": "b"}\n{"source": "\x80", "target": "b"}\n{"source": "d", "target": "e"}\n',
        "not utf-8",
        "byte 0x80",
    ),
    "csv NUL": ("p.csv", "source,target\na,b\nc\0,d\nd,e\n", "NUL byte", "NUL byte"),
    "tsv NUL": ("p.tsv", "source\ttarget\na\tb\nc\0\td\nd\te\n", "NUL byte", "NUL byte"),
    "txt NUL": ("p.txt", "a\tb\nc\0\td\nd\te\n", "NUL byte", "NUL byte"),
    "csv empty source": ("p.csv", "source,target\na,b\n ,c\nd,e\n", "empty 'source'", "'source' is empty"),
    "tsv empty target": ("p.tsv", "source\ttarget\na\tb\nc\t\nd\te\n", "empty 'target'", "'target' is empty"),
    "tsv both empty": ("p.tsv", "source\ttarget\na\tb\n\t\nd\te\n", "empty 'source'", "'source' is empty"),
    "txt empty target": ("p.txt", "a\tb\nc\t \nd\te\n", "empty 'target'", "'target' is empty"),
    "txt no separator": ("p.txt", "a\tb\nc d\nd\te\n", "no separator", "separator '\\t' does not occur"),
    "csv quote misplaced": (
        "p.csv",
        'source,target\na,b\n"c" x,d\nd,e\n',
        "misplaced quote",
        "after its closing quote",
    ),
    "csv quote unclosed": ("p.csv", 'source,target\na,b\n"c,d\nd,e\n', "unclosed quote", "never closed"),
    "csv carriage return": ("p.csv", "source,target\na,b\nc\rx,d\nd,e\n", "carriage return", "carriage return"),
}
GOOD_JSON = '{"source": "a", "target": "b"}', '{"source": "d", "target": "e"}'
for title, (line, reason, words) in {
    "not JSON": ("{'source': 1}", "not JSON", "not JSON"),
    "cut off": ('{"source": "a", "tar', "not JSON", "not JSON"),
    "no object": ('["a", "b"]', "not an object", "not an object"),
    "nested too deep": ("[" * 100_000, "not JSON", "too deep"),
    "missing key": ('{"source": "a", "Target": "b"}', "no 'target'", "did you mean 'Target'?"),
    "null": ('{"source": null, "target": "b"}', "'source' is null", "a text was expected"),
    "array": ('{"source": "a", "target": ["b"]}', "'target' is an array", "a text was expected"),
    "object": ('{"source": "a", "target": {}}', "'target' is an object", "a text was expected"),
    "empty": ('{"source": "a", "target": " "}', "empty 'target'", "'target' is empty"),
    "half a pair": ('{"source": "\\ud800", "target": "b"}', "'source' is not text", "surrogate"),
    "escaped NUL": ('{"source": "\\u0000", "target": "b"}', "'source' is not text", "NUL"),
    "NUL": ('{"source": "\0", "target": "b"}', "NUL byte", "NUL byte"),
}.items():
    ROW_FAULTS[f"jsonl {title}"] = ("p.jsonl", f"{GOOD_JSON[0]}\n{line}\n{GOOD_JSON[1]}\n", reason, words)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("title", ROW_FAULTS)
def test_a_bad_row_is_raised_with_its_place_or_skipped_and_counted(tmp_path, title, ending):
    name, content, reason, words = ROW_FAULTS[title]
    file = write(tmp_path, name + ending, content)
    place = f"{file}, line {3 if name in TABLE else 2}"
    sentence = refusal(file)
    assert sentence.startswith(f"{place}: ") and words in sentence and len(sentence) < 300 + len(file)
    assert skips(file) == ([("a", "b"), ("d", "e")], {reason: 1}, {reason: place})


def test_a_bad_row_of_parallel_files_is_skipped_on_both_sides(tmp_path):
    source = write(tmp_path, "t.a", "1\n2\n\n4\n")
    target = write(tmp_path, "t.b", b"one\n\xff\nthree\nfour\n")
    assert refusal(source, target).startswith(f"{target}, line 2: byte 0xff")
    rows, counts, first = skips(source, target)
    assert rows == [("1", "one"), ("4", "four")]
    assert counts == {"not utf-8": 1, "empty source": 1}
    assert first == {"not utf-8": f"{target}, line 2", "empty source": f"{source}, line 3"}


def test_a_bad_byte_of_a_wide_encoding_spoils_its_line_only(tmp_path):
    raw = "a\tb\nc\tX\nd\te\n".encode("utf-16-le").replace("X".encode("utf-16-le"), b"\x00\xd8")
    assert skips(write(tmp_path, "p.txt", raw), encoding="utf-16-le")[:2] == (
        [("a", "b"), ("d", "e")],
        {"not utf-16-le": 1},
    )


def test_skipping_counts_by_reason_and_remembers_the_first_place(tmp_path):
    file = write(tmp_path, "p.txt", "a\tb\nbroken\n\tc\nbroken\n\td\nbroken\n")
    rows, counts, first = skips(file)
    assert rows == [("a", "b")]
    assert counts == {"no separator": 3, "empty 'source'": 2}
    assert first == {"no separator": f"{file}, line 2", "empty 'source'": f"{file}, line 3"}


def test_if_every_row_is_skipped_that_is_said(tmp_path):
    file = write(tmp_path, "p.txt", "broken\nbroken\n\tc\n")
    sentence = refusal(file, skip=True)
    assert "all 3 rows were skipped" in sentence and "no separator" in sentence and "line 1" in sentence


def test_an_unclosed_quote_costs_its_own_row_only(tmp_path):
    content = 'source,target\na,b\n"c,d\n' + "".join(f"{n},x\n" for n in range(100)) + 'e,"f"\n'
    rows, counts, first = skips(write(tmp_path, "p.csv", content))
    assert rows == [("a", "b"), *((str(n), "x") for n in range(100)), ("e", "f")]
    assert list(counts.values()) == [1]


def test_numbers_and_truth_values_of_json_become_text_as_they_are_written(tmp_path):
    digits = "7" * 5000
    lines_ = [f'{{"source": {value}, "target": "x"}}' for value in ("1.50", "-3", "1e9", digits, "true", "false")]
    found = [source for source, _ in values(write(tmp_path, "p.jsonl", "\n".join(lines_)))]
    assert found == ["1.50", "-3", "1e9", digits, "true", "false"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", f"source,target\n{LONG},b\nc,d\n"),
        ("p.csv", f'source,target\n"{LONG}",b\nc,d\n'),
        ("p.tsv", f"source\ttarget\n{LONG}\tb\nc\td\n"),
        ("p.txt", f"{LONG}\tb\nc\td\n"),
        ("p.jsonl", f'{{"source": "{LONG}", "target": "b"}}\n{{"source": "c", "target": "d"}}\n'),
    ],
    ids=["csv", "csv quoted", "tsv", "txt", "jsonl"],
)
def test_a_line_of_ten_million_characters_is_read(tmp_path, name, content):
    assert values(write(tmp_path, name, content)) == [(LONG, "b"), ("c", "d")]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_line_without_end_is_a_bad_row(tmp_path, monkeypatch, name):
    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    rows = CONTENTS[name].splitlines()
    file = write(tmp_path, name, "\n".join([rows[0], *rows[1:-1], "y" * 5000, rows[-1]]))
    number = len(rows)
    assert refusal(file).startswith(f"{file}, line {number}: the line is longer than 1,000")
    assert skips(file) == (PAIRS, {"line too long": 1}, {"line too long": f"{file}, line {number}"})


def test_a_home_folder_may_be_abbreviated(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, "p.csv", CONTENTS["p.csv"])
    assert values("~/p.csv") == PAIRS


def test_real_dictionary_lines_are_read_with_two_blanks(shared_data):
    file = shared_data / "cmudict" / "cmudict-0.7b.dev.txt.gz"
    rows = values(str(file), separator="  ")
    with gzip.open(file, "rt") as lines_:
        assert rows == [tuple(line.rstrip("\n").split("  ", 1)) for line in lines_]
