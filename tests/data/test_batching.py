"""The laws of batches, and how much of them is padding on real sentences."""

import gzip
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.batching import batch_in_order, compute_padded_share, plan_epoch, plan_scoring

lengths_of_one_side = st.lists(st.integers(0, 40), max_size=60).map(lambda rows: np.array(rows, dtype=np.int64))
lengths_of_sides = st.integers(1, 3).flatmap(
    lambda sides: st.lists(st.lists(st.integers(0, 40), min_size=sides, max_size=sides), max_size=60).map(
        lambda rows: np.array(rows, dtype=np.int64).reshape(-1, sides)
    )
)
any_lengths = lengths_of_one_side | lengths_of_sides
budgets = st.integers(1, 200)


def padded_size(lengths: np.ndarray, rows: np.ndarray) -> int:
    """Rows times the sum over sides of the longest, written down once more without numpy's help."""
    sides = lengths.reshape(len(lengths), -1)[rows].tolist()
    return len(sides) * sum(max(side) for side in zip(*sides, strict=True))


@given(any_lengths, budgets, st.integers(0, 2**32 - 1), st.integers(0, 1000))
def test_every_example_comes_exactly_once_an_epoch(lengths, budget, seed, epoch):
    for batches in (
        plan_epoch(lengths, budget, seed, epoch),
        plan_scoring(lengths, budget),
        batch_in_order(lengths, budget),
    ):
        assert all(len(rows) for rows in batches)
        found = np.concatenate([np.empty(0, int), *batches]).tolist()
        assert sorted(found) == list(range(len(lengths)))


@given(any_lengths, budgets, st.integers(0, 1000))
def test_no_batch_is_larger_than_the_budget_but_a_single_long_example(lengths, budget, seed):
    for batches in (plan_epoch(lengths, budget, seed, 0), plan_scoring(lengths, budget)):
        for rows in batches:
            assert len(rows) == 1 or padded_size(lengths, rows) <= budget


@given(any_lengths, budgets)
def test_the_padded_share_is_what_it_says(lengths, budget):
    batches = plan_scoring(lengths, budget)
    full = sum(padded_size(lengths, rows) for rows in batches)
    assert compute_padded_share(lengths, batches) == pytest.approx(1 - lengths.sum() / full if full else 0.0)


def realistic(rows: int) -> np.ndarray:
    draw = np.random.default_rng(0)
    source = draw.poisson(14, rows) + 2
    return np.stack([source, np.maximum(1, source + draw.integers(-4, 5, rows))], axis=1)


def test_batches_of_realistic_lengths_keep_to_the_budget():
    lengths = realistic(5000)
    for batches in (plan_epoch(lengths, 300, 0, 0), plan_scoring(lengths, 300)):
        assert max(padded_size(lengths, rows) for rows in batches) <= 300


@given(any_lengths, budgets)
def test_no_batch_has_room_for_the_next_example(lengths, budget):
    batches = plan_scoring(lengths, budget)
    for rows, following in zip(batches, batches[1:], strict=False):
        assert padded_size(lengths, np.append(rows, following[0])) > budget


def test_a_budget_may_be_used_up_to_the_last_token():
    lengths = np.full((40, 2), 5)
    assert [len(rows) for rows in plan_scoring(lengths, 100)] == [10, 10, 10, 10]


def test_turning_at_the_end_of_a_strip_saves_padding():
    """Less padding than with the plain order by first length, then second."""
    lengths = realistic(20_000)
    plain = np.lexsort((lengths[:, 1], lengths[:, 0]))
    cut = [plain[rows] for rows in batches_as_they_come(lengths[plain], 2000)]
    assert compute_padded_share(lengths, plan_scoring(lengths, 2000)) < 0.8 * compute_padded_share(lengths, cut)


def batches_as_they_come(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """One example after the other, a new batch when the next one does not fit."""
    batches: list[list[int]] = [[]]
    for row in range(len(lengths)):
        if batches[-1] and padded_size(lengths, np.array([*batches[-1], row])) > budget:
            batches.append([])
        batches[-1].append(row)
    return [np.array(rows) for rows in batches]


def test_examples_that_are_not_shuffled_come_as_they_stand():
    lengths = realistic(500)
    found = batch_in_order(lengths, 400)
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in batches_as_they_come(lengths, 400)]


def test_the_order_is_a_pure_function_of_its_arguments():
    lengths = realistic(2000)
    one, again = plan_epoch(lengths, 500, 3, 7), plan_epoch(lengths.copy(), 500, 3, 7)
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in again]


def test_another_process_finds_the_same_order():
    program = (
        "import numpy as np; from seqloom.data.batching import plan_epoch; "
        "lengths = np.arange(600).reshape(-1, 2) * 7 % 23; "
        "print([rows.tolist() for rows in plan_epoch(lengths, 100, 3, 7)])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "3"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    lengths = np.arange(600).reshape(-1, 2) * 7 % 23
    assert run.stdout.strip() == str([rows.tolist() for rows in plan_epoch(lengths, 100, 3, 7)])


def test_seeds_and_epochs_change_the_order_and_the_company():
    lengths = realistic(2000)

    def company(batches):
        return {frozenset(rows.tolist()) for rows in batches}

    base = plan_epoch(lengths, 500, 0, 0)
    for other in (plan_epoch(lengths, 500, 1, 0), plan_epoch(lengths, 500, 0, 1)):
        assert [rows.tolist() for rows in base] != [rows.tolist() for rows in other]
        assert len(company(base) & company(other)) < 0.5 * len(base)


def test_batches_of_the_same_company_come_in_another_order_in_every_epoch():
    """Of different lengths, all in one pool: who goes together is not drawn, and when they come is."""
    orders = [[rows.tolist() for rows in plan_epoch(np.arange(1, 41), 60, 0, epoch)] for epoch in range(5)]
    assert all(sorted(one) == sorted(orders[0]) for one in orders)
    assert len({str(one) for one in orders}) == 5


def test_short_and_long_batches_are_mixed():
    lengths = realistic(5000)
    widths = [lengths[rows].max() for rows in plan_epoch(lengths, 500, 0, 0)]
    assert abs(np.corrcoef(widths[:-1], widths[1:])[0, 1]) < 0.25


def test_scoring_goes_from_short_to_long():
    lengths = realistic(5000)[:, 0]
    widths = [lengths[rows].max() for rows in plan_scoring(lengths, 500)]
    assert widths == sorted(widths)


@pytest.mark.parametrize("cut", [re.compile(r"\w+|[^\w\s]"), re.compile(r".")], ids=["words", "characters"])
@pytest.mark.parametrize("budget", [1024, 4096])
def test_little_of_a_batch_of_real_sentences_is_padding(shared_data, cut, budget):
    sides = []
    for language in ("en", "de"):
        with gzip.open(shared_data / "multi30k" / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            sides.append([len(cut.findall(line)) + 1 for line in lines])  # and the end
    lengths = np.stack([np.array(side) for side in sides], axis=1)
    for epoch in range(3):
        assert compute_padded_share(lengths, plan_epoch(lengths, budget, 0, epoch)) <= 0.05
    assert compute_padded_share(lengths, plan_scoring(lengths, budget)) <= 0.05
    assert compute_padded_share(lengths[:, 0], plan_epoch(lengths[:, 0], budget, 0, 0)) <= 0.02
