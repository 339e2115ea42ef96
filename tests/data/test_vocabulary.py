"""Symbols and numbers."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.vocabulary import END, PAD, SPECIALS, START, UNKNOWN, Vocabulary
from seqloom.errors import RunError

COUNTS = {"b": 3, "a": 3, "c": 5, "d": 1, "e": 2}


def test_the_special_symbols_have_the_numbers_0_to_3():
    assert [SPECIALS[number] for number in (PAD, UNKNOWN, START, END)] == ["<pad>", "<unk>", "<sos>", "<eos>"]
    assert Vocabulary.learn({}).symbols == SPECIALS


def test_symbols_are_sorted_by_frequency_then_by_symbol():
    assert Vocabulary.learn(COUNTS).symbols == (*SPECIALS, "c", "a", "b", "e", "d")


def test_rare_symbols_and_those_beyond_the_size_are_cut():
    assert Vocabulary.learn(COUNTS, min_count=3).symbols == (*SPECIALS, "c", "a", "b")
    assert Vocabulary.learn(COUNTS, max_size=2).symbols == (*SPECIALS, "c", "a")
    assert Vocabulary.learn(COUNTS, max_size=2, min_count=5).symbols == (*SPECIALS, "c")


@given(st.lists(st.text(min_size=1)), st.integers(0, 5), st.integers(1, 3))
def test_the_order_of_what_was_counted_does_not_matter(symbols, max_size, min_count):
    one = Vocabulary.learn(Counter(symbols), max_size, min_count)
    other = Vocabulary.learn(Counter(reversed(symbols)), max_size, min_count)
    assert one.symbols == other.symbols
    assert [one.numbers[symbol] for symbol in one.symbols] == list(range(len(one)))


def test_a_special_symbol_is_never_learned():
    assert Vocabulary.learn({"<eos>": 9, "a": 1}).symbols == (*SPECIALS, "a")


def test_reading_gives_back_what_was_written():
    vocabulary = Vocabulary.learn(COUNTS)
    assert Vocabulary.read(list(vocabulary.symbols)).symbols == vocabulary.symbols


@pytest.mark.parametrize(
    ("symbols", "words"),
    [
        (None, "not a list"),
        ({"<pad>": 0}, "not a list"),
        ("<pad>", "not a list"),
        ([], "special"),
        (["<pad>", "<unk>", "<eos>", "<sos>"], "special"),
        ([*SPECIALS, "a", "a"], "comes twice"),
        ([*SPECIALS, "<pad>"], "comes twice"),
        ([*SPECIALS, 5], "not a text"),
        ([*SPECIALS, None], "not a text"),
        ([*SPECIALS, ["a"]], "not a text"),
        ([*SPECIALS, ""], "not a text"),
        ([*SPECIALS, "\ud800"], "not a text"),
        ([*SPECIALS, "x" * 10**6, "x" * 10**6], "comes twice"),
    ],
)
def test_what_is_no_vocabulary_is_refused_in_one_short_sentence(symbols, words):
    with pytest.raises(RunError, match=words) as caught:
        Vocabulary.read(symbols)
    assert len(str(caught.value)) < 200
