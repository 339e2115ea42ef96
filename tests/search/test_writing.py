"""Greedy, sampling and streams: one continuation a row."""

import itertools
import math

import numpy as np
import pytest
import torch

from seqloom.errors import SearchError
from seqloom.search import BannedTokens, Sampling, choose_likeliest, greedy, sample_tokens, score, stream, write
from seqloom.search.choosing import draw_tokens, draw_uniform, seeds_of, take_largest

from .toy import END, Toy, all_tokens

close = torch.testing.assert_close


def alone(toy, row, rows):
    return tuple(part[row : row + 1] for part in toy.begin(rows))


def test_greedy_takes_the_likeliest_and_keeps_the_ledger():
    toy = Toy(7)
    for row, one in enumerate(greedy(toy, *toy.begin(9), steps=12, end=END)):
        tokens = all_tokens(one)
        assert one.finish == ("end" if len(one.tokens) < len(one.logs) else "length")
        assert len(one.logs) == 12 or one.finish == "end"
        close(torch.tensor(one.logs), torch.tensor(toy.logs(row, tokens)))
        assert one.score == sum(one.logs)
        for place, token in enumerate(tokens):
            others = [toy.logs(row, [*tokens[:place], other])[-1] for other in range(7)]
            assert max(others) == others[token]


def test_rows_that_are_finished_leave_the_batch():
    toy = Toy(3)
    found = greedy(toy, *toy.begin(20), steps=15, end=END)
    assert len({len(one.logs) for one in found}) > 3
    assert toy.rows == sum(len(one.logs) for one in found)


def test_nothing_is_written_where_there_is_no_room():
    toy = Toy()
    assert greedy(toy, *toy.begin(2), steps=0, end=END) == [([], [], 0.0, "length", ())] * 2
    assert greedy(toy, torch.ones(0, 1).long(), torch.ones(0).long(), steps=3, end=END) == []
    assert toy.calls == 0


def test_without_an_end_all_the_room_is_used():
    toy = Toy(3)
    assert {len(one.tokens) for one in greedy(toy, *toy.begin(5), steps=20, end=None)} == {20}


def test_stopping_the_stream_stops_the_work():
    toy = Toy()
    steps = stream(toy, choose_likeliest, *toy.begin(2), steps=100, end=None)
    assert toy.calls == 0
    for count, picks in enumerate(itertools.islice(steps, 3), 1):
        assert toy.calls == count and [pick.row for pick in picks] == [0, 1]
    steps.close()
    assert toy.calls == 3


def test_a_stream_says_what_the_whole_says():
    toy = Toy(5)
    whole = greedy(toy, *toy.begin(6), steps=10, end=END)
    rows = [[] for _ in whole]
    for picks in stream(toy, choose_likeliest, *toy.begin(6), steps=10, end=END):
        for pick in picks:
            assert not rows[pick.row] or not rows[pick.row][-1].finish
            rows[pick.row].append(pick)
    for one, picks in zip(whole, rows, strict=True):
        assert [pick.token for pick in picks][: picks[-1].output_length] == one.tokens
        assert [pick.log for pick in picks] == one.logs and picks[-1].finish == one.finish


def test_alternatives_are_the_likeliest_tokens_of_each_step():
    toy = Toy(6)
    [one] = write(toy, choose_likeliest, *toy.begin(1), steps=5, end=END, alternatives=3)
    tokens = all_tokens(one)
    assert len(one.alternatives) == len(tokens)
    for place, found in enumerate(one.alternatives):
        every = sorted(((toy.logs(0, [*tokens[:place], token])[-1], token) for token in range(6)), reverse=True)[:3]
        assert [token for token, _ in found] == [token for _, token in every]
        close(torch.tensor([log for _, log in found]), torch.tensor([log for log, _ in every]))


# Sampling


def test_the_seed_decides_and_the_neighbors_do_not():
    toy, sampling = Toy(8, sharpness=0.3), Sampling(seed=[5, 6, 7, 5])
    together = sample_tokens(toy, sampling, *toy.begin(4), steps=20, end=END)
    assert together == sample_tokens(toy, sampling, *toy.begin(4), steps=20, end=END)
    for row in range(4):
        own = Sampling(seed=[sampling.seed[row]])
        [one] = sample_tokens(toy, own, *alone(toy, row, 4), steps=20, end=END)
        assert one.tokens == together[row].tokens
    other = sample_tokens(toy, Sampling(seed=[5, 6, 8, 5]), *toy.begin(4), steps=20, end=END)
    assert [one == two for one, two in zip(together, other, strict=True)] == [True, True, False, True]


def test_one_seed_gives_every_row_its_own_chance():
    toy = Toy(50, sharpness=0.0)
    last = torch.ones(30, 1).long(), torch.zeros(30).long()
    found = [tuple(one.tokens) for one in sample_tokens(toy, Sampling(seed=3), *last, steps=8, end=None)]
    assert len(set(found)) == 30
    fewer = sample_tokens(toy, Sampling(seed=3), last[0][:4], last[1][:4], steps=8, end=None)
    assert [tuple(one.tokens) for one in fewer] == found[:4]


def test_chance_is_even_and_its_steps_and_seeds_know_nothing_of_each_other():
    draws = torch.tensor(
        [draw_uniform(seeds_of(seed, 300), count).tolist() for seed in range(4) for count in range(1, 81)]
    )
    assert draws.min() >= 0 and draws.max() < 1
    often = torch.histc(draws, 50, 0, 1)
    expected = draws.numel() / 50
    assert (often - expected).square().sum() / expected < 49 + 5 * math.sqrt(2 * 49)  # chi-squared
    noise = 5 / math.sqrt(draws.numel())
    for one, two in ((draws[:, 1:], draws[:, :-1]), (draws[1:80], draws[:79]), (draws[:80], draws[80:160])):
        assert torch.corrcoef(torch.stack([one.flatten(), two.flatten()]))[0, 1].abs() < 2 * noise


def shares(sampling, logits, count=10_000):
    rows = torch.ones(count, 1).long()
    found = sample_tokens(
        lambda last, state: (logits.expand(len(last), 1, -1), ()), sampling, rows, (), steps=1, end=None
    )
    return torch.bincount(torch.tensor([one.tokens[0] for one in found]), minlength=len(logits)) / count, found


LOGITS = torch.tensor([0.0, 2.0, -1.0, 1.0, 0.5])


def left_by(sampling, *shares):
    """Which of tokens with these shares may be drawn."""
    found = sampling.narrow(torch.tensor([shares], dtype=torch.double).log())[0]
    return (found > -torch.inf).nonzero()[:, 0].tolist()


def test_the_fewest_that_have_the_share_are_left_also_where_it_is_met_exactly():
    for share, left in ((0.5, [1]), (0.51, [1, 2]), (0.75, [1, 2]), (0.76, [0, 1, 2]), (0.875, [0, 1, 2])):
        assert left_by(Sampling(top_p=share), 0.125, 0.5, 0.25, 0.0625, 0.0625) == left


def test_a_share_is_one_of_the_probabilities_at_the_temperature_that_is_drawn_at():
    """Squared, 0.5, 0.3 and 0.2 are as 0.66, 0.24 and 0.11; their roots are as 0.41, 0.32 and 0.26."""
    assert left_by(Sampling(0.5, top_p=0.6), 0.5, 0.3, 0.2) == [0]
    assert left_by(Sampling(1.0, top_p=0.6), 0.5, 0.3, 0.2) == [0, 1]
    assert left_by(Sampling(2.0, top_p=0.75), 0.5, 0.3, 0.2) == [0, 1, 2]
    assert left_by(Sampling(0.5, min_p=0.5), 0.5, 0.3, 0.2) == [0]
    assert left_by(Sampling(1.0, min_p=0.5), 0.5, 0.3, 0.2) == [0, 1]


def test_a_token_is_drawn_where_it_lies_and_one_without_a_share_nowhere():
    """Every token has its beginning and not its end; a draw of exactly 0 is of the first that has a share."""
    logs = torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0], dtype=torch.double).log()
    where = np.array([0.0, 0.125, 0.25, 0.5, 0.75, 1 - 2.0**-52])
    assert draw_tokens(logs.expand(len(where), -1), where).tolist() == [1, 1, 3, 3, 4, 4]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_are_as_frequent_as_they_are_likely(temperature):
    often, found = shares(Sampling(temperature, seed=1), LOGITS)
    close(often, (LOGITS / temperature).softmax(0), atol=0.02, rtol=0)
    close(torch.tensor([one.logs[0] for one in found]), LOGITS.log_softmax(0)[[one.tokens[0] for one in found]])


@pytest.mark.parametrize(
    ("sampling", "left"),
    [
        (Sampling(top_k=1), [1]),
        (Sampling(top_k=3), [1, 3, 4]),
        (Sampling(top_k=99), [0, 1, 2, 3, 4]),
        (Sampling(top_p=1e-9), [1]),
        (Sampling(top_p=0.56), [1]),  # the likeliest has 0.569
        (Sampling(top_p=0.57), [1, 3]),
        (Sampling(top_p=0.8), [1, 3, 4]),
        (Sampling(min_p=0.36), [1, 3]),  # e⁻¹ = 0.368
        (Sampling(min_p=0.37), [1]),
        (Sampling(min_p=1.0), [1]),
        (Sampling(temperature=2.0, min_p=0.36), [0, 1, 3, 4]),  # the temperature comes first: e⁻¹ is two away now
        (Sampling(top_k=4, top_p=0.95, min_p=0.1), [0, 1, 3, 4]),
    ],
)
def test_the_choice_is_narrowed_to_the_likeliest(sampling, left):
    often, found = shares(sampling, LOGITS)
    expected = torch.zeros(5)
    expected[left] = (LOGITS[left] / sampling.temperature).softmax(0)
    assert often.nonzero()[:, 0].tolist() == left
    close(often, expected, atol=0.02, rtol=0)
    close(found[0].logs[0], LOGITS.log_softmax(0)[found[0].tokens[0]].item())  # the model's own, not the narrowed ones


def test_no_temperature_is_greedy():
    toy = Toy(9)
    assert sample_tokens(toy, Sampling(0.0), *toy.begin(5), steps=9, end=END) == greedy(
        toy, *toy.begin(5), steps=9, end=END
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temperature": -1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0}, "top_p"),
        ({"min_p": 2}, "min_p"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    with pytest.raises(SearchError, match=words):
        Sampling(**settings)


def test_a_seed_for_each_row_or_one_for_all():
    toy = Toy()
    with pytest.raises(SearchError, match="2 seeds for 3 rows"):
        sample_tokens(toy, Sampling(seed=[1, 2]), *toy.begin(3), steps=2, end=END)


# Odd sizes


@pytest.mark.parametrize("shape", [(1, 10), (3, 20_000), (700, 100), (60, 1013), (5, 49_999)])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_the_largest_of_many_are_those_that_sorting_finds(shape, count):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    count = min(count, shape[1])
    found, places = take_largest(values, count)
    expected = values.sort(-1, descending=True)[0][:, :count]
    assert torch.equal(found, expected) and torch.equal(values.gather(1, places), expected)
    assert torch.equal(choose_likeliest(values, [], 1), values.argmax(-1))


def test_ten_thousand_tokens():
    toy = Toy(5, sharpness=0.5)
    [one] = greedy(toy, *toy.begin(1), steps=10_000, end=None)
    [again] = score(toy, *toy.begin(1), [one.tokens], end=None)
    assert len(one.tokens) == len(one.logs) == 10_000
    close(torch.tensor(again.logs), torch.tensor(one.logs))


def test_nothing_allowed_any_more_is_said():
    toy = Toy()
    with pytest.raises(SearchError, match="no token is allowed at place 1 of row 0"):
        greedy(toy, *toy.begin(2), steps=3, end=END, constraints=[BannedTokens(range(4))])
    with pytest.raises(SearchError, match="no token is allowed at place 1 of row 0"):
        sample_tokens(toy, Sampling(), *toy.begin(2), steps=3, end=END, constraints=[BannedTokens(range(4))])


def test_a_model_without_an_opinion_is_seen():
    def broken(last, state):
        return torch.full((len(last), 1, 4), torch.nan), state

    with pytest.raises(SearchError, match="token 1 of row 0 are not numbers"):
        greedy(broken, torch.ones(1, 1).long(), (), steps=3, end=END)


def test_a_search_begins_after_one_token_a_row():
    with pytest.raises(SearchError, match=r"one token a row, \(N, 1\), but was given \(2, 3\)"):
        greedy(Toy(), torch.ones(2, 3).long(), torch.ones(2).long(), steps=3, end=END)
    with pytest.raises(SearchError, match="-1"):
        greedy(Toy(), torch.ones(2, 1).long(), torch.ones(2).long(), steps=-1, end=END)


# Scoring


@pytest.mark.parametrize("end", [None, END])
def test_the_score_of_a_given_sequence_is_the_sum_of_its_ledger(end):
    toy, given = Toy(5), [[1, 2], [3, 3, 3, 3, 1], [], [4]]
    found = score(toy, *toy.begin(4), given, end=end, length_penalty=0.5)
    for row, (one, tokens) in enumerate(zip(found, given, strict=True)):
        logs = toy.logs(row, tokens if end is None else [*tokens, end])
        assert one.tokens == tokens
        close(torch.tensor(one.logs), torch.tensor(logs))
        assert one.score == pytest.approx(sum(logs) / max(len(logs), 1) ** 0.5, abs=1e-5)


def test_what_was_written_scores_what_it_said():
    toy = Toy(6)
    written = sample_tokens(toy, Sampling(2.0, seed=4), *toy.begin(8), steps=7, end=END)
    ended = [row for row, one in enumerate(written) if one.finish == "end"]
    last, state = (part[ended] for part in toy.begin(8))
    again = score(toy, last, state, [written[row].tokens for row in ended], end=END)
    for one, row in zip(again, ended, strict=True):
        close(torch.tensor(one.logs), torch.tensor(written[row].logs))


def test_impossible_sequences_are_refused():
    toy = Toy(5)
    with pytest.raises(SearchError, match="1 sequences for 2 rows"):
        score(toy, *toy.begin(2), [[1]], end=END)
    with pytest.raises(SearchError, match="vocabulary of 5"):
        score(toy, *toy.begin(1), [[5]], end=END)
