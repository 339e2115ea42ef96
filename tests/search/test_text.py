"""Text as it comes: whole characters, never taken back."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.vocabulary import END, PAD, START, UNKNOWN
from seqloom.search import Pieces, StopText, StopTokens
from seqloom.search.base import find_stop
from tests.tokenizing import learn_tokenizer

TEXT = "grüße aus köln, 東京 und 😀! don't-stop e\u0301 " * 3
TOKENIZERS = {
    kind: learn_tokenizer(kind, [TEXT], max_size=300 if kind == "bpe" else 0) for kind in ("characters", "words", "bpe")
}
each_kind = pytest.mark.parametrize("kind", TOKENIZERS)


def pieces_of(kind, ids, stops=()):
    pieces = Pieces(TOKENIZERS[kind].decode, stops)
    return [*(pieces.add(int(token)) for token in ids), pieces.finish()]


@each_kind
def test_the_pieces_of_a_text_are_the_text(kind):
    ids = TOKENIZERS[kind].encode(TEXT)
    pieces = pieces_of(kind, ids)
    assert "".join(pieces) == TOKENIZERS[kind].decode(ids)
    assert sum(map(bool, pieces)) > len(ids) / 2


@each_kind
@given(data=st.data())
def test_any_tokens_come_out_as_their_text_and_no_piece_is_taken_back(kind, data):
    """Also tokens that make no sense: bytes that are no character, special ones in the middle."""
    tokenizer = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1) | st.sampled_from([PAD, START, END, UNKNOWN])))
    pieces, given_ = Pieces(tokenizer.decode), ""
    for count, token in enumerate(ids, 1):
        given_ += pieces.add(token)
        assert tokenizer.decode(ids).startswith(given_)
        whole = tokenizer.decode(ids[:count])
        assert whole.startswith(given_) and len(whole) - len(given_) <= 1  # at most one character is waited for
    assert given_ + pieces.finish() == tokenizer.decode(ids)


def test_half_a_character_is_waited_for():
    bytes_ = learn_tokenizer("bpe", ["x"], max_size=256)
    ids = bytes_.encode("a😀é")
    assert pieces_of_bytes(bytes_, ids) == ["a", "", "", "", "😀", "", "é", ""]
    assert pieces_of_bytes(bytes_, ids[:4]) == ["a", "", "", "", "�"]


def pieces_of_bytes(tokenizer, ids):
    pieces = Pieces(tokenizer.decode)
    return [*(pieces.add(int(token)) for token in ids), pieces.finish()]


@each_kind
@given(text=st.text("ab c", max_size=30), stops=st.lists(st.text("ab c", min_size=1, max_size=4), max_size=3))
def test_the_text_ends_before_the_first_stop(kind, text, stops):
    tokenizer = learn_tokenizer(kind, ["a b c ab bc abc a b"], max_size=260 if kind == "bpe" else 0)
    ids = tokenizer.encode(text)
    whole = tokenizer.decode(ids)
    pieces, given_ = Pieces(tokenizer.decode, stops), ""
    for token in ids:
        given_ += pieces.add(int(token))
        assert not any(stop in given_ for stop in stops)
    given_ += pieces.finish()
    ends = [(whole.index(stop) + len(stop), whole.index(stop)) for stop in stops if stop in whole]
    assert given_ == whole[: min(ends, default=(0, len(whole)))[1]]
    assert pieces.stopped == any(stop in whole for stop in stops)


def test_of_several_stops_the_one_that_is_complete_first_counts_however_the_text_is_cut():
    """Though another may begin before it: c stands whole before bcd does."""
    for cut in itertools.product([False, True], repeat=4):
        places = [0, *(place for place, here in enumerate(cut, 1) if here), 5]
        parts = ["abcde"[start:stop] for start, stop in itertools.pairwise(places)]
        pieces = Pieces(lambda ids, parts=parts: "".join(parts[each] for each in ids), ["bcd", "c"])
        assert "".join([*map(pieces.add, range(len(parts))), pieces.finish()]) == "ab", parts


def test_of_several_stops_the_one_that_keeps_least_counts():
    stops = [StopTokens([[7]]), StopTokens([[6, 7]]), lambda tokens: None]
    assert [find_stop(some, [5, 6, 7]) for some in (stops, stops[::-1], stops[:1], stops[2:])] == [1, 1, 2, None]


def test_what_may_be_a_stop_is_held_back_only_until_it_is_known():
    tokenizer = TOKENIZERS["characters"]
    pieces = pieces_of("characters", tokenizer.encode("stop stunt"), ["stuck"])
    assert pieces == ["", "", "sto", "p", " ", "", "", "", "stun", "t", ""]


@given(text=st.text("ab 😀", max_size=30), stop=st.text("ab 😀", min_size=1, max_size=4))
def test_stopping_at_a_text_stops_with_the_token_that_completes_it(text, stop):
    tokenizer = learn_tokenizer("bpe", ["ab ab 😀"], max_size=258)
    ids, rule = [int(token) for token in tokenizer.encode(text)], StopText(tokenizer.decode, [stop])
    stopped = next((count for count in range(1, len(ids) + 1) if rule(ids[:count]) is not None), None)
    expected = next((count for count in range(1, len(ids) + 1) if stop in tokenizer.decode(ids[:count])), None)
    assert stopped == expected and (stopped is None or rule(ids[:stopped]) == stopped)


def test_an_empty_stop_stops_nothing():
    assert StopTokens([[]])([1, 2]) is None
    assert StopText(TOKENIZERS["characters"].decode, [""])([5, 6]) is None
    assert "".join(pieces_of("characters", TOKENIZERS["characters"].encode("köln"), [""])) == "köln"
