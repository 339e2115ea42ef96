"""Beam search: of all ways to go on, the best few are kept at every step.

A beam has `width` places. Its hypotheses are ranked by their score, finished ones too: a finished hypothesis holds its
place for as long as it is among the best, and is never forgotten; when all the places are held by finished ones, the
beam is done. With groups, the places are shared out among beams that avoid each other's tokens (Vijayakumar et al.,
2018). Each source has `width` rows in the batch until its search is over; then they leave it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import SearchError
from ..layers.state import State, repeat, select
from .base import (
    Constraint,
    Hypothesis,
    Step,
    Stop,
    Written,
    check,
    constrained,
    kept_by,
    likelihoods,
    refuse_impossible,
    score_of,
)
from .choosing import largest
from .tree import Candidate, Recorder


@dataclass(frozen=True)
class Rules:
    """How hypotheses are ranked, kept and ended."""

    width: int
    steps: int
    end: int | None
    length_penalty: float = 1.0
    groups: int = 1
    diversity: float = 0.5
    best: int = 0
    constraints: Sequence[Constraint] = ()
    stops: Sequence[Stop] = ()

    def __post_init__(self) -> None:
        if self.width < 1:
            raise SearchError(f"a beam has at least 1 place, but its width is {self.width}")
        if self.groups < 1 or self.width % self.groups:
            raise SearchError(f"{self.width} places cannot be shared out evenly among {self.groups} groups")
        if not self.length_penalty >= 0 or not self.diversity >= 0:
            raise SearchError("the length penalty and the diversity of a beam cannot be less than 0")

    @property
    def places(self) -> int:
        """Of one group."""
        return self.width // self.groups


def beam(
    step: Step,
    last: Tensor,
    state: State,
    *,
    width: int,
    steps: int,
    end: int | None,
    length_penalty: float = 1.0,
    groups: int = 1,
    diversity: float = 0.5,
    best: int = 0,
    constraints: Sequence[Constraint] = (),
    stops: Sequence[Stop] = (),
    recorder: Recorder | None = None,
) -> list[list[Hypothesis]]:
    """The best continuations of each row of `last` (B, 1), best first: as many as the beam is wide, or `best` of them.

    Asked for fewer than its width, a search ends as soon as nothing can come before those it has.
    """
    check(steps, last)
    rules = Rules(width, steps, end, length_penalty, groups, diversity, best or width, constraints, stops)
    search = Beams(rules, len(last), last.device, recorder)
    for count in range(steps):
        with torch.no_grad():
            logits, state = step(last, state)
            last, origin = search.advance(likelihoods(logits))
            if not search.sources:
                break
            if not count and width > 1:
                state = repeat(state, width)  # the first step is the same for all places: it was made once
            if origin is not None:
                state = select(state, origin)
    return search.found()


class Chosen:
    """The candidates of one group at one step: those considered, (B, considered), and the best of them, (B, places)."""

    def __init__(self, rules: Rules, sums: Tensor, logs: Tensor, first: int, penalties: Tensor | None) -> None:
        """From the sums so far (B, S) and the log-probabilities (B, S, V) of what could follow in these slots."""
        batch, _, size = logs.shape
        judged = logs if penalties is None else logs - penalties[:, None]
        values, tokens = largest(judged.flatten(0, 1), min(rules.places, size))
        gains = values if penalties is None else logs.flatten(0, 1).gather(1, tokens)
        self.tokens = tokens.view(batch, -1)
        slots = torch.arange(self.tokens.shape[1], device=tokens.device) // tokens.shape[1] + first
        self.slots = slots.expand_as(self.tokens)  # that each candidate goes on from
        self.sums = (sums.flatten()[:, None] + gains).view(batch, -1)
        self.ranks = self.sums if penalties is None else (sums.flatten()[:, None] + values).view(batch, -1)
        self.index = self.ranks.topk(min(rules.places, self.ranks.shape[1]))[1]

    def best(self, part: Tensor, places: int, nothing: float) -> Tensor:
        """Of what all candidates have, that of the best: (B, places); a space smaller than the beam leaves gaps."""
        found = part.gather(1, self.index)
        gap = found.new_full((len(found), places - found.shape[1]), nothing)
        return torch.cat([found, gap], 1) if gap.shape[1] else found


class Beams:
    """All sources at one step. A row of the batch is a slot of a group of a source, in that order."""

    def __init__(self, rules: Rules, sources: int, device: torch.device, recorder: Recorder | None) -> None:
        self.rules, self.recorder = rules, recorder
        self.sources = list(range(sources))  # those still searched
        self.pools: list[list[Hypothesis]] = [[] for _ in self.sources]  # what is finished
        self.sums = torch.zeros(sources, 1, device=device)  # (B, slots), minus infinity where a slot is empty
        self.tokens = torch.empty(sources, 0, dtype=torch.long, device=device)  # (B · slots, T)
        self.logs = torch.empty(sources, 0, device=device)
        self.pooled = torch.full((sources, rules.groups, rules.places), -torch.inf, device=device)  # the best scores
        self.finished = torch.zeros(sources, 1, dtype=torch.bool, device=device)  # (B, width), by the newest token
        self.places = torch.arange(rules.width, device=device)
        self.count = 0
        if recorder is not None:
            recorder.begin(sources)

    def advance(self, logs: Tensor) -> tuple[Tensor, Tensor | None]:
        """From log-probabilities (B · slots, V): the newest tokens (N, 1), and the rows they go on from, if others."""
        rules, batch = self.rules, len(self.sources)
        self.count += 1
        allowed = constrained(logs, self.written(), rules.constraints) if rules.constraints else logs
        groups = self.choose(allowed.view(batch, -1, logs.shape[1]))
        parents = torch.cat([group.best(group.slots, rules.places, 0) for group in groups], 1)
        token = torch.cat([group.best(group.tokens, rules.places, 0) for group in groups], 1)
        sums = torch.cat([group.best(group.sums, rules.places, -torch.inf) for group in groups], 1)
        if sums.isnan().any():
            refuse_impossible(self.sources[int(sums.isnan().any(1).nonzero()[0])], self.count, float("nan"))
        slots = self.sums.shape[1]
        here = self.places.expand_as(sums)
        parents = torch.where(sums > -torch.inf, parents, here.clamp(max=slots - 1))  # an empty slot stays as it is
        origin = (parents + torch.arange(0, batch * slots, slots, device=sums.device)[:, None]).flatten()
        flat = token.view(-1, 1)
        self.tokens = torch.cat([self.tokens[origin], flat], 1)
        self.logs = torch.cat([self.logs.to(logs)[origin], logs[origin, flat[:, 0]][:, None]], 1)
        going = self.close(sums, token)
        if self.recorder is not None:
            self.record(self.recorder, groups, logs.view(batch, slots, -1), going)
        self.sums = sums.masked_fill(~going, -torch.inf)
        if slots < rules.width:  # the rows were repeated for their places, and that is all
            origin, still = torch.arange(len(origin), device=sums.device), True
        else:
            still = torch.equal(parents, here)
        return self.left(flat, origin, still)

    def written(self) -> Written:
        rows = torch.tensor(self.sources, device=self.tokens.device)
        return Written(self.tokens, rows.repeat_interleave(self.sums.shape[1]))

    def choose(self, allowed: Tensor) -> list[Chosen]:
        """Group by group, each avoiding the tokens of those before it at this step."""
        rules, groups, penalties = self.rules, [], None
        for number in range(rules.groups):
            first = number * rules.places if self.count > 1 else 0  # the first step goes on from one slot
            own = slice(first, first + rules.places)
            group = Chosen(rules, self.sums[:, own].to(allowed), allowed[:, own], first, penalties)
            groups.append(group)
            if rules.diversity and number + 1 < rules.groups:
                penalties = torch.zeros_like(allowed[:, 0]) if penalties is None else penalties
                token, sums = group.tokens.gather(1, group.index), group.sums.gather(1, group.index)
                penalties = penalties.scatter_add(1, token, rules.diversity * (sums > -torch.inf).to(penalties))
        return groups

    def close(self, sums: Tensor, token: Tensor) -> Tensor:
        """Pool what is finished and among the best; true (B, width) for what goes on."""
        rules, batch = self.rules, len(self.sources)
        scores = (sums / self.count**rules.length_penalty).view(batch, rules.groups, -1)
        self.pooled = self.pooled.to(scores)
        before = (self.pooled[:, :, None] > scores[..., None]).sum(-1)
        inside = ((before + self.places[: rules.places] < rules.places) & (scores > -torch.inf)).view(batch, -1)
        ends = token == rules.end if rules.end is not None else torch.zeros_like(inside)
        kept = {}
        if rules.stops:
            for row in (inside & ~ends).flatten().nonzero()[:, 0].tolist():
                output = kept_by(rules.stops, self.tokens[row].tolist())
                if output is not None:
                    kept[row] = output
        stopped = torch.zeros_like(inside)
        stopped.view(-1)[list(kept)] = True
        self.finished = inside & (ends | stopped)
        for row in self.finished.flatten().nonzero()[:, 0].tolist():
            source = self.sources[row // rules.width]
            self.pools[source].append(self.hypothesis(row, sums, kept.get(row)))
        if self.finished.any():
            new = scores.masked_fill(~self.finished.view_as(scores), -torch.inf)
            self.pooled = torch.cat([self.pooled, new], -1).topk(rules.places)[0]
        return inside & ~self.finished

    def hypothesis(self, row: int, sums: Tensor, kept: int | None, finish: str = "") -> Hypothesis:
        tokens, logs = self.tokens[row].tolist(), self.logs[row].tolist()
        score = score_of(float(sums.flatten()[row]), self.count, self.rules.length_penalty)
        if finish:
            return Hypothesis(tokens, logs, score, finish)
        if kept is None:
            return Hypothesis(tokens[:-1], logs, score, "end")
        return Hypothesis(tokens[:kept], logs, score, "stop")

    def record(self, recorder: Recorder, groups: Sequence[Chosen], logs: Tensor, going: Tensor) -> None:
        """Tell the recorder of every possible candidate of this step."""
        rules, goes, ended = self.rules, going.tolist(), self.finished.tolist()
        noted: list[list[Candidate]] = [[] for _ in self.sources]
        for number, group in enumerate(groups):
            own = logs.flatten(1).gather(1, group.slots * logs.shape[2] + group.tokens)
            scores = group.sums / self.count**rules.length_penalty
            ranked = group.ranks.argsort(dim=-1, descending=True, stable=True)
            columns = (ranked, group.slots, group.tokens, own, scores, group.index)
            for source, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
                order, slots, tokens, gains, worth, chosen = row
                taken = {candidate: number * rules.places + place for place, candidate in enumerate(chosen)}
                for rank, one in enumerate(order, 1):
                    if worth[one] == -torch.inf:
                        continue
                    place = taken.get(one)
                    if place is None:
                        fate, why = "pruned", f"rank {rank} in a beam of {rules.places}"
                    elif ended[source][place]:
                        fate, why = "finished", "end" if tokens[one] == rules.end else "stop"
                    elif goes[source][place]:
                        fate, why = "kept", ""
                    else:
                        fate, why = "pruned", "finished hypotheses hold the places before it"
                    place = place if fate == "kept" else None
                    noted[source].append(
                        Candidate(slots[one], tokens[one], gains[one], worth[one], number, place, fate, why)
                    )
        for source, candidates in zip(self.sources, noted, strict=True):
            recorder.note(source, self.count, candidates)

    def left(self, token: Tensor, origin: Tensor, still: bool) -> tuple[Tensor, Tensor | None]:
        """Let the sources leave whose search is over; what is left to read and where it goes on from."""
        rules, device = self.rules, token.device
        open_ = (self.sums > -torch.inf).any(1)
        if rules.best < rules.width and rules.groups == 1:  # groups may find the same, which counts once
            open_ &= ~self.decided()
        stays = open_.tolist()
        for place, source in enumerate(self.sources):
            if not stays[place] and not self.pools[source]:
                refuse_impossible(source, self.count, 0.0)
        if all(stays):
            return token, None if still else origin
        going = [place for place, stay in enumerate(stays) if stay]
        if self.recorder is not None:
            for source in set(self.sources) - {self.sources[place] for place in going}:
                self.recorder.close(source, "pruned", "nothing open can overtake what is finished")
        self.sources = [self.sources[place] for place in going]
        keep = torch.tensor(going, dtype=torch.long, device=device)
        rows = (keep[:, None] * rules.width + self.places).flatten()
        self.sums, self.pooled = self.sums[keep], self.pooled[keep]
        self.tokens, self.logs = self.tokens[rows], self.logs[rows]
        return token[rows], origin[rows]

    def decided(self) -> Tensor:
        """Whether enough is finished that no open hypothesis can overtake: log-probabilities only ever add below zero,
        and the most that a length can help is at the last step."""
        rules = self.rules
        hope = self.sums.amax(1) / rules.steps**rules.length_penalty
        ahead = (self.pooled.flatten(1) >= hope[:, None]).sum(1)
        return ahead >= rules.best

    def found(self) -> list[list[Hypothesis]]:
        """What is finished and, where the room ended, what is not; best first, nothing twice."""
        for row in (self.sums > -torch.inf).flatten().nonzero()[:, 0].tolist():
            source = self.sources[row // self.rules.width] if self.count else row
            self.pools[source].append(self.hypothesis(row, self.sums, None, "length"))
        if self.recorder is not None:
            for source in self.sources:
                self.recorder.close(source, "finished", "length")
        return [unique(sorted(pool, key=lambda one: -one.score))[: self.rules.best] for pool in self.pools]


def unique(ranked: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Groups may find the same."""
    first: dict[tuple[int, ...], Hypothesis] = {}
    for one in ranked:
        first.setdefault((*one.tokens, len(one.logs)), one)
    return list(first.values())
