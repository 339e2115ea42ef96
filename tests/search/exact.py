"""The best way to go on, proven: every way that could still be better than the best one known is followed to its end.

Log-probabilities only ever add below zero, so a hypothesis can at most keep its sum and reach the longest length; what
cannot beat the best known even so is left out (branch and bound). Meant for small spaces, to see what a beam misses.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqloom.errors import SearchError
from seqloom.layers.state import State, select
from seqloom.search.base import (
    Constraint,
    Hypothesis,
    Step,
    Stop,
    WrittenTokens,
    apply_constraints,
    check,
    find_stop,
    log_probabilities,
    refuse_impossible,
    score_of,
)


class Proof(NamedTuple):
    """What is best, and what it took to know it."""

    best: Hypothesis
    error: float  # how much better it is than what was given: the search error; 0 if that was best already
    visited: int  # hypotheses that were followed


def exact(
    step: Step,
    last: Tensor,
    state: State,
    *,
    steps: int,
    end: int | None,
    length_penalty: float = 1.0,
    constraints: Sequence[Constraint] = (),
    stops: Sequence[Stop] = (),
    known: Sequence[Hypothesis] = (),
    most: int = 100_000,
) -> list[Proof]:
    """The best continuation of each row of `last` (B, 1) under the score that a beam ranks by.

    `known` is what a beam found best for each row: it makes the search short and is what the error is measured against.
    More than `most` open hypotheses at a time are refused.
    """
    check(steps, last)
    if known and len(known) != len(last):
        raise SearchError(f"there are {len(known)} known hypotheses for {len(last)} rows: give one for each, or none")
    proofs = []
    for row in range(len(last)):
        only = torch.tensor([row], device=last.device)
        space = Space(row, steps, end, length_penalty, constraints, stops, known[row] if known else None)
        with torch.no_grad():
            proofs.append(space.explored(step, last[only], select(state, only), most))
    return proofs


class Space:
    """All ways in which one row can go on."""

    def __init__(
        self,
        row: int,
        steps: int,
        end: int | None,
        length_penalty: float,
        constraints: Sequence[Constraint],
        stops: Sequence[Stop],
        known: Hypothesis | None,
    ) -> None:
        self.row, self.steps, self.end, self.length_penalty = row, steps, end, length_penalty
        self.constraints, self.stops = constraints, stops
        self.known, self.best = known, known

    def explored(self, step: Step, last: Tensor, state: State, most: int) -> Proof:
        tokens, logs, sums = last[:, :0], last[:, :0].float(), torch.zeros(1, device=last.device)
        visited = 0
        for count in range(1, self.steps + 1):
            visited += len(last)
            logits, state = step(last, state)
            raw = log_probabilities(logits)
            rows = torch.full((len(last),), self.row, device=last.device)
            totals = sums.to(raw)[:, None] + apply_constraints(raw, WrittenTokens(tokens, rows), self.constraints)
            if totals.isnan().any():
                refuse_impossible(self.row, count, float("nan"))
            parents, chosen = (totals > -torch.inf).nonzero().unbind(1)
            tokens, sums = torch.cat([tokens[parents], chosen[:, None]], 1), totals[parents, chosen]
            logs = torch.cat([logs.to(raw)[parents], raw[parents, chosen][:, None]], 1)
            ended = self.ended(tokens, count)
            for place in ended.nonzero()[:, 0].tolist():
                self.consider(tokens[place], logs[place], float(sums[place]), count)
            going = (~ended & self.hopeful(sums)).nonzero()[:, 0]
            if len(going) > most:
                raise SearchError(f"an exact search would follow {len(going)} hypotheses at once, but may {most}")
            if not len(going):
                break
            tokens, sums, logs = tokens[going], sums[going], logs[going]
            last, state = tokens[:, -1:], select(state, parents[going])
        if self.best is None:
            if self.steps:
                refuse_impossible(self.row, self.steps, 0.0)
            self.best = Hypothesis([], [], 0.0)
        return Proof(self.best, self.best.score - (self.known or self.best).score, visited)

    def ended(self, tokens: Tensor, count: int) -> Tensor:
        """Which of these hypotheses (N, T) are complete."""
        done = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        if count == self.steps:
            done[:] = True
        elif self.end is not None:
            done = tokens[:, -1] == self.end
        if self.stops and count < self.steps:
            done |= torch.tensor(
                [find_stop(self.stops, row) is not None for row in tokens.tolist()], device=done.device
            )
        return done

    def consider(self, tokens: Tensor, logs: Tensor, total: float, count: int) -> None:
        """Whether this complete hypothesis is the best so far."""
        score = score_of(total, count, self.length_penalty)
        if self.best is not None and score <= self.best.score:
            return
        written = tokens.tolist()
        kept = find_stop(self.stops, written)
        if written[-1] == self.end:
            self.best = Hypothesis(written[:-1], logs.tolist(), score, "end")
        elif kept is not None:
            self.best = Hypothesis(written[:kept], logs.tolist(), score, "stop")
        else:
            self.best = Hypothesis(written, logs.tolist(), score, "length")

    def hopeful(self, sums: Tensor) -> Tensor:
        """Which of these sums could still become better than the best known."""
        if self.best is None:
            return sums > -torch.inf
        return sums / self.steps**self.length_penalty > self.best.score
