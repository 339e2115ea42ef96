"""Writing a sequence with any decoder. Nothing here knows a model: only a function `step(last, state)`."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .layers.state import State, repeat, select

Step = Callable[[Tensor, State], tuple[Any, State]]  # last element (N, 1, ...) -> what comes next, new state
Choose = Callable[[Any], Tensor]  # what comes next (N, 1, ...) -> the element chosen (N, 1, ...)


class Hypothesis(NamedTuple):
    """One way to go on."""

    tokens: list[int]  # without the end
    logs: list[float]  # the log-probability of each token, the end's included
    score: float  # what it is ranked by: the sum of `logs`, divided by a power of their number


def sample(step: Step, choose: Choose, last: Tensor, state: State) -> Iterator[Tensor]:
    """Write after `last` (N, 1, ...) for as long as the caller asks."""
    while True:
        after, state = step(last, state)
        last = choose(after)
        yield last.squeeze(1)


def likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def drawn(temperature: float, chance: torch.Generator) -> Choose:
    """Choose as often as it is likely; below temperature 1 the likely becomes likelier, above it rarer."""

    def choose(logits: Tensor) -> Tensor:
        weights = (logits / temperature).softmax(-1)
        return torch.multinomial(weights.flatten(0, -2), 1, generator=chance).view(logits.shape[:-1])

    return choose


def write(step: Step, choose: Choose, last: Tensor, state: State, *, steps: int, end: int) -> list[Hypothesis]:
    """One continuation of each row of `last` (B, 1), up to its end or to `steps` tokens."""
    chosen: list[tuple[Tensor, Tensor]] = []  # tokens and their log-probabilities, (B,) each
    done = torch.zeros(len(last), dtype=torch.bool, device=last.device)

    def noted(logits: Tensor) -> Tensor:
        token = choose(logits)
        gains = logits.log_softmax(-1).gather(-1, token[..., None]).squeeze(-1)
        chosen.append((token[:, 0], gains[:, 0]))
        return token

    for token in islice(sample(step, noted, last, state), steps):
        done |= token == end
        if done.all():
            break
    if not chosen:
        return [Hypothesis([], [], 0.0) for _ in range(len(last))]
    tokens, logs = (torch.stack(list(part), 1).tolist() for part in zip(*chosen, strict=True))
    return [hypothesis(*pair, end, 0.0) for pair in zip(tokens, logs, strict=True)]


def greedy(step: Step, last: Tensor, state: State, *, steps: int, end: int) -> list[Hypothesis]:
    """The likeliest token at each step."""
    return write(step, likeliest, last, state, steps=steps, end=end)


def beam(
    step: Step, last: Tensor, state: State, *, width: int, steps: int, end: int, length_penalty: float = 1.0
) -> list[list[Hypothesis]]:
    """The best `width` continuations of each row of `last` (B, 1), best first."""
    rows, device = len(last), last.device
    state, token = repeat(state, width), last.repeat_interleave(width, 0)  # (B * width, 1)
    scores = torch.full((rows, width), -torch.inf, device=device)
    scores[:, 0] = 0.0  # the copies are equal: let one of them speak
    done = torch.zeros(rows * width, dtype=torch.bool, device=device)
    tokens = torch.empty(rows * width, 0, dtype=torch.long, device=device)
    logs = torch.empty(rows * width, 0, device=device)
    for _ in range(steps):
        logits, state = step(token, state)
        gains = logits[:, -1].log_softmax(-1)
        gains[done] = -torch.inf
        gains[done, end] = 0.0  # a finished row only repeats its end, for free
        total = (scores.flatten()[:, None] + gains).view(rows, -1)
        scores, choice = total.topk(width)
        parent, chosen = choice // gains.shape[1], choice % gains.shape[1]
        origin = (parent + torch.arange(rows, device=device)[:, None] * width).flatten()
        token = chosen.view(-1, 1)
        tokens = torch.cat([tokens[origin], token], 1)
        logs = torch.cat([logs[origin], gains[origin].gather(1, token)], 1)
        state, done = select(state, origin), done[origin] | (token[:, 0] == end)
        if done.all():
            break
    possible = scores.flatten() > -torch.inf  # a space smaller than the beam leaves places empty
    found = [
        [hypothesis(tokens[i].tolist(), logs[i].tolist(), end, length_penalty) for i in places if possible[i]]
        for places in torch.arange(rows * width).view(rows, width).tolist()
    ]
    return [sorted(row, key=lambda one: -one.score) for row in found]


def hypothesis(tokens: list[int], logs: list[float], end: int, length_penalty: float) -> Hypothesis:
    """What was written up to the end, its ledger and its score."""
    length = tokens.index(end) if end in tokens else len(tokens)
    ledger = logs[: length + 1]
    return Hypothesis(tokens[:length], ledger, sum(ledger) / max(len(ledger), 1) ** length_penalty)
