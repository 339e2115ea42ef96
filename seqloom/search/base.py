"""What every way of searching shares: the function it asks, what it hands back, and what it may be told to obey.

Nothing in this package knows a model. A search is given a function `step(last, state)`, the element to begin after and
the state before it; a constraint is a function that lowers log-probabilities; a stop is a function that looks at what
was written. All of them may be anybody's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from ..arrays import Integers
from ..errors import SearchError
from ..layers.state import State

# The last element of each row (N, 1) and the state before it -> the logits of what comes next (N, 1, V) and the state
# after it. The state is None, a tensor whose first axis is N, a `layers.state.Leaf`, or a tuple of states. A step that
# has a quicker way to the likeliest tokens alone says so by a method `decode_likeliest`: see `choosing.likeliest_rows`.
Step = Callable[[Tensor, State], tuple[Any, State]]


class Rows(Protocol):
    """The rows of a search that asks for nothing but the likeliest tokens."""

    def advance(self, last: Integers) -> tuple[NDArray[Any], Integers]:
        """After the last token of each row, the log-probabilities (N, k) of those that may follow, the likeliest first,
        and which they are. They are only good until the next step."""

    def select(self, rows: Integers) -> None:
        """Go on from these rows, in this order."""

    def repeat(self, times: int) -> None:
        """Put so many copies of each row side by side."""


class QuickRows(Rows, Protocol):
    """Rows with a fast implementation of the whole search step."""

    def write(self, last: Integers, steps: int, end: int | None) -> list[tuple[list[int], list[float]]]:
        """Up to so many of the likeliest tokens of each row, one after another, and their log-probabilities; a row
        stops behind the end, and where nothing is likely."""


class WrittenTokens(NamedTuple):
    """What the rows of a batch have written so far; they are all at the same step."""

    tokens: Tensor  # (N, T), without the prompt
    rows: Tensor  # (N,), which row of the batch that came in each belongs to


# Log-probabilities (N, V) and what was written before -> the same or lower ones, minus infinity for what is forbidden.
# It leaves what it is given as it is.
Constraint = Callable[[Tensor, WrittenTokens], Tensor]

# What one row has written, its newest token included -> how many of its tokens are the output, if it stops here.
Stop = Callable[[Sequence[int]], int | None]

Alternatives = Sequence[tuple[int, float]]  # tokens and their log-probabilities, the likeliest first


class Hypothesis(NamedTuple):
    """One output sequence with its log-probabilities."""

    tokens: list[int]  # without the end or the stop sequence
    logs: list[float]  # the model's own log-probability of each token written, those that ended it included
    score: float  # what it is ranked by: the sum of its log-probabilities, divided by a power of their number
    finish: str = "length"  # why it ends here: "end", "stop", or "length" or "time" where there was no more of that
    alternatives: Sequence[Alternatives] = ()  # what else each step could have been, where that was asked for


class Abandoned(Exception):
    """Nobody waits for what is being searched for any more."""


_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


@contextmanager
def stop_unless_wanted(is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Searches inside ask after each step whether their result is still wanted, and raise `Abandoned` if not."""
    token = _wanted.set(is_wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


class Patience:
    """Seconds that may be spent on steps; what a reader does between them does not count. 0 is no limit."""

    def __init__(self, seconds: float) -> None:
        if not seconds >= 0:
            raise SearchError(f"the time limit is {seconds:g} seconds, but it cannot be negative")
        self.left = seconds or float("inf")

    @staticmethod
    def matters(patience: "Patience | None") -> bool:
        """Whether anyone has to be asked between two steps."""
        return _wanted.get() is not None or (patience is not None and patience.left < float("inf"))

    def ends(self, start: float) -> bool:
        """Whether a step that began then was the last there was time for."""
        is_wanted = _wanted.get()
        if is_wanted is not None and not is_wanted():
            raise Abandoned
        self.left -= perf_counter() - start
        return self.left <= 0


def log_probabilities(logits: Tensor) -> Tensor:
    """Logits (N, 1, V) as log-probabilities (N, V), at least in single precision."""
    last = logits[:, -1]
    return last.to(torch.promote_types(last.dtype, torch.float32)).log_softmax(-1)


def apply_constraints(logs: Tensor, written: WrittenTokens, constraints: Sequence[Constraint]) -> Tensor:
    for constraint in constraints:
        logs = constraint(logs, written)
    return logs


def find_stop(stops: Sequence[Stop], tokens: Sequence[int]) -> int | None:
    """The fewest tokens that any of the stops keeps, if one of them stops here."""
    lengths = [length for stop in stops if (length := stop(tokens)) is not None]
    return min(lengths, default=None)


def score_of(total: float, length: int, length_penalty: float) -> float:
    """A sum of log-probabilities after the length penalty."""
    return total / max(length, 1) ** length_penalty


def refuse_impossible(row: int, count: int, log: float) -> None:
    """Say why there is no next token: the constraints forbid all of them, or the model has no opinion."""
    if log != log:
        raise SearchError(f"the model's probabilities of token {count} of row {row} are not numbers")
    raise SearchError(f"no token is allowed at place {count} of row {row}: the constraints forbid all of them")


def check(steps: int, last: Tensor) -> None:
    if steps < 0:
        raise SearchError(f"the maximum number of tokens is {steps}, but it cannot be negative")
    if last.dim() != 2 or last.shape[1] != 1:
        raise SearchError(f"a search begins after one token a row, (N, 1), but was given {tuple(last.shape)}")
