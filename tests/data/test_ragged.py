"""Flat arrays of rows, against plain lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.ragged import Ragged, Texts, split_rows
from seqloom.data.vocabulary import PAD

rows_of_ids = st.lists(st.lists(st.integers(1, 60_000), max_size=6), max_size=8)


def chosen(data, count: int) -> list[int]:
    return data.draw(st.lists(st.integers(0, count - 1))) if count else []


@given(rows_of_ids)
def test_rows_come_back(rows):
    ragged = Ragged.of(rows)
    assert len(ragged) == len(rows)
    assert [row.tolist() for row in ragged] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]


def test_rows_are_counted_from_the_end_too_and_end():
    ragged, texts = Ragged.of([[1], [2, 3]]), Texts.of(["a", "b"])
    assert ragged[-1].tolist() == [2, 3] and texts[-2] == "a"
    for row in (2, -3):
        with pytest.raises(IndexError):
            ragged[row]
        with pytest.raises(IndexError):
            texts[row]


@given(rows_of_ids, st.sampled_from([np.uint16, np.int32, np.int64]), st.data())
def test_padded_rows_are_rows_filled_up_on_the_right(rows, dtype, data):
    ragged = Ragged.of(rows)
    ragged = Ragged(ragged.values.astype(dtype), ragged.offsets)
    picked = chosen(data, len(rows))
    table, lengths = ragged.pad(np.array(picked, dtype=np.int64))
    width = max((len(rows[row]) for row in picked), default=0)
    assert table.dtype == np.int64 and table.shape == (len(picked), width)
    assert table.tolist() == [rows[row] + [PAD] * (width - len(rows[row])) for row in picked]
    assert lengths.tolist() == [len(rows[row]) for row in picked]


@given(rows_of_ids, st.data())
def test_taken_rows_are_those_rows(rows, data):
    picked = chosen(data, len(rows))
    assert [row.tolist() for row in Ragged.of(rows).take(picked)] == [rows[row] for row in picked]


@given(rows_of_ids, st.integers(0, 7))
def test_cut_rows_are_their_beginnings(rows, longest):
    assert [row.tolist() for row in Ragged.of(rows).cut(longest)] == [row[:longest] for row in rows]


def test_narrow_rows_come_out_wide_enough_to_count_with():
    assert Ragged(np.array([65_535], dtype=np.uint16), np.array([0, 1]))[0].dtype == np.int32


@given(st.lists(st.text()), st.data())
def test_texts_come_back(rows, data):
    texts = Texts.of(rows)
    assert len(texts) == len(rows)
    assert list(texts) == texts.to_list() == [texts[row] for row in range(len(texts))] == rows
    assert texts.lengths.tolist() == [len(row.encode()) for row in rows]
    picked = chosen(data, len(rows))
    assert texts.take(picked).to_list() == [rows[row] for row in picked]


@given(st.lists(st.integers(0, 500), max_size=50), st.integers(1, 1000))
def test_spans_cover_all_rows_in_order_and_are_small(sizes, limit):
    pieces = list(split_rows(np.array(sizes, dtype=np.int64), limit))
    assert np.concatenate([np.empty(0, int), *pieces]).tolist() == list(range(len(sizes)))
    for piece in pieces:
        assert len(piece)
        but_the_longest = sum(sizes[row] + 64 for row in piece) - max(sizes[row] + 64 for row in piece)
        assert but_the_longest <= limit
