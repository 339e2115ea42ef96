"""What stands elsewhere: the longest run is the one that trying all of them finds."""

from hypothesis import given
from hypothesis import strategies as st

from seqloom.metrics.copied import CopiedRun, find_copied, score_copied, summarize_copied

few = st.text("ab", max_size=12)


@given(st.lists(few, max_size=4), st.lists(few, max_size=4))
def test_the_longest_run_is_the_longest_of_all_pieces_that_stand_in_one_of_the_known(texts, known):
    for text, found in zip(texts, find_copied(texts, known), strict=True):
        pieces = {text[start:stop] for start in range(len(text)) for stop in range(start, len(text) + 1)}
        longest = max((len(piece) for piece in pieces if any(piece in one for one in known)), default=0)
        assert found == CopiedRun(len(text), longest)
        assert found.whole == (text != "" and any(text in one for one in known))


def test_the_scores_are_the_share_of_whole_ones_and_the_mean_share():
    found = find_copied(["abc", "xbcx", "zzzz", "bc"], ["abcd"])
    scores = score_copied(found, "texts")
    assert scores["copied"].value == 2 / 4
    assert scores["longest copied run"].value == (1 + 2 / 4 + 0 + 1) / 4
    told = summarize_copied(found)
    assert told["longest run"] == {"length": 3, "longest": 3} and told["whole"] == 0.5
