"""What may be written: never violated, by any way of searching."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import SearchError
from seqloom.search import (
    BannedTokens,
    BeamOptions,
    MinLength,
    NoRepeat,
    Prefix,
    RepetitionPenalty,
    RequiredTokens,
    Sampling,
    StopTokens,
    WrittenTokens,
    beam,
    greedy,
    sample_tokens,
)

from .exact import exact
from .toy import END, Toy, all_tokens

SIZE, STEPS, ROWS = 7, 9, 3
tokens = st.integers(1, SIZE - 1)
WAYS = {
    "greedy": lambda toy, **rules: [[one] for one in greedy(toy, *toy.begin(ROWS), **rules)],
    "sampled": lambda toy, **rules: [
        [one] for one in sample_tokens(toy, Sampling(2.0, seed=9), *toy.begin(ROWS), **rules)
    ],
    "narrowed": lambda toy, **rules: [
        [one] for one in sample_tokens(toy, Sampling(1.0, 4, 0.9, 0.05), *toy.begin(ROWS), **rules)
    ],
    "beam": lambda toy, **rules: beam(toy, *toy.begin(ROWS), BeamOptions(beam_size=4, **rules)),
    "groups": lambda toy, **rules: beam(toy, *toy.begin(ROWS), BeamOptions(beam_size=4, groups=2, **rules)),
}
ways = st.sampled_from(sorted(WAYS))


def written(way, seed, constraints, steps=STEPS):
    """Every hypothesis with its row; nothing at all where the constraints leave no way."""
    try:
        found = WAYS[way](Toy(SIZE, seed, 0.7), steps=steps, end=END, constraints=constraints)
    except SearchError as error:
        if "no token is allowed" not in str(error):
            raise
        return []
    return [(row, one) for row, several in enumerate(found) for one in several]


@given(way=ways, seed=st.integers(0, 99), banned=st.lists(tokens, max_size=SIZE - 2, unique=True))
def test_banned_tokens_are_not_written(way, seed, banned):
    found = written(way, seed, [BannedTokens(banned)])
    assert found and not any(set(one.tokens) & set(banned) for _, one in found)


@given(
    way=ways, seed=st.integers(0, 99), prefixes=st.lists(st.lists(tokens, max_size=STEPS), min_size=ROWS, max_size=ROWS)
)
def test_every_row_begins_as_it_is_told(way, seed, prefixes):
    found = written(way, seed, [Prefix(prefixes)])
    assert {row for row, _ in found} == set(range(ROWS))
    for row, one in found:
        assert one.tokens[: len(prefixes[row])] == prefixes[row]
        assert one.logs == pytest.approx(Toy(SIZE, seed, 0.7).logs(row, all_tokens(one)), abs=1e-4)  # not forced ones


@given(way=ways, seed=st.integers(0, 99), length=st.integers(0, STEPS + 2))
def test_nothing_ends_too_early(way, seed, length):
    found = written(way, seed, [MinLength(length, END)])
    assert found and all(min(length, STEPS) <= len(one.tokens) <= STEPS for _, one in found)


@pytest.mark.parametrize("length", range(4))
def test_the_end_is_free_as_soon_as_enough_is_written(length):
    logs = torch.randn(2, SIZE).log_softmax(-1)
    for count in range(6):
        found = MinLength(length, END)(logs, WrittenTokens(torch.ones(2, count).long(), torch.arange(2)))
        assert (found[:, END] == (-torch.inf if count < length else logs[:, END])).all()
        assert torch.equal(found[:, END + 1 :], logs[:, END + 1 :])


@given(
    way=ways, seed=st.integers(0, 99), required=st.lists(tokens, max_size=STEPS), banned=st.lists(tokens, max_size=2)
)
def test_what_is_required_is_written_as_often_as_named(way, seed, required, banned):
    found = written(way, seed, [BannedTokens(banned), RequiredTokens(required, END, STEPS)])
    assert found or set(required) & set(banned)
    for _, one in found:
        assert all(one.tokens.count(token) >= required.count(token) for token in required)


@given(
    way=ways,
    seed=st.integers(0, 99),
    length=st.integers(1, 4),
    prompts=st.one_of(st.just([]), st.lists(st.lists(tokens, max_size=12), min_size=ROWS, max_size=ROWS)),
)
def test_no_sequence_is_repeated(way, seed, length, prompts):
    for row, one in written(way, seed, [NoRepeat(length, prompts)], steps=20):
        prompt = prompts[row] if prompts else []
        whole = [*prompt, *all_tokens(one)]
        seen = [tuple(whole[place : place + length]) for place in range(len(whole) - length + 1)]
        new = seen[max(len(prompt) - length + 1, 0) :]
        assert all(seen.count(sequence) == 1 for sequence in new)


@given(way=ways, seed=st.integers(0, 99), stop=st.lists(tokens, min_size=1, max_size=2))
def test_a_stop_sequence_ends_the_output_and_is_not_in_it(way, seed, stop):
    found = WAYS[way](Toy(SIZE, seed, 0.7), steps=STEPS, end=END, stops=[StopTokens([stop, [6, 6, 6]])])
    for row in found:
        for one in row:
            whole = " ".join(map(str, one.tokens))
            assert " ".join(map(str, stop)) not in whole and "6 6 6" not in whole
            lost = len(one.logs) - len(one.tokens)
            assert lost in {"stop": (len(stop), 3), "end": (1,), "length": (0,)}[one.finish]


def test_a_repetition_penalty_multiplies_the_log_probabilities_of_what_was_there():
    logs = torch.randn(2, 5).log_softmax(-1)
    seen = WrittenTokens(torch.tensor([[1, 1, 3], [0, 0, 0]]), torch.tensor([2, 0]))
    found = RepetitionPenalty(1.5, [[4], [], []])(logs, seen)
    expected = logs.clone()
    expected[0, [1, 3]] *= 1.5  # the row has an empty prompt
    expected[1, [0, 4]] *= 1.5
    torch.testing.assert_close(found, expected)


def test_a_penalty_ranks_but_the_ledger_stays_the_models_own():
    toy, rules = Toy(5, sharpness=0.6), {"steps": 6, "end": END, "constraints": [RepetitionPenalty(3.0)]}
    for row, found in enumerate(beam(toy, *toy.begin(3), BeamOptions(beam_size=700, length_penalty=0.0, **rules))):
        for one in found[:20]:
            tokens = all_tokens(one)
            assert one.logs == pytest.approx(toy.logs(row, tokens), abs=1e-4)
            again = [log * (3.0 if token in tokens[:place] else 1.0) for place, (token, log) in enumerate_pairs(one)]
            assert one.score == pytest.approx(sum(again), abs=1e-4)
    proofs = exact(toy, *toy.begin(3), length_penalty=0.0, **rules)
    assert [proof.best.tokens for proof in proofs] == [
        found[0].tokens for found in beam(toy, *toy.begin(3), BeamOptions(beam_size=700, length_penalty=0.0, **rules))
    ]


def enumerate_pairs(one):
    return enumerate(zip(all_tokens(one), one.logs, strict=True))


def test_several_constraints_hold_together():
    constraints = [
        BannedTokens([1]),
        Prefix([[2], [3, 4], []]),
        MinLength(5, END),
        RequiredTokens([5], END, 8),
        NoRepeat(2),
    ]
    toy = Toy(SIZE)
    for row, found in enumerate(
        beam(toy, *toy.begin(ROWS), BeamOptions(beam_size=5, steps=8, end=END, constraints=constraints))
    ):
        assert found
        for one in found:
            assert one.tokens[: len([[2], [3, 4], []][row])] == [[2], [3, 4], []][row]
            assert 1 not in one.tokens and len(one.tokens) >= 5 and 5 in one.tokens
            pairs = list(zip(one.tokens, one.tokens[1:], strict=False))
            assert len(pairs) == len(set(pairs))


def test_anybodys_function_is_a_constraint():
    def rising(logs, written):
        """Every token is larger than the one before it."""
        if not written.tokens.shape[1]:
            return logs
        return logs.masked_fill(torch.arange(logs.shape[1]) <= written.tokens[:, -1:], -torch.inf)

    toy = Toy(SIZE)
    for [one] in beam(toy, *toy.begin(ROWS), BeamOptions(beam_size=6, steps=3, end=END, constraints=[rising], best=1)):
        assert one.tokens == sorted(set(one.tokens))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RequiredTokens([1, 2, 3], END, 2), "3 tokens are required, but only 2 may be written"),
        (lambda: NoRepeat(0), "may not repeat is 0"),
        (lambda: RepetitionPenalty(0.5), "repetition penalty is 0.5"),
        (lambda: written("greedy", 0, [BannedTokens([SIZE])]), f"the token {SIZE}, but the vocabulary has {SIZE}"),
        (lambda: written("greedy", 0, [Prefix([[1]])]), "1 forced prefixes, but a row of the batch is 2"),
        (lambda: written("greedy", 0, [NoRepeat(2, [[1]])]), "1 prompts, but a row of the batch is 3"),
    ],
)
def test_constraints_that_cannot_be_meant_are_refused(make, words):
    with pytest.raises(SearchError, match=words):
        make()
