"""Beam search: of all ways to go on, the best few are kept at every step.

A beam has `width` places. Its hypotheses are ranked by their score, finished ones too: a finished hypothesis holds its
place for as long as it is among the best, and is never forgotten; when all the places are held by finished ones, the
beam is done. With groups, the places are shared out among beams that avoid each other's tokens (Vijayakumar et al.,
2018). Each source has `width` rows in the batch until its search is over; then they leave it.

The model's tensors are touched as little as possible: what a step finds is a few numbers a row, and what becomes of
them is decided here, by the processor. A hypothesis is a way back through the steps; it is read out when it is asked
for.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..arrays import Doubles, Integers
from ..errors import SearchError
from ..layers.state import State, repeat, select
from .base import (
    Constraint,
    Hypothesis,
    Patience,
    Rows,
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
from .choosing import prepare_rows, take_largest
from .constraints import list_fixed_bans
from .tree import Candidate, Recorder

Meaning = Callable[[Hypothesis], Hashable]  # what a hypothesis says: two that say the same are one answer


@dataclass(frozen=True)
class BeamOptions:
    """How hypotheses are ranked, kept and ended.

    Asked for fewer than its places, a search ends as soon as nothing can come before the `best` it has. Of those with
    the same `meaning`, which are different ways to write the same, the best stands for all, with its own score; the
    others hold no place once they are finished.
    """

    beam_size: int
    steps: int  # tokens at most
    end: int | None  # the token that ends a hypothesis
    length_penalty: float = 1.0  # the power of its length that a score is divided by
    groups: int = 1  # that avoid each other's tokens …
    diversity: float = 0.5  # … so strongly
    best: int = 0  # how many hypotheses are wanted; 0 is as many as there are places
    constraints: Sequence[Constraint] = ()
    stops: Sequence[Stop] = ()
    meaning: Meaning | None = None

    def __post_init__(self) -> None:
        if self.beam_size < 1:
            raise SearchError(f"the beam size is {self.beam_size}, but it must be at least 1")
        if self.groups < 1 or self.beam_size % self.groups:
            raise SearchError(f"a beam of {self.beam_size} cannot be divided evenly among {self.groups} groups")
        if not self.length_penalty >= 0 or not self.diversity >= 0:
            raise SearchError("the length penalty and the diversity of a beam cannot be less than 0")

    @property
    def places(self) -> int:
        """The beam size of one group."""
        return self.beam_size // self.groups

    @property
    def wanted(self) -> int:
        return self.best or self.beam_size


def beam(
    step: Step,
    last: Tensor,
    state: State,
    options: BeamOptions,
    recorder: Recorder | None = None,
    patience: Patience | None = None,
) -> list[list[Hypothesis]]:
    """The best continuations of each row of `last` (B, 1), best first: as many as the options want."""
    check(options.steps, last)
    search = Beams(options, len(last), last.device, recorder)
    spent = "length"
    with torch.no_grad():
        rows: Rows | None = None
        if search.banned is not None and options.groups == 1:  # nothing but the likeliest tokens is asked for
            rows = prepare_rows(step, last, state, options.beam_size, options.places, search.banned)
        newest = last[:, 0].cpu().numpy()
        for count in range(options.steps):
            start = perf_counter()
            if rows is not None:
                candidates = search.rank_all(*rows.advance(newest))
            else:
                logits, state = step(torch.from_numpy(newest[:, None]).to(last.device), state)
                candidates = search.choose(logits)
            newest, origin = search.advance(candidates)
            if not search.sources:
                break
            first = not count and options.beam_size > 1  # the same for all places: it was made once
            if rows is not None:
                if first:
                    rows.repeat(options.beam_size)
                if origin is not None:
                    rows.select(origin)
            else:
                state = repeat(state, options.beam_size) if first else state
                state = state if origin is None else select(state, torch.from_numpy(origin).to(last.device))
            if patience is not None and patience.ends(start):
                spent = "time"
                break
    return search.collect(spent)


class GroupCandidates:
    """The candidates of one group at one step, (B, considered), and which of them are the best, (B, places)."""

    def __init__(self, options: BeamOptions, sums: Doubles, first: int, extensions: "Extensions") -> None:
        """From the sums so far (B, S) and the best tokens (B · S, k) to follow in the slots from `first` on."""
        batch, slots = sums.shape
        self.tokens, self.own = extensions.tokens.reshape(batch, -1), extensions.own.reshape(batch, -1)
        self.first, self.each = first, self.tokens.shape[1] // slots
        self.sums = (sums.reshape(-1, 1) + extensions.gains).reshape(batch, -1)
        same = extensions.worth is extensions.gains
        self.ranks = self.sums if same else (sums.reshape(-1, 1) + extensions.worth).reshape(batch, -1)
        self.order = (-self.ranks).argsort(1, kind="stable")
        self.index = self.order[:, : options.places]
        self.gap = options.places - self.index.shape[1]  # a space smaller than the beam leaves gaps
        self.flat = self.index + np.arange(0, self.sums.size, self.sums.shape[1])[:, None]

    def slot(self, candidate: Any) -> Any:
        """Which slot a candidate goes on from, or an array of them."""
        return candidate // self.each + self.first

    def best(self, part: NDArray[Any], nothing: float) -> NDArray[Any]:
        """Of what all candidates have, that of the best: (B, places)."""
        return self.fill(part.take(self.flat), nothing)

    def fill(self, chosen: NDArray[Any], nothing: float) -> NDArray[Any]:
        return np.pad(chosen, ((0, 0), (0, self.gap)), constant_values=nothing) if self.gap else chosen


class Extensions(NamedTuple):
    """The tokens (N, k) that may follow in each row, and their log-probabilities."""

    tokens: Integers
    own: Doubles  # the model's
    gains: Doubles  # after the constraints
    worth: Doubles  # after the penalties of other groups


class BeamStep(NamedTuple):
    """What was written in each row, and in which row of the step before it goes on."""

    origin: Integers
    tokens: Integers
    logs: Doubles

    def select_rows(self, rows: Integers) -> "BeamStep":
        return BeamStep(self.origin[rows], self.tokens[rows], self.logs[rows])


class Beams:
    """All sources at one step. A row of the batch is a slot of a group of a source, in that order."""

    def __init__(self, options: BeamOptions, sources: int, device: torch.device, recorder: Recorder | None) -> None:
        self.options, self.recorder, self.device = options, recorder, device
        self.sources = list(range(sources))  # those still searched
        self.pools: list[list[Hypothesis]] = [[] for _ in self.sources]  # what is finished
        self.said: list[set[Hashable]] = [set() for _ in self.sources]  # what that means, by group
        self.banned = list_fixed_bans(options.constraints)
        self.sums: Doubles = np.zeros((sources, 1))  # (B, slots), minus infinity where a slot is empty
        self.steps: list[BeamStep] = []
        self.tokens = torch.empty(sources, 0, dtype=torch.long, device=device)  # (B · slots, T), if anyone wants it
        self.pooled = np.full((sources, options.groups, options.places), -np.inf)  # the best scores
        self.any_pooled = False
        self.finished = np.zeros((sources, 1), bool)  # (B, width), by the newest token
        if recorder is not None:
            recorder.begin(sources)

    @property
    def count(self) -> int:
        return len(self.steps)

    def advance(self, groups: Sequence[GroupCandidates]) -> tuple[Integers, Integers | None]:
        """From the candidates of all groups: the newest tokens (N,), and the rows they go on from, if others."""
        options, (batch, slots) = self.options, self.sums.shape
        parents = join_groups([group.fill(group.slot(group.index), 0) for group in groups])
        tokens = join_groups([group.best(group.tokens, 0) for group in groups])
        sums = join_groups([group.best(group.sums, -np.inf) for group in groups])
        logs = join_groups([group.best(group.own, -np.inf) for group in groups])
        here = np.minimum(np.arange(options.beam_size), slots - 1)
        parents = np.where(sums > -np.inf, parents, here)  # an empty slot stays as it is
        origin = (parents + np.arange(0, batch * slots, slots)[:, None]).ravel()
        self.steps.append(BeamStep(origin, tokens.ravel(), logs.ravel()))
        if self.banned is None or options.stops:
            newest = torch.from_numpy(tokens.reshape(-1, 1)).to(self.device)
            self.tokens = torch.cat([self.tokens[torch.from_numpy(origin).to(self.device)], newest], 1)
        going = self.close(sums, tokens)
        if self.recorder is not None:
            self.record(self.recorder, groups, going)
        self.sums = np.where(going, sums, -np.inf)
        if slots < options.beam_size:  # the rows were repeated for their places, and that is all
            origin, still = np.arange(len(origin)), True
        else:
            still = bool((parents == here).all())
        return self.drop_finished(tokens.ravel(), origin, still)

    def rank_all(self, values: NDArray[Any], tokens: Integers) -> list[GroupCandidates]:
        """The likeliest tokens (B · slots, k) of all rows, where there is one group and nothing but bans."""
        gains: Doubles = values.astype(np.float64)
        return [self.rank(0, Extensions(tokens, gains, gains, gains))]

    def choose(self, logits: Tensor) -> list[GroupCandidates]:
        """Group by group, each avoiding the tokens of those before it at this step."""
        options, (batch, slots) = self.options, self.sums.shape
        logs = log_probabilities(logits)
        allowed = apply_constraints(logs, self.written(), options.constraints).view(batch, slots, -1)
        penalties = torch.zeros_like(allowed[:, 0])
        groups = []
        for number in range(options.groups):
            first = number * options.places if self.count else 0  # the first step goes on from one slot
            own = slice(first, first + options.places)
            mine = allowed[:, own].flatten(0, 1)
            judged = (allowed[:, own] - penalties[:, None]).flatten(0, 1) if number else mine
            worth, tokens = take_largest(judged, min(options.places, logs.shape[1]))
            own_logs = logs.view_as(allowed)[:, own].flatten(0, 1).gather(1, tokens)
            gains = to_doubles(mine.gather(1, tokens))
            guided = to_doubles(worth) if number else gains
            groups.append(self.rank(first, Extensions(tokens.cpu().numpy(), to_doubles(own_logs), gains, guided)))
            if options.diversity and number + 1 < options.groups:
                chosen = groups[-1].best(groups[-1].tokens, 0)
                live = groups[-1].best(groups[-1].sums, -np.inf) > -np.inf
                shares = torch.from_numpy(options.diversity * live).to(penalties)
                penalties = penalties.scatter_add(1, torch.from_numpy(chosen).to(self.device), shares)
        return groups

    def rank(self, first: int, extensions: Extensions) -> GroupCandidates:
        group = GroupCandidates(self.options, self.sums[:, first : first + self.options.places], first, extensions)
        if np.isnan(group.ranks.max()):
            strange = np.isnan(group.ranks).any(1)
            refuse_impossible(self.sources[int(strange.argmax())], self.count + 1, float("nan"))
        return group

    def written(self) -> WrittenTokens:
        rows = torch.tensor(self.sources, device=self.device)
        return WrittenTokens(self.tokens, rows.repeat_interleave(self.sums.shape[1]))

    def close(self, sums: Doubles, tokens: Integers) -> NDArray[np.bool_]:
        """Pool what is finished and among the best; true (B, width) for what goes on."""
        options, batch = self.options, len(self.sources)
        scores = (sums / self.count**options.length_penalty).reshape(batch, options.groups, -1)
        inside = sums > -np.inf
        if self.any_pooled:
            before = (self.pooled[:, :, None] > scores[..., None]).sum(-1)
            inside &= (before + np.arange(options.places) < options.places).reshape(batch, -1)
        self.finished = inside & (tokens == (-1 if options.end is None else options.end))
        lengths: dict[int, int] = {}
        if options.stops:
            for row in (inside & ~self.finished).ravel().nonzero()[0].tolist():
                output = find_stop(options.stops, self.tokens[row].tolist())
                if output is not None:
                    lengths[row] = output
            self.finished.ravel()[list(lengths)] = True
        if self.finished.any():
            self.any_pooled = True
            new = np.where(self.finished.reshape(scores.shape), scores, -np.inf)
            for row in self.finished.ravel().nonzero()[0].tolist():
                source, one = self.sources[row // options.beam_size], self.hypothesis(row, sums, lengths.get(row))
                self.pools[source].append(one)
                if options.meaning is not None:
                    meaning = row % options.beam_size // options.places, options.meaning(one)
                    new.flat[row] = -np.inf if meaning in self.said[source] else new.flat[row]
                    self.said[source].add(meaning)
            self.pooled = -np.sort(-np.concatenate([self.pooled, new], -1), -1)[..., : options.places]
        return inside & ~self.finished

    def hypothesis(self, row: int, sums: Doubles, length: int | None, finish: str = "") -> Hypothesis:
        """The hypothesis that ends in a row of the newest step."""
        score, (tokens, logs) = score_of(float(sums.flat[row]), self.count, self.options.length_penalty), self.path(row)
        if finish:
            return Hypothesis(tokens, logs, score, finish)
        return Hypothesis(tokens[: -1 if length is None else length], logs, score, "end" if length is None else "stop")

    def path(self, row: int) -> tuple[list[int], list[float]]:
        tokens, logs = [], []
        for step in reversed(self.steps):
            tokens.append(int(step.tokens[row]))
            logs.append(float(step.logs[row]))
            row = int(step.origin[row])
        return tokens[::-1], logs[::-1]

    def record(self, recorder: Recorder, groups: Sequence[GroupCandidates], going: NDArray[np.bool_]) -> None:
        """Tell the recorder of every possible candidate of this step."""
        options = self.options
        for place, source in enumerate(self.sources):
            noted: list[Candidate] = []
            for number, group in enumerate(groups):
                first = number * options.places
                slots = {int(one): first + slot for slot, one in enumerate(group.index[place])}
                for rank, one in enumerate(group.order[place].tolist(), 1):
                    if group.sums[place, one] == -np.inf:
                        continue
                    slot, token = slots.get(one), int(group.tokens[place, one])
                    if slot is None:
                        fate, why = "pruned", f"rank {rank} in a beam of {options.places}"
                    elif self.finished[place, slot]:
                        fate, why = "finished", "end" if token == options.end else "stop"
                    elif going[place, slot]:
                        fate, why = "kept", ""
                    else:
                        fate, why = "pruned", "finished hypotheses hold the places before it"
                    score = float(group.sums[place, one] / self.count**options.length_penalty)
                    facts = group.slot(one), token, float(group.own[place, one]), score, number
                    noted.append(Candidate(*facts, slot if fate == "kept" else None, fate, why))
            recorder.note(source, self.count, noted)

    def drop_finished(self, tokens: Integers, origin: Integers, still: bool) -> tuple[Integers, Integers | None]:
        """Let the sources leave whose search is over; what is left to read and where it goes on from."""
        options = self.options
        hopes: Doubles = self.sums.max(1)
        stays: NDArray[np.bool_] = hopes > -np.inf
        if not stays.all():
            for place, source in enumerate(self.sources):
                if not stays[place] and not self.pools[source]:
                    refuse_impossible(source, self.count, 0.0)
        if self.any_pooled and options.wanted < options.beam_size and options.groups == 1:
            stays = stays & ~self.is_decided(hopes)  # not with groups, which may find the same, which counts once
        if not stays.all():
            still = False
            if self.recorder is not None:
                for place in np.flatnonzero(~stays).tolist():
                    self.recorder.close(self.sources[place], "pruned", "nothing open can overtake what is finished")
            keep = np.flatnonzero(stays)
            rows = (keep[:, None] * options.beam_size + np.arange(options.beam_size)).ravel()
            self.sources = [self.sources[place] for place in keep]
            self.sums, self.pooled, self.steps[-1] = (
                self.sums[keep],
                self.pooled[keep],
                self.steps[-1].select_rows(rows),
            )
            if self.banned is None or options.stops:
                self.tokens = self.tokens[torch.from_numpy(rows).to(self.device)]
            tokens, origin = tokens[rows], origin[rows]
        return tokens, None if still else origin

    def is_decided(self, hopes: Doubles) -> NDArray[np.bool_]:
        """Whether enough is finished that no open hypothesis can overtake: log-probabilities only ever add below zero,
        and the most that a length can help is at the last step."""
        options = self.options
        hope = hopes / options.steps**options.length_penalty
        ahead = (self.pooled.reshape(len(hope), -1) >= hope[:, None]).sum(1)
        return ahead >= options.wanted

    def collect(self, spent: str) -> list[list[Hypothesis]]:
        """What is finished and, where room or time was `spent`, what is not; best first, nothing twice."""
        for row in (self.sums > -np.inf).ravel().nonzero()[0].tolist():
            source = self.sources[row // self.options.beam_size] if self.count else row
            self.pools[source].append(self.hypothesis(row, self.sums, None, spent))
        if self.recorder is not None:
            for source in self.sources:
                self.recorder.close(source, "finished", spent)
        meaning, wanted = self.options.meaning or token_key, self.options.wanted
        ranked = (sorted(pool, key=lambda one: -one.score) for pool in self.pools)
        return [deduplicate(pool, meaning)[:wanted] for pool in ranked]


def join_groups(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """What all groups have, side by side."""
    return np.concatenate(parts, 1) if len(parts) > 1 else parts[0]


def to_doubles(values: Tensor) -> Doubles:
    return values.cpu().numpy().astype(np.float64)


def token_key(one: Hypothesis) -> Hashable:
    return (*one.tokens, len(one.logs))


def deduplicate(ranked: Sequence[Hypothesis], meaning: Meaning) -> list[Hypothesis]:
    """Groups may find the same, and what is written in different ways may mean the same."""
    first: dict[Hashable, Hypothesis] = {}
    for one in ranked:
        first.setdefault(meaning(one), one)
    return list(first.values())
