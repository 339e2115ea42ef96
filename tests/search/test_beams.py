"""Beams, the tree of what they looked at, and the proof of what they missed."""

import json
import math

import pytest
import torch

from seqloom.errors import SearchError
from seqloom.search import BannedTokens, BeamOptions, Recorder, StopTokens, beam, greedy

from .exact import exact
from .toy import END, Toy, all_tokens

close = torch.testing.assert_close
PENALTIES = [0.0, 0.6, 1.0, 2.0]


def alone(toy, row, rows):
    return tuple(part[row : row + 1] for part in toy.begin(rows))


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_beam_as_wide_as_the_space_finds_all_of_it_in_order(penalty):
    toy = Toy(3, seed=1)
    for row, found in enumerate(
        beam(toy, *toy.begin(3), BeamOptions(beam_size=81, steps=4, end=END, length_penalty=penalty))
    ):
        every = toy.every(row, 4, penalty)
        assert [one.tokens for one in found] == [one.tokens for one in every]
        assert [one.finish for one in found] == [one.finish for one in every]
        close(torch.tensor([one.score for one in found]), torch.tensor([one.score for one in every]))


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_beam_of_one_is_greedy(penalty):
    toy = Toy(5)
    found = beam(toy, *toy.begin(30), BeamOptions(beam_size=1, steps=9, end=END, length_penalty=penalty))
    assert [one.tokens for [one] in found] == [one.tokens for one in greedy(toy, *toy.begin(30), steps=9, end=END)]


@pytest.mark.parametrize("width", [2, 3, 5, 9])
def test_a_score_is_the_models_own_and_nothing_is_found_twice(width):
    toy = Toy(6, sharpness=0.8)
    for row, found in enumerate(
        beam(toy, *toy.begin(6), BeamOptions(beam_size=width, steps=6, end=END, length_penalty=0.7))
    ):
        assert len(found) == width == len({tuple(all_tokens(one)) for one in found})
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        for one in found:
            close(torch.tensor(one.logs), torch.tensor(toy.logs(row, all_tokens(one))))
            assert one.score == pytest.approx(sum(one.logs) / len(one.logs) ** 0.7, abs=1e-5)


def reference(toy, row, width, steps, penalty):
    """The same search spelled out: lists, one hypothesis at a time."""
    alive, pool = [([], 0.0)], []
    for count in range(1, steps + 1):
        grown = [
            ([*tokens, token], toy.logs(row, [*tokens, token])) for tokens, _ in alive for token in range(toy.size)
        ]
        ranked = sorted(((sum(logs) / count**penalty, tokens) for tokens, logs in grown), reverse=True)[:width]
        best = sorted([*((score, None) for score, _ in pool), *ranked], key=lambda pair: -pair[0])[:width]
        inside = [(score, tokens) for score, tokens in best if tokens is not None]
        pool += [(score, tokens) for score, tokens in inside if tokens[-1] == END]
        alive = [(tokens, score) for score, tokens in inside if tokens[-1] != END]
        if not alive:
            break
    pool += [(score, tokens) for tokens, score in alive]
    return [tokens for _, tokens in sorted(pool, reverse=True)[:width]]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("width", [2, 3, 7])
def test_a_beam_is_the_same_search_spelled_out(width, penalty):
    toy = Toy(5, seed=2, sharpness=1.0)
    found = beam(toy, *toy.begin(8), BeamOptions(beam_size=width, steps=6, end=END, length_penalty=penalty))
    for row in range(8):
        assert [all_tokens(one) for one in found[row]] == reference(toy, row, width, 6, penalty)


def letters(one):
    """What it says: 1 and 2 are two ways to write one letter, and 3 is a blank that nobody sees."""
    return "".join("a" if token < 3 else "b" for token in one.tokens if token != 3)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_of_those_that_mean_the_same_the_best_stands_for_all(penalty):
    toy = Toy(5, sharpness=1.0)
    whole = beam(
        toy, *toy.begin(4), BeamOptions(beam_size=500, steps=4, end=END, length_penalty=penalty, meaning=letters)
    )
    for row, found in enumerate(whole):
        best = {}
        for one in toy.every(row, 4, penalty):  # the best comes first
            best.setdefault(letters(one), one)
        assert [one.tokens for one in found] == [one.tokens for one in best.values()]
        assert [one.score for one in found] == pytest.approx([one.score for one in best.values()], abs=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("best", [0, 2, 3])
def test_what_means_the_same_takes_no_place_from_what_does_not(best, groups):
    """Nothing is said twice, and more is said than is left of the same beam when its answers are merged afterwards."""
    settings = {"beam_size": 4, "steps": 8, "end": END, "best": best, "groups": groups}
    merged = apart = 0
    for seed in range(20):
        toy = Toy(5, seed, sharpness=1.0)
        for found in beam(toy, *toy.begin(2), BeamOptions(**settings, meaning=letters)):
            assert len({letters(one) for one in found}) == len(found)
            apart += len(found)
        merged += sum(
            len({letters(one) for one in found}) for found in beam(toy, *toy.begin(2), BeamOptions(**settings))
        )
    assert apart > merged


@pytest.mark.parametrize("width", [1, 2, 5])
def test_what_is_never_written_is_left_out_alike_whether_or_not_the_distribution_is_worked_out(width, kernels):
    toy, banned = Toy(7, sharpness=1.0), BannedTokens([2, 5])

    def slowly(logs, written):
        return banned(logs, written)

    quick, slow = (
        [*beam(toy, *toy.begin(8), BeamOptions(beam_size=width, steps=6, end=END, constraints=[constraint]))]
        + [[one] for one in greedy(toy, *toy.begin(8), steps=6, end=END, constraints=[constraint])]
        for constraint in (banned, slowly)
    )
    assert [[one.tokens for one in row] for row in quick] == [[one.tokens for one in row] for row in slow]
    for row, others in zip(quick, slow, strict=True):
        for one, other in zip(row, others, strict=True):
            close(torch.tensor(one.logs), torch.tensor(other.logs))
            assert not {2, 5} & {*one.tokens}
    free = beam(toy, *toy.begin(8), BeamOptions(beam_size=width, steps=6, end=END))
    assert any({2, 5} & {*one.tokens} for row in free for one in row)


def test_sources_that_are_decided_leave_the_batch():
    toy = Toy(4, sharpness=3.0)
    beam(toy, *toy.begin(12), BeamOptions(beam_size=2, steps=30, end=END))
    together, toy.rows = toy.rows, 0
    for row in range(12):
        beam(toy, *alone(toy, row, 12), BeamOptions(beam_size=2, steps=30, end=END))
    assert together == toy.rows


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("best", [1, 2])
def test_fewer_are_the_first_of_all_and_cost_less(best, penalty):
    toy = Toy(4, sharpness=2.0)
    whole = beam(toy, *toy.begin(12), BeamOptions(beam_size=4, steps=12, end=END, length_penalty=penalty))
    cost, toy.rows = toy.rows, 0
    few = beam(toy, *toy.begin(12), BeamOptions(beam_size=4, steps=12, end=END, length_penalty=penalty, best=best))
    assert [[one.tokens for one in row] for row in few] == [[one.tokens for one in row[:best]] for row in whole]
    assert toy.rows < cost if penalty == 0 else toy.rows <= cost


def test_a_beam_wider_than_the_vocabulary_and_a_space_smaller_than_the_beam():
    toy = Toy(3)
    [found] = beam(toy, *toy.begin(1), BeamOptions(beam_size=50, steps=2, end=END))
    assert sorted(all_tokens(one) for one in found) == sorted(all_tokens(one) for one in toy.every(0, 2))


def test_nothing_allowed_any_more_is_said_but_a_dead_end_among_others_is_not():
    toy = Toy(4)
    with pytest.raises(SearchError, match="no token is allowed at place 1 of row 0"):
        beam(toy, *toy.begin(2), BeamOptions(beam_size=2, steps=3, end=END, constraints=[BannedTokens(range(4))]))

    def dead_end(logs, written):  # after a 1, nothing
        if not written.tokens.shape[1]:
            return logs
        return logs.masked_fill(written.tokens[:, -1:] == 1, -torch.inf)

    for found in beam(toy, *toy.begin(4), BeamOptions(beam_size=3, steps=4, end=END, constraints=[dead_end])):
        assert found and all(1 not in one.tokens[:-1] for one in found)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam_size": 0}, "beam size is 0"),
        ({"beam_size": 4, "groups": 3}, "a beam of 4 cannot be divided evenly among 3 groups"),
        ({"beam_size": 4, "length_penalty": -1}, "less than 0"),
        ({"beam_size": 4, "length_penalty": math.nan}, "less than 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    toy = Toy()
    with pytest.raises(SearchError, match=words):
        beam(toy, *toy.begin(1), BeamOptions(steps=2, end=END, **settings))


def test_a_beam_without_room_writes_nothing():
    toy = Toy()
    assert [
        [one[:3] for one in row] for row in beam(toy, *toy.begin(2), BeamOptions(beam_size=3, steps=0, end=END))
    ] == [
        [([], [], 0.0)],
        [([], [], 0.0)],
    ]


def test_stop_sequences_end_a_hypothesis():
    toy, stop = Toy(4, sharpness=0.5), StopTokens([[2, 3]])
    found = beam(toy, *toy.begin(4), BeamOptions(beam_size=8, steps=6, end=END, stops=[stop]))
    assert any(one.finish == "stop" for row in found for one in row)
    for row in found:
        for one in row:
            written = " ".join(map(str, one.tokens))
            assert "2 3" not in written
            assert len(one.logs) == len(one.tokens) + {"stop": 2, "end": 1, "length": 0}[one.finish]


# Groups


def test_groups_begin_differently_and_without_diversity_alike():
    toy = Toy(12, sharpness=0.5)
    plain = beam(toy, *toy.begin(5), BeamOptions(beam_size=3, steps=5, end=None))
    alike = beam(toy, *toy.begin(5), BeamOptions(beam_size=9, steps=5, end=None, groups=3, diversity=0.0))
    assert [[one.tokens for one in row] for row in alike] == [[one.tokens for one in row] for row in plain]
    for found in beam(toy, *toy.begin(5), BeamOptions(beam_size=6, steps=5, end=None, groups=6, diversity=100.0)):
        for step in range(5):
            assert len({one.tokens[step] for one in found}) == 6


def test_the_first_group_is_the_plain_beam_and_scores_are_not_penalized():
    toy = Toy(8, sharpness=0.7)
    plain = beam(toy, *toy.begin(4), BeamOptions(beam_size=2, steps=5, end=END))
    for row, found in enumerate(
        beam(toy, *toy.begin(4), BeamOptions(beam_size=6, steps=5, end=END, groups=3, diversity=0.9))
    ):
        assert {tuple(one.tokens) for one in plain[row]} <= {tuple(one.tokens) for one in found}
        for one in found:
            assert one.score == pytest.approx(sum(toy.logs(row, all_tokens(one))) / len(one.logs), abs=1e-5)


def test_groups_avoid_each_others_tokens_as_spelled_out():
    toy, diversity = Toy(6, sharpness=1.0), 0.6
    found = beam(
        toy,
        *toy.begin(3),
        BeamOptions(beam_size=3, steps=4, end=None, groups=3, diversity=diversity, length_penalty=0.0),
    )
    for row in range(3):
        written = [[], [], []]
        for _ in range(4):
            chosen = []
            for group in range(3):
                logs = [toy.logs(row, [*written[group], token])[-1] for token in range(6)]
                judged = [log - diversity * chosen.count(token) for token, log in enumerate(logs)]
                chosen.append(judged.index(max(judged)))
            written = [[*tokens, token] for tokens, token in zip(written, chosen, strict=True)]
        assert {tuple(one.tokens) for one in found[row]} == set(map(tuple, written))


# Exact search


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sharpness", [0.2, 1.5])
def test_the_exact_search_finds_what_brute_force_finds(penalty, sharpness):
    toy = Toy(4, seed=3, sharpness=sharpness)
    proofs = exact(toy, *toy.begin(4), steps=4, end=END, length_penalty=penalty)
    for row, proof in enumerate(proofs):
        best = toy.every(row, 4, penalty)[0]
        assert (proof.best.tokens, proof.best.finish, proof.error) == (best.tokens, best.finish, 0.0)
        assert proof.best.score == pytest.approx(best.score, abs=1e-5)
        close(torch.tensor(proof.best.logs), torch.tensor(best.logs))


def test_the_search_error_of_a_beam_is_measured():
    toy = Toy(6, sharpness=1.0)
    beams = [found[0] for found in beam(toy, *toy.begin(20), BeamOptions(beam_size=1, steps=5, end=END))]
    proofs = exact(toy, *toy.begin(20), steps=5, end=END, known=beams)
    errors = [proof.error for proof in proofs]
    assert min(errors) == 0 and max(errors) > 0.01
    for one, proof, plain in zip(beams, proofs, exact(toy, *toy.begin(20), steps=5, end=END), strict=True):
        assert proof.best.score == pytest.approx(one.score + proof.error) == pytest.approx(plain.best.score)
        assert proof.visited <= plain.visited
    assert all(proof.visited < 6**4 for proof in proofs)


def test_the_exact_search_obeys_constraints_and_stops():
    toy = Toy(4, sharpness=0.5)
    rules = {"steps": 4, "end": END, "constraints": [BannedTokens([1])], "stops": [StopTokens([[2, 2]])]}
    wide = beam(toy, *toy.begin(6), BeamOptions(beam_size=256, **rules))
    for proof, found in zip(exact(toy, *toy.begin(6), **rules), wide, strict=True):
        assert proof.best.tokens == found[0].tokens and proof.best.finish == found[0].finish
        assert proof.best.score == pytest.approx(found[0].score)


def test_a_space_too_large_to_follow_is_refused():
    toy = Toy(50, sharpness=0.1)
    with pytest.raises(SearchError, match="hypotheses at once, but may 100"):
        exact(toy, *toy.begin(1), steps=5, end=END, most=100)
    with pytest.raises(SearchError, match="no token is allowed"):
        exact(toy, *toy.begin(1), steps=2, end=END, constraints=[BannedTokens(range(50))])
    with pytest.raises(SearchError, match="1 known hypotheses for 2 rows"):
        exact(toy, *toy.begin(2), steps=2, end=END, known=[toy.every(0, 1)[0]])


# The tree


@pytest.mark.parametrize("groups", [1, 3])
def test_the_tree_replays_the_search(groups):
    toy, recorder = Toy(6, sharpness=0.8), Recorder()
    found = beam(
        toy,
        *toy.begin(4),
        BeamOptions(beam_size=3, steps=6, end=END, groups=groups, length_penalty=0.5),
        recorder=recorder,
    )
    assert len(recorder.trees) == 4
    for row, tree in enumerate(recorder.trees):
        assert json.loads(json.dumps(tree.to_json()))["nodes"][0]["parent"] is None
        leaves = set()
        for step, places in enumerate(tree.steps()):
            kept = [place for place in places if tree.nodes[place].fate == "kept"]
            assert len(kept) <= 3
            for place in places:
                node, path = tree.nodes[place], tree.path(place)
                logs = toy.logs(row, path)
                assert len(path) == step == node.step
                assert node.score == pytest.approx(sum(logs) / max(step, 1) ** 0.5, abs=1e-5)
                if step:
                    assert tree.nodes[node.parent].fate == "kept" and tree.nodes[node.parent].step == step - 1
                    assert node.log == pytest.approx(logs[-1], abs=1e-5)
                if node.fate == "finished":
                    leaves.add(tuple(path))
                assert bool(node.why) == (node.fate != "kept")
        assert {tuple(all_tokens(one)) for one in found[row]} <= leaves
        if groups == 1:
            for places in list(tree.steps())[1:]:
                through = [tree.nodes[place].score for place in places if "rank" not in tree.nodes[place].why]
                pruned = [tree.nodes[place].score for place in places if "rank" in tree.nodes[place].why]
                assert not pruned or min(through) >= max(pruned)


def test_recording_changes_nothing():
    toy = Toy(6, sharpness=0.8)
    plain = beam(toy, *toy.begin(4), BeamOptions(beam_size=4, steps=6, end=END, best=2))
    recorder = Recorder()
    assert beam(toy, *toy.begin(4), BeamOptions(beam_size=4, steps=6, end=END, best=2), recorder=recorder) == plain
    assert {node.fate for tree in recorder.trees for node in tree.nodes} == {"kept", "pruned", "finished"}
    assert all(tree.nodes[-1].fate != "kept" for tree in recorder.trees)
