"""Targets that are no sequences: names to numbers and back, and what a hostile file may say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.recipe import Data
from seqloom.data.schema import read_field
from seqloom.errors import DataError, RunError
from seqloom.fields.labels import NONE, Label, LabelSet, Number, join_names, parse_number, split_names

FIELDS = {field.kind: field for field in (Label, LabelSet, Number)}
names = st.text("abc é", min_size=1, max_size=4).map(str.strip).filter(lambda name: name and name != "-")


def reread(field):
    return read_field("target", type(field), field.to_json())


@given(st.lists(names, min_size=1, max_size=30))
def test_labels_are_numbered_by_frequency_and_read_back(texts):
    field = Label.fit(iter(texts), Data())
    again = reread(field)
    counts = [texts.count(name) for name in field.names]
    assert counts == sorted(counts, reverse=True) and set(field.names) == set(texts)
    ids = again.encode_many(texts)
    assert [again.names[row[0]] for row in ids] == texts
    assert field.balance(np.bincount(ids.values)) == {name: texts.count(name) for name in field.names}


def test_a_label_never_seen_is_no_other_label():
    assert Label(["a", "b"]).encode_many(["c", "b"]).values.tolist() == [NONE, 1]
    assert LabelSet(["a", "b"]).encode_many(["b, c"])[0].tolist() == [1, NONE]


@given(st.lists(st.lists(names, max_size=4), min_size=1, max_size=10))
def test_several_labels_are_a_set_whatever_their_order(sets):
    texts = [" , ".join(labels) or "-" for labels in sets]
    field = reread(LabelSet.fit(iter([*texts, "a"]), Data()))
    for labels, text, row in zip(sets, texts, field.encode_many(texts), strict=True):
        assert (
            sorted(field.names[number] for number in row) == sorted(set(labels)) == split_names(field.normalize(text))
        )
        assert field.normalize(text) == join_names(sorted(set(labels)))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_numbers_keep_their_value_and_the_scale_of_training(numbers):
    field = reread(Number.fit(map(str, numbers), Data()))
    assert field.mean == pytest.approx(np.mean(numbers), abs=1e-6) and field.spread > 0
    assert field.encode_many([str(number) for number in numbers]).values == pytest.approx(numbers, rel=1e-6)


def test_a_decimal_comma_is_understood_and_nonsense_is_not():
    assert parse_number("3,5") == parse_number("3.5") == 3.5
    for text in ("good", "1,000.5", "nan", "inf", ""):
        with pytest.raises(DataError, match="is not a number"):
            parse_number(text)


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
    kind = found["kind"] if found else "label"
    with pytest.raises(RunError):
        read_field("target", FIELDS["label" if isinstance(kind, list) else kind], found)
