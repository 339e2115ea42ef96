"""In which pieces texts are read: every place once, whatever the order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data import streams
from seqloom.data.ragged import Ragged
from seqloom.data.streams import Stream
from seqloom.data.vocabulary import END, START

lengths = st.lists(st.integers(1, 30), min_size=1, max_size=8)


def documents(lengths):
    numbers = np.arange(4, 4 + sum(lengths))
    return Ragged.of(np.split(numbers, np.cumsum(lengths)[:-1]))


def covered(spans, total):
    """How often each place is in one of the spans."""
    counts = np.zeros(total, dtype=int)
    for start, stop, _ in np.concatenate(spans):
        np.add.at(counts, np.arange(start, stop) % total, 1)
    return counts


@given(lengths)
def test_a_stream_is_each_document_behind_its_start_and_before_its_end(lengths):
    texts = documents(lengths)
    stream = Stream(texts)
    places = np.arange(len(stream))
    assert stream.inputs(places).tolist() == [token for text in texts for token in [START, *text]]
    assert stream.targets(places).tolist() == [token for text in texts for token in [*text, END]]


@given(lengths, st.integers(1, 6), st.integers(1, 9), st.integers(0, 3))
def test_every_order_of_an_epoch_covers_every_place_once(lengths, rows, window, epoch):
    stream = Stream(documents(lengths))
    orders = [
        streams.plan_streams(len(stream), rows, window, 0, epoch),
        streams.plan_windows(stream.begins, rows * window, window, 0, epoch),
        streams.plan_documents(stream.begins, rows * window, window, 0, epoch),
    ]
    assert max(np.concatenate(orders[1])[:, 1] - np.concatenate(orders[1])[:, 0]) <= window
    for order in orders:
        assert (covered(order, len(stream)) == 1).all()


@given(lengths, st.integers(1, 9))
def test_every_place_is_scored_once_and_with_enough_before_it(lengths, window):
    stream = Stream(documents(lengths))
    for plan in (
        streams.plan_all_windows(stream.begins, window),
        streams.plan_all_streams(len(stream)),
        streams.plan_all_documents(stream.begins),
    ):
        assert (covered([np.stack([plan[:, 1], plan[:, 2], plan[:, 2]], 1)], len(stream)) == 1).all()
        assert (plan[:, 0] <= plan[:, 1]).all() and (plan[:, 1] < plan[:, 2]).all()
    reads, counts, stops = streams.plan_all_windows(stream.begins, window).T
    assert (stops - reads <= window).all()
    begins = stream.begins[np.searchsorted(stream.begins, counts, side="right") - 1]
    assert ((counts == begins) | (counts - reads >= min(window // 2, window - 1))).all()


def test_streams_go_on_where_they_were_and_only_the_first_window_is_fresh():
    order = streams.plan_streams(100, 4, 10, 0, 0)
    assert [rows[0, 2] for rows in order] == [0, 1, 1]
    for before, after in zip(order, order[1:], strict=False):
        assert (before[:, 1] == after[:, 0]).all()


@pytest.mark.parametrize(
    "plan",
    [
        lambda seed, epoch: streams.plan_streams(997, 4, 10, seed, epoch),
        lambda seed, epoch: streams.plan_windows(np.array([0, 997]), 40, 10, seed, epoch),
    ],
)
def test_an_order_depends_on_seed_and_epoch_alone(plan):
    same, again, other, later = plan(0, 0), plan(0, 0), plan(1, 0), plan(0, 1)
    assert all((one == two).all() for one, two in zip(same, again, strict=True))
    for different in (other, later):
        assert any(one.shape != two.shape or (one != two).any() for one, two in zip(same, different, strict=False))


def test_rows_of_unequal_length_are_padded_on_the_right():
    stream = Stream(documents([5, 2]))
    inputs, targets, mask = stream.read(np.array([[0, 6, 0], [6, 9, 0]]))
    assert inputs.tolist() == [[START, 4, 5, 6, 7, 8], [START, 9, 10, 0, 0, 0]]
    assert targets.tolist() == [[4, 5, 6, 7, 8, END], [9, 10, END, 0, 0, 0]]
    assert mask.sum(1).tolist() == [6, 3]


def test_a_long_text_is_shuffled_in_stretches_without_a_list_and_every_place_comes_once(monkeypatch):
    monkeypatch.setattr(streams, "BUFFER", 16)
    begins = np.array([0, 1003])
    order = streams.plan_windows(begins, 40, 10, seed=3, epoch=1)
    again = streams.plan_windows(begins, 40, 10, seed=3, epoch=1)
    other = streams.plan_windows(begins, 40, 10, seed=3, epoch=2)
    places = np.concatenate([np.arange(*span[:2]) for batch in order for span in batch])
    assert sorted(places.tolist()) == list(range(1003)) and places.tolist() != list(range(1003))
    assert all((ours == theirs).all() for ours, theirs in zip(order, again, strict=True))
    assert [batch.tolist() for batch in other] != [batch.tolist() for batch in order]
    assert all(len(batch) <= 4 and (batch[:, 1] - batch[:, 0] <= 10).all() for batch in order)
    for batch in order:  # what is shuffled together lies together
        assert np.ptp(batch[:, 0]) <= 16 * 10


def test_batches_that_are_made_on_demand_are_a_sequence():
    made = streams.plan_streams(103, 3, 10, seed=0, epoch=0)
    listed = list(made)
    assert len(made) == len(listed) == 4 and (made[-1] == listed[-1]).all() and len(made[1:3]) == 2
    with pytest.raises(IndexError):
        made[4]
