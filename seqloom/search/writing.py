"""Writing one continuation a row, token by token: the likeliest, or drawn.

`stream` hands over each step as it is made, and makes no more of them than it is asked for; `write` collects them.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..arrays import Integers
from ..layers.state import State, select
from .base import (
    Alternatives,
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
)
from .choosing import Choose, Sampling, choose_likeliest, prepare_quick_rows, prepare_rows, take_largest
from .constraints import list_fixed_bans


class Pick(NamedTuple):
    """One token of one row, as it was written."""

    row: int
    token: int
    log: float  # the model's own log-probability of it
    output_length: int  # how many of the row's tokens so far are output: the end is not, nor is a stop sequence
    finish: str = ""  # why the row ends with it: "end", "stop", "length" or "time"; nothing while it goes on
    alternatives: Sequence[tuple[int, float]] = ()  # the likeliest tokens of this step, where that was asked for


def stream(
    step: Step,
    choose: Choose,
    last: Tensor,
    state: State,
    *,
    steps: int,
    end: int | None,
    constraints: Sequence[Constraint] = (),
    stops: Sequence[Stop] = (),
    alternatives: int = 0,
    patience: Patience | None = None,
) -> Iterator[list[Pick]]:
    """After `last` (B, 1), step by step, a pick for each row that still goes on. It never works ahead."""
    check(steps, last)
    banned = list_fixed_bans(constraints)
    # Of the likeliest token's distribution nothing else is needed, unless somebody asks what else was likely.
    quick = choose is choose_likeliest and banned is not None and not (alternatives and banned)
    with torch.no_grad():
        likely = prepare_rows(step, last, state, 1, max(1, alternatives), banned or []) if quick else None
    choices: QuickChoices | Choices = (
        Choices(step, choose, last, state, constraints, alternatives)
        if likely is None
        else QuickChoices(likely, last, alternatives)
    )
    rows = list(range(len(last)))
    tokens: list[list[int]] = [[] for _ in rows]
    for count in range(1, steps + 1):
        if not rows:
            return
        start = perf_counter()
        with torch.no_grad():
            chosen, gains, allowed, others = choices.advance(rows, count)
        late = patience is not None and patience.ends(start)
        spent = "length" if count == steps else "time" if late else ""
        picks = []
        for place, (row, token, log) in enumerate(zip(rows, chosen, gains, strict=True)):
            if not (allowed[place] if allowed else log) > -torch.inf:
                refuse_impossible(row, count, log)
            tokens[row].append(token)
            length, finish = check_finish(tokens[row], end, stops, spent)
            picks.append(Pick(row, token, log, length, finish, others[place] if others else ()))
        yield picks
        going = [place for place, pick in enumerate(picks) if not pick.finish]
        if len(going) < len(rows):  # those that are finished leave the batch
            rows = [rows[place] for place in going]
            if rows:
                choices.select(going)


class StepChoice(NamedTuple):
    """The next token of each row, its log-probability, and that under the constraints, if there are any."""

    tokens: list[int]
    logs: list[float]
    allowed: list[float]
    alternatives: list[Alternatives]  # if they were asked for


class QuickChoices:
    """Steps of a search that needs nothing of the distribution but the likeliest tokens."""

    def __init__(self, rows: Rows, last: Tensor, alternatives: int) -> None:
        self.rows, self.alternatives = rows, alternatives
        self.newest: Integers = last[:, 0].cpu().numpy()

    def advance(self, rows: Sequence[int], count: int) -> StepChoice:
        values, places = self.rows.advance(self.newest)
        self.newest = places[:, 0]
        others = list_alternatives(values, places) if self.alternatives else []
        return StepChoice(self.newest.tolist(), values[:, 0].tolist(), [], others)

    def select(self, going: Sequence[int]) -> None:
        index = np.array(going)
        self.newest = self.newest[index]
        self.rows.select(index)


class Choices:
    """Steps of a search that chooses from the whole distribution."""

    def __init__(
        self,
        step: Step,
        choose: Choose,
        last: Tensor,
        state: State,
        constraints: Sequence[Constraint],
        alternatives: int,
    ) -> None:
        self.step, self.choose, self.last, self.state = step, choose, last, state
        self.constraints, self.alternatives = constraints, alternatives
        self.history = History(len(last), last.device)
        self.remembers = list_fixed_bans(constraints) is None  # whether a constraint wants to know what was written

    def advance(self, rows: Sequence[int], count: int) -> StepChoice:
        logits, self.state = self.step(self.last, self.state)
        logs = log_probabilities(logits)
        allowed = apply_constraints(logs, self.history.written, self.constraints) if self.constraints else logs
        self.last = last = self.choose(allowed, rows, count)[:, None]
        if self.remembers:
            self.history.append(last)
        worth = allowed.gather(1, last)[:, 0].tolist() if self.constraints else []
        most = min(self.alternatives, logs.shape[1])
        others = list_alternatives(*take_largest(logs, most)) if self.alternatives else []
        return StepChoice(last[:, 0].tolist(), logs.gather(1, last)[:, 0].tolist(), worth, others)

    def select(self, going: Sequence[int]) -> None:
        stay = torch.tensor(going, dtype=torch.long, device=self.last.device)
        self.last, self.state = self.last[stay], select(self.state, stay)
        self.history.select_rows(stay)


def check_finish(tokens: list[int], end: int | None, stops: Sequence[Stop], spent: str) -> tuple[int, str]:
    """How many of these tokens are output, and why there will be no more, if so: `spent` is the room, or the time."""
    if tokens[-1] == end:
        return len(tokens) - 1, "end"
    length = find_stop(stops, tokens)
    if length is not None:
        return length, "stop"
    return len(tokens), spent


def list_alternatives(values: Tensor | NDArray[Any], places: Tensor | Integers) -> list[Alternatives]:
    """The likeliest tokens of each row with their log-probabilities; what is impossible is none of them."""
    pairs = zip(places.tolist(), values.tolist(), strict=True)
    return [[(token, log) for token, log in zip(*pair, strict=True) if log > -torch.inf] for pair in pairs]


class History:
    """What the rows have written, in room that doubles; only kept where a constraint wants to know."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.room, self.length = torch.empty(rows, 16, dtype=torch.long, device=device), 0
        self.rows = torch.arange(rows, device=device)

    @property
    def written(self) -> WrittenTokens:
        return WrittenTokens(self.room[:, : self.length], self.rows)

    def append(self, last: Tensor) -> None:
        if self.length == self.room.shape[1]:
            self.room = torch.cat([self.room, torch.empty_like(self.room)], 1)
        self.room[:, self.length] = last[:, 0]
        self.length += 1

    def select_rows(self, places: Tensor) -> None:
        self.room, self.rows = self.room[places], self.rows[places]


def write(
    step: Step,
    choose: Choose,
    last: Tensor,
    state: State,
    *,
    steps: int,
    end: int | None,
    constraints: Sequence[Constraint] = (),
    stops: Sequence[Stop] = (),
    alternatives: int = 0,
    patience: Patience | None = None,
) -> list[Hypothesis]:
    """One continuation of each row of `last` (B, 1), up to its end, a stop, to `steps` tokens, or out of time."""
    check(steps, last)
    banned = list_fixed_bans(constraints)
    if choose is choose_likeliest and banned is not None and not (stops or alternatives or Patience.matters(patience)):
        with torch.no_grad():  # nobody looks at a step before the next one
            quick = prepare_quick_rows(step, last, state, 1, 1, banned)
            if quick is not None:
                return collect_rows(quick.write(last[:, 0].numpy(), steps, end), end)
    picks: list[list[Pick]] = [[] for _ in range(len(last))]
    steps_made = stream(
        step,
        choose,
        last,
        state,
        steps=steps,
        end=end,
        constraints=constraints,
        stops=stops,
        alternatives=alternatives,
        patience=patience,
    )
    for step_picks in steps_made:
        for pick in step_picks:
            picks[pick.row].append(pick)
    return [collect_hypothesis(row) for row in picks]


def collect_rows(rows: Sequence[tuple[list[int], list[float]]], end: int | None) -> list[Hypothesis]:
    hypotheses = []
    for row, (tokens, logs) in enumerate(rows):
        if logs and not logs[-1] > -torch.inf:
            refuse_impossible(row, len(logs), logs[-1])
        ended = bool(tokens) and tokens[-1] == end
        hypotheses.append(Hypothesis(tokens[:-1] if ended else tokens, logs, sum(logs), "end" if ended else "length"))
    return hypotheses


def collect_hypothesis(picks: Sequence[Pick]) -> Hypothesis:
    """What one row wrote, from its picks."""
    if not picks:
        return Hypothesis([], [], 0.0)
    logs, end = [pick.log for pick in picks], picks[-1]
    tokens = [pick.token for pick in picks[: end.output_length]]
    others = [pick.alternatives for pick in picks] if end.alternatives else ()
    return Hypothesis(tokens, logs, sum(logs), end.finish, others)


def greedy(
    step: Step,
    last: Tensor,
    state: State,
    *,
    steps: int,
    end: int | None,
    constraints: Sequence[Constraint] = (),
    stops: Sequence[Stop] = (),
) -> list[Hypothesis]:
    """The likeliest token at each step."""
    return write(step, choose_likeliest, last, state, steps=steps, end=end, constraints=constraints, stops=stops)


def sample_tokens(
    step: Step,
    sampling: Sampling,
    last: Tensor,
    state: State,
    *,
    steps: int,
    end: int | None,
    constraints: Sequence[Constraint] = (),
    stops: Sequence[Stop] = (),
) -> list[Hypothesis]:
    """Tokens drawn by chance; the same seed writes the same."""
    choose = sampling.choose(len(last))
    return write(step, choose, last, state, steps=steps, end=end, constraints=constraints, stops=stops)


class Draw(Protocol):
    """What comes next (N, 1, …) -> the element chosen (N, 1, …). A head's `sample` is one."""

    def __call__(self, expected: Any, /) -> Tensor: ...


def sample(step: Step, choose: Draw, last: Tensor, state: State) -> Iterator[Tensor]:
    """Elements of any kind (notes, numbers) after `last` (N, 1, …), for as long as the caller asks."""
    while True:
        after, state = step(last, state)
        last = choose(after)
        yield last.squeeze(1)
