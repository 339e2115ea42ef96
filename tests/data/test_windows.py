"""Windows, parts and time features of a series, against loops and the calendar."""

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.windows import (
    compute_time_features,
    count_since_observed,
    find_windows,
    split_by_counts,
    split_by_shares,
)
from seqloom.errors import DataError

small = st.integers(1, 12)


@given(length=st.integers(0, 60), context=small, horizon=small, stride=small)
def test_windows_are_all_that_fit(length, context, horizon, stride):
    expected = [start for start in range(0, length, stride) if start + context + horizon <= length]
    assert find_windows(slice(0, length), context, horizon, stride).tolist() == expected


@given(start=st.integers(0, 40), size=st.integers(0, 40), context=small, horizon=small)
def test_windows_of_a_part_have_every_target_in_it_and_none_outside(start, size, context, horizon):
    found = find_windows(slice(start, start + size), context, horizon).tolist()
    for first in found:
        assert first >= 0 and start <= first + context and first + context + horizon <= start + size
    targets = [row for row in range(start, start + size) if row >= context and row + horizon <= start + size]
    assert [first + context for first in found] == targets


def test_the_usual_split_of_the_hourly_transformer_set_gives_its_known_number_of_windows():
    train, validation, test = split_by_counts(17420, [12 * 720, 4 * 720, 4 * 720])
    assert [len(find_windows(part, 336, 96)) for part in (train, validation, test)] == [8640 - 336 - 95, 2785, 2785]


@given(length=st.integers(0, 1000), cuts=st.lists(st.integers(0, 10), min_size=2, max_size=4))
def test_shares_are_parts_in_order_without_gaps(length, cuts):
    shares = [cut / max(sum(cuts), 1) for cut in cuts]
    parts = split_by_shares(length, shares)
    assert parts[0].start == 0 and all(a.stop == b.start for a, b in zip(parts, parts[1:], strict=False))
    assert parts[-1].stop == (length if sum(cuts) else 0)
    assert all(abs(part.stop - part.start - share * length) <= 1 for part, share in zip(parts, shares, strict=True))


def test_parts_larger_than_the_series_are_refused():
    with pytest.raises(DataError, match="parts of 6, 5 rows were asked for, but the series has 10"):
        split_by_counts(10, [6, 5])
    with pytest.raises(DataError, match="at most 1"):
        split_by_shares(10, [0.8, 0.3])


def test_features_agree_with_the_calendar():
    times = np.arange("2019-12-25", "2020-03-05", 7, dtype="datetime64[h]")
    features, names = compute_time_features(times)
    assert names == ("hour sin", "hour cos", "weekday sin", "weekday cos", "day of year sin", "day of year cos")
    for row, moment in zip(features, times.tolist(), strict=True):
        day = moment.hour / 24
        year = (moment - datetime(moment.year, 1, 1)) / (datetime(moment.year + 1, 1, 1) - datetime(moment.year, 1, 1))
        for place, share in enumerate([day, (moment.weekday() + day) / 7, year]):
            turn = 2 * math.pi * share
            np.testing.assert_allclose(row[2 * place : 2 * place + 2], [math.sin(turn), math.cos(turn)], atol=1e-9)


@pytest.mark.parametrize(("step", "count"), [("m", 6), ("D", 4), ("W", 2), ("M", 2), ("Y", 0)])
def test_only_cycles_that_the_spacing_shows_are_there(step, count):
    times = np.arange(np.datetime64("2000", step), np.datetime64("2000", step) + 20)
    features, names = compute_time_features(times)
    assert features.shape == (20, count) and len(names) == count


def test_plain_numbers_have_no_calendar():
    assert compute_time_features(np.arange(5.0))[0].shape == (5, 0)


@given(st.lists(st.lists(st.sampled_from([1.0, math.nan]), min_size=2, max_size=2), min_size=1, max_size=20))
def test_steps_since_observed_count_like_a_loop(rows):
    values = np.array(rows)
    found = count_since_observed(values)
    for column in range(2):
        since = 0
        for row in range(len(rows)):
            since = 0 if not math.isnan(values[row, column]) else since + 1
            assert found[row, column] == since
