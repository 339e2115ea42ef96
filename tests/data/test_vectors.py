"""Word vectors from text files: only the words asked for, and every line of one width."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats.vectors import read_vectors
from seqloom.errors import DataError

GLOVE = "the 0.1 -0.2 3\n. . . 1 2 3\nkatze 4 5e-1 6\nthe 9 9 9\n"


def write(folder: Path, content: str | bytes, name: str = "v.txt") -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(folder / name)


@pytest.mark.parametrize("name", ["v.txt", "v.vec.gz"])
@pytest.mark.parametrize("header", ["", "4 3\n"])
@pytest.mark.parametrize("ending", ["\n", " \n", "\r\n"])
def test_vectors_stand_in_the_order_of_the_words(tmp_path, name, header, ending):
    file = write(tmp_path, (header + GLOVE).replace("\n", ending), name)
    vectors = read_vectors(file, ["<pad>", "katze", "the", ". . ."])
    np.testing.assert_allclose(vectors.values, [[0, 0, 0], [4, 0.5, 6], [0.1, -0.2, 3], [1, 2, 3]])
    assert vectors.covered.tolist() == [False, True, True, True] and vectors.share == 0.75 and vectors.lines == 4


def test_words_that_are_not_asked_for_are_not_parsed_and_may_hold_bad_bytes(tmp_path):
    vectors = read_vectors(write(tmp_path, b"a 1 2\n\xff\xfe 3 4\n7 5 6\n"), ["7"])
    assert vectors.values.tolist() == [[5, 6]]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "the file has no words"),
        ("3 2\n", "the file has no words"),
        ("word\n", "line 1: a word and its numbers"),
        ("a 1 2\nb 1\n", "line 2: the word has 1 number, but 2 were expected"),
        ("a 1 2\nb 1 2 3\n", "line 2: the word has 3 numbers, but 2 were expected"),
        ("2 3\na 1 2\nb 1 2\n", "line 2: the word has 2 numbers, but 3 were expected"),
        ("2 2\na 1 2\n", "promises 2 words, but the file has 1"),
        ("b 1 2\na 1 x2\n", "line 2: the vector of 'a' holds 'x2'"),
        ("b 1 2\na 1 nan\n", "line 2: the vector of 'a' holds 'nan'"),
        ("b 1 2\na 1 1e99\n", "line 2: the vector of 'a' holds '1e99'"),
    ],
)
def test_refusals_name_the_line(tmp_path, content, part):
    with pytest.raises(DataError) as caught:
        read_vectors(write(tmp_path, content), ["a"])
    assert part in str(caught.value)


@given(
    st.dictionaries(
        st.text("abcdé", min_size=1, max_size=4),
        st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3),
        min_size=1,
    ),
    st.sets(st.text("abcdé", min_size=1, max_size=4)),
)
def test_what_is_written_is_read(tmp_path_factory, table, others):
    lines = [" ".join([word, *map(repr, numbers)]) for word, numbers in table.items()]
    words = sorted({*table, *others})
    vectors = read_vectors(write(tmp_path_factory.mktemp("v"), "\n".join(lines)), words)
    expected = np.array([table.get(word, [0, 0, 0]) for word in words], np.float32)
    np.testing.assert_array_equal(vectors.values, expected)
    assert vectors.covered.tolist() == [word in table for word in words]


@given(st.binary(max_size=80) | st.text("a1. \n-e", max_size=60).map(str.encode))
def test_any_bytes_are_vectors_or_a_sentence(tmp_path_factory, raw):
    file = write(tmp_path_factory.mktemp("v"), raw)
    try:
        assert np.isfinite(read_vectors(file, ["a", "aa"]).values).all()
    except DataError as error:
        assert str(error).startswith(file)
