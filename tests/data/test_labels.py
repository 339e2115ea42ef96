"""Targets that are no sequences: names to numbers and back, and what a hostile file may say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.codecs import read_codec
from seqloom.data.labels import NONE, Labels, LabelSets, Rating, names_in, number_in, written
from seqloom.errors import DataError, RunError

names = st.text("abc é", min_size=1, max_size=4).map(str.strip).filter(lambda name: name and name != "-")


@given(st.lists(names, min_size=1, max_size=30))
def test_labels_are_numbered_by_frequency_and_read_back(texts):
    codec = Labels.learn(iter(texts))
    again = read_codec(codec.to_json())
    counts = [texts.count(name) for name in codec.names]
    assert counts == sorted(counts, reverse=True) and set(codec.names) == set(texts)
    ids = again.encode_many(texts)
    assert [again.names[row[0]] for row in ids] == texts
    assert codec.balance(np.bincount(ids.values)) == {name: texts.count(name) for name in codec.names}


def test_a_label_never_seen_is_no_other_label():
    assert Labels(["a", "b"]).encode_many(["c", "b"]).values.tolist() == [NONE, 1]
    assert LabelSets(["a", "b"]).encode_many(["b, c"])[0].tolist() == [1, NONE]


@given(st.lists(st.lists(names, max_size=4), min_size=1, max_size=10))
def test_several_labels_are_a_set_whatever_their_order(sets):
    texts = [" , ".join(labels) or "-" for labels in sets]
    codec = read_codec(LabelSets.learn(iter([*texts, "a"])).to_json())
    for labels, text, row in zip(sets, texts, codec.encode_many(texts), strict=True):
        assert sorted(codec.names[number] for number in row) == sorted(set(labels)) == names_in(codec.normalize(text))
        assert codec.normalize(text) == written(sorted(set(labels)))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_numbers_keep_their_value_and_the_scale_of_training(numbers):
    codec = read_codec(Rating.learn(map(str, numbers)).to_json())
    assert codec.mean == pytest.approx(np.mean(numbers), abs=1e-6) and codec.spread > 0
    assert codec.encode_many([str(number) for number in numbers]).values == pytest.approx(numbers, rel=1e-6)


def test_a_decimal_comma_is_understood_and_nonsense_is_not():
    assert number_in("3,5") == number_in("3.5") == 3.5
    for text in ("good", "1,000.5", "nan", "inf", ""):
        with pytest.raises(DataError, match="is no number"):
            number_in(text)


@pytest.mark.parametrize(
    "found",
    [
        {"kind": "label"},
        {"kind": "label", "names": []},
        {"kind": "labels", "names": ["a", "a"]},
        {"kind": "label", "names": [1]},
        {"kind": "number", "mean": 0.0, "spread": 0.0},
        {"kind": "number", "mean": float("nan"), "spread": 1.0},
        {"kind": ["label"]},
        None,
    ],
)
def test_a_damaged_file_is_refused(found):
    with pytest.raises(RunError):
        read_codec(found)
