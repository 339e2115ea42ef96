"""Tokens from what every element of a sequence says, blanks among it: the best path, and a beam over prefixes.

`logs` (T, V) are the log-probabilities of the tokens at each element; token 0 is the blank.
"""

from collections.abc import Sequence

import numpy as np

from ..arrays import Doubles, Integers

BLANK = 0  # says nothing
Tokens = tuple[int, ...]


def best_path(logs: Doubles) -> list[int]:
    """The tokens of the likeliest path: what each element says, without repetitions and then without blanks."""
    path = logs.argmax(1)
    kept = path[np.append(True, path[1:] != path[:-1])] if len(path) else path
    return [int(token) for token in kept if token != BLANK]


def prefix_beam(logs: Doubles, beam_size: int) -> list[list[int]]:
    """The sequences of tokens that are likeliest over all of their paths, best first, among those whose every prefix
    was one of the `beam_size` best (Hannun et al., 2014)."""
    prefixes: list[Tokens] = [()]
    blank, other = np.zeros(1), np.full(1, -np.inf)  # how probable each prefix is, by what its paths end with
    for frame in logs:
        last = np.array([prefix[-1] if prefix else BLANK for prefix in prefixes])
        both = np.logaddexp(blank, other)
        stays = np.where(last == BLANK, -np.inf, other + frame[last])
        grows = both[:, None] + frame
        grows[np.arange(len(last)), last] = blank + frame[last]  # the same token again needs a blank before it
        grows[:, BLANK] = -np.inf
        places = {prefix: place for place, prefix in enumerate(prefixes)}
        for place, prefix in enumerate(prefixes):  # what grows into a prefix that is there already, joins it
            if prefix and (parent := places.get(prefix[:-1])) is not None:
                stays[place] = np.logaddexp(stays[place], grows[parent, prefix[-1]])
                grows[parent, prefix[-1]] = -np.inf
        ends = both + frame[BLANK]
        scores = np.concatenate([np.logaddexp(ends, stays), grows.ravel()])
        best = choose_best(scores, beam_size)
        old, new = best[best < len(prefixes)], best[best >= len(prefixes)] - len(prefixes)
        grown = [(*prefixes[one // len(frame)], int(one % len(frame))) for one in new.tolist()]
        prefixes = [*(prefixes[place] for place in old.tolist()), *grown]
        blank = np.concatenate([ends[old], np.full(len(new), -np.inf)])
        other = np.concatenate([stays[old], grows.ravel()[new]])
    order = np.argsort(-np.logaddexp(blank, other), kind="stable")
    return [list(prefixes[place]) for place in order.tolist()]


def choose_best(scores: Doubles, count: int) -> Integers:
    """The places of the highest finite scores."""
    best = np.argpartition(-scores, count - 1)[:count] if count < len(scores) else np.arange(len(scores))
    return best[np.isfinite(scores[best])]


def prefix_logs(logs: Doubles, answers: Sequence[Sequence[int]]) -> list[list[float]]:
    """Of each answer the log-probability of every token after those before it, and of its end after all of them: over
    all paths, so that their sum is the log-probability of the answer."""
    count, longest = len(answers), max(map(len, answers), default=0)
    tokens = np.zeros((count, longest), np.int64)
    for row, answer in enumerate(answers):
        tokens[row, : len(answer)] = answer
    repeats = np.zeros(tokens.shape, bool)
    repeats[:, 1:] = tokens[:, 1:] == tokens[:, :-1]
    blank, other = np.full((count, longest + 1), -np.inf), np.full((count, longest + 1), -np.inf)  # by prefix and end
    blank[:, 0] = 0
    prefix = np.full((count, longest), -np.inf)  # that a path begins with the prefix, however it goes on
    for frame in logs:
        begins = np.logaddexp(blank[:, :-1], np.where(repeats, -np.inf, other[:, :-1])) + frame[tokens]
        prefix = np.logaddexp(prefix, begins)
        blank, stays = np.logaddexp(blank, other) + frame[BLANK], other[:, 1:] + frame[tokens]
        other[:, 1:] = np.logaddexp(begins, stays)
    whole = np.logaddexp(blank, other)
    gains = []
    for row, answer in enumerate(answers):
        sums = [0.0, *prefix[row, : len(answer)].tolist(), float(whole[row, len(answer)])]
        gains.append([after - before for before, after in zip(sums, sums[1:], strict=False)])
    return gains
