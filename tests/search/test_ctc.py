"""CTC against brute force: the probability of an answer is the sum over all paths that say it."""

from itertools import groupby, product

import numpy as np
import pytest
import torch

from seqloom.layers.ctc import CTC, count_needed
from seqloom.search.ctc import best_path, prefix_beam, prefix_logs


def draw_logs(steps, tokens, seed, spread=2.0):
    logits = spread * np.random.default_rng(seed).standard_normal((steps, tokens))
    return logits - np.logaddexp.reduce(logits, 1, keepdims=True)


def say(path):
    """What a path says: each run of equal tokens once, without blanks."""
    return tuple(token for token, _ in groupby(path) if token)


def sum_paths(logs):
    """The probability of every sequence of tokens, over all paths."""
    found = {}
    for path in product(range(logs.shape[1]), repeat=len(logs)):
        said = say(path)
        found[said] = found.get(said, 0.0) + float(np.exp(sum(logs[t, token] for t, token in enumerate(path))))
    return found


CASES = [(steps, tokens, seed) for steps, tokens in ((1, 3), (3, 2), (4, 3), (5, 4)) for seed in range(3)]


@pytest.mark.parametrize(("steps", "tokens", "seed"), CASES)
def test_a_wide_beam_finds_what_is_likeliest_over_all_paths(steps, tokens, seed):
    logs = draw_logs(steps, tokens, seed)
    true = sum_paths(logs)
    found = prefix_beam(logs, beam_size=10_000)
    assert [tuple(one) for one in found] == sorted(true, key=lambda said: -true[said])
    narrow = [tuple(one) for one in prefix_beam(logs, beam_size=3)]
    assert len(narrow) == min(3, len(true)) and len(set(narrow)) == len(narrow)


@pytest.mark.parametrize(("steps", "tokens", "seed"), CASES)
def test_the_best_path_is_that_of_all_paths(steps, tokens, seed):
    logs = draw_logs(steps, tokens, seed)
    best = max(product(range(tokens), repeat=steps), key=lambda path: sum(logs[t, one] for t, one in enumerate(path)))
    assert tuple(best_path(logs)) == say(best)


@pytest.mark.parametrize(("steps", "tokens", "seed"), CASES)
def test_tokens_and_the_end_have_the_probabilities_of_all_paths_that_go_on_so(steps, tokens, seed):
    logs = draw_logs(steps, tokens, seed)
    true = sum_paths(logs)
    answers = list(true)
    for answer, found in zip(answers, prefix_logs(logs, answers), strict=True):
        begins = [sum(p for said, p in true.items() if said[:n] == answer[:n]) for n in range(len(answer) + 1)]
        expected = [*(np.log(after / before) for before, after in zip(begins, begins[1:], strict=False))]
        np.testing.assert_allclose(found, [*expected, np.log(true[answer] / begins[-1])], atol=1e-9)


def test_a_beam_finds_what_the_best_path_misses():
    logs = np.log(np.array([[0.6, 0.4], [0.6, 0.4]]))  # two blanks are the best path, but a token is likelier
    assert best_path(logs) == [] and prefix_beam(logs, 2) == [[1], []]


@pytest.mark.parametrize("seed", range(4))
def test_the_head_is_as_surprised_as_all_paths_say_and_padding_changes_nothing(seed):
    torch.manual_seed(seed)
    head, features = CTC(5, 4).double(), torch.randn(3, 5, 5, dtype=torch.double)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    target = torch.tensor([[1, 1, 2, 0, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    dirty = features.masked_fill(~mask[..., None], torch.nan)
    found = head.log_probability(head(features), target, mask).detach()
    for row in range(3):
        logs = head(features[row][mask[row]]).log_softmax(-1).detach().numpy()
        assert float(found[row]) == pytest.approx(np.log(sum_paths(logs)[tuple(t for t in target[row].tolist() if t)]))
    total, count = head.loss(dirty, target, mask)
    assert float(total.detach()) == pytest.approx(-float(found.sum())) and int(count) == 4


@pytest.mark.parametrize("target", [[1, 2], [1, 1], [1, 1, 1, 2], []])
def test_an_answer_has_a_path_from_the_length_that_it_needs_on(target):
    padded = torch.tensor([target + [0] * (6 - len(target))])
    needed = int(count_needed(padded))
    for steps in range(1, 6):
        said = sum_paths(draw_logs(steps, 3, 0))
        assert (tuple(target) in said) == (steps >= needed)
