"""Drawn splits: a pure function, every row once, every label in its share."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.splits import draw_parts, shuffle
from seqloom.errors import DataError

SHARES = {"validation": 0.1, "test": 0.2}
shares = st.fixed_dictionaries({"validation": st.floats(0, 0.45), "test": st.floats(0, 0.45)})


@given(st.integers(3, 500), shares, st.integers(0, 2**32 - 1))
def test_every_row_is_in_exactly_one_part_and_no_part_with_a_share_is_empty(rows, shares, seed):
    parts = draw_parts(rows, shares, seed)
    assert list(parts) == ["train", *shares]
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(rows))
    for part, share in shares.items():
        assert abs(len(parts[part]) - rows * share) <= 1 and (len(parts[part]) > 0) == (share > 0)
    assert len(parts["train"])
    assert all((np.diff(found) > 0).all() for found in parts.values())


@given(st.lists(st.sampled_from("aaaaabbc"), min_size=3, max_size=300), st.integers(0, 1000))
def test_every_part_has_every_label_in_its_share(labels, seed):
    parts = draw_parts(labels, SHARES, seed)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(len(labels)))
    for found in parts.values():
        counts = Counter(labels[row] for row in found)
        for label, count in Counter(labels).items():
            # The second part is drawn from what the first has left: within one of that, so within two of its share.
            assert abs(counts[label] - count * len(found) / len(labels)) < 2


@pytest.mark.parametrize("seed", range(5))
def test_many_rows_have_every_label_in_its_share_too(seed):
    labels = ["rare"] * 10 + ["some"] * 290 + ["many"] * 700
    parts = draw_parts(labels, SHARES, seed)
    for part, share in SHARES.items():
        counts = Counter(labels[row] for row in parts[part])
        assert all(abs(counts[label] - count * share) < 2 for label, count in Counter(labels).items())


def test_the_split_is_a_pure_function_of_its_arguments():
    labels = [row % 7 for row in range(1000)]
    for rows in (1000, labels):
        one, again = draw_parts(rows, SHARES, 5), draw_parts(rows, SHARES, 5)
        assert all((one[part] == again[part]).all() for part in one)
        assert (one["test"] != draw_parts(rows, SHARES, 6)["test"]).any()


def test_rows_are_drawn_fairly():
    """Over many seeds each row is in the test part as often as its share says."""
    seeds = 400
    hits = np.zeros(50)
    for seed in range(seeds):
        hits[draw_parts(50, SHARES, seed)["test"]] += 1
    assert (abs(hits / seeds - 0.2) < 5 * (0.2 * 0.8 / seeds) ** 0.5).all()


@pytest.mark.parametrize("rows", [0, 1, 2, ["a", "b"]])
def test_too_few_rows_are_refused(rows):
    with pytest.raises(DataError, match="too few to draw the parts train, validation, test"):
        draw_parts(rows, SHARES, 0)


@pytest.mark.parametrize(("rows", "share"), [(3, 0.45), (4, 0.45), (4, 0.4), (10, 0.47)])
def test_rounding_leaves_something_to_train_on(rows, share):
    parts = draw_parts(rows, {"validation": share, "test": share}, 0)
    assert all(len(found) for found in parts.values())


def test_nothing_is_drawn_for_no_share():
    parts = draw_parts(5, {"validation": 0.0, "test": 0.0}, 0)
    assert parts["train"].tolist() == list(range(5)) and not len(parts["validation"]) and not len(parts["test"])
    assert draw_parts(1, {}, 0)["train"].tolist() == [0]


@given(st.integers(0, 200), st.lists(st.integers(0, 2**40), min_size=1, max_size=3))
def test_a_shuffle_is_a_permutation_that_depends_on_its_seeds_alone(rows, seeds):
    found = shuffle(rows, *seeds)
    assert sorted(found.tolist()) == list(range(rows))
    assert (found == shuffle(rows, *seeds)).all()
    if rows > 20:
        assert (found != shuffle(rows, *seeds, 1)).any()
