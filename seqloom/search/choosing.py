"""Choosing one token a row: the likeliest, or by chance among those that are left.

Chance is a function of (seed, step) and of nothing else, so that a row's draws do not depend on its neighbors in the
batch or on how often anybody else has drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..arguments import check_real, check_whole
from ..arrays import Integers
from ..errors import SearchError
from ..layers.fast import native_steps
from ..layers.fast.native_kernels import can_use
from ..layers.state import State, repeat, select
from .base import QuickRows, Rows, Step, log_probabilities
from .constraints import index_tensor

# Log-probabilities (N, V), the rows they belong to, the number of the step -> a token for each (N,).
Choose = Callable[[Tensor, Sequence[int], int], Tensor]

COLUMNS = 25  # how many numbers `take_largest` compares at once before it sorts
WORTHWHILE = 50_000  # from how many numbers in all that pays
MOST = 64  # so many are quicker found by inserting than by sorting


def take_largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`values.topk(count)` for many long rows (N, V).

    The largest lie in the columns with the largest maxima: finding those is one quick pass, and the sorting is left
    with COLUMNS · count numbers a row.
    """
    rows, size = values.shape
    wide = size // COLUMNS
    if rows * size < WORTHWHILE or count > wide // 4:
        return values.topk(count)
    even = wide * COLUMNS
    columns = values[:, :even].unflatten(1, (COLUMNS, wide)).amax(1).topk(count, sorted=False)[1]
    down = torch.arange(0, even, wide, device=values.device)[:, None]
    places = (columns[:, None] + down).flatten(1)
    if even < size:
        rest = torch.arange(even, size, device=values.device).expand(rows, -1)
        places = torch.cat([places, rest], 1)
    largest, index = values.gather(1, places).topk(count)
    return largest, places.gather(1, index)


def find_top_log_probabilities(logits: Tensor, count: int, banned: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The log-probabilities (N, count) of the likeliest tokens by logits (N, 1, V), and which they are: no others.

    Those that are `banned` are none of them; where too few are left, some have a log of minus infinity.
    """
    last = logits[:, -1]
    most = min(count + (0 if banned is None else len(banned)), last.shape[1])  # so many are enough
    if most > MOST or not can_use(last) or not last.is_contiguous():
        logs = log_probabilities(logits)
        return take_largest(logs if banned is None else logs.index_fill_(1, banned, -torch.inf), count)
    values, tokens = native_steps.find_largest(last, most)
    if banned is not None:
        values = values.masked_fill_((tokens[..., None] == banned).any(-1), -torch.inf)
        values, order = values.sort(stable=True, descending=True)
        tokens = tokens.gather(1, order)
    return values[:, :count], tokens[:, :count]


def prepare_rows(step: Step, last: Tensor, state: State, width: int, count: int, banned: Sequence[int]) -> Rows:
    """The rows after `last` (B, 1), each of which may become up to `width`: by the step's own quick way, if it has
    one, or by its logits."""
    rows = prepare_quick_rows(step, last, state, width, count, banned)
    return PlainRows(step, last, state, count, banned) if rows is None else rows


def prepare_quick_rows(
    step: Step, last: Tensor, state: State, width: int, count: int, banned: Sequence[int]
) -> QuickRows | None:
    """The step's own fast implementation, if it has one."""
    decode = getattr(step, "decode_likeliest", None)
    return None if decode is None else decode(last, state, len(last) * width, count, banned)


class PlainRows:
    """The most probable tokens, computed from all logits."""

    def __init__(self, step: Step, last: Tensor, state: State, count: int, banned: Sequence[int]) -> None:
        self.step, self.state, self.wanted, self.device = step, state, count, last.device
        self.banned, self.never = banned, None if banned else torch.empty(0)

    def advance(self, last: Integers) -> tuple[NDArray[Any], Integers]:
        tokens = torch.from_numpy(last[:, None]).to(self.device)
        logits, self.state = self.step(tokens, self.state)
        if self.never is None:
            self.never = index_tensor(self.banned, logits[:, -1])
        count = min(self.wanted, logits.shape[-1])
        values, places = find_top_log_probabilities(logits, count, self.never if self.banned else None)
        return values.cpu().numpy(), places.cpu().numpy()

    def select(self, rows: Integers) -> None:
        self.state = select(self.state, torch.from_numpy(rows).to(self.device))

    def repeat(self, times: int) -> None:
        self.state = repeat(self.state, times)


def choose_likeliest(logs: Tensor, rows: Sequence[int], count: int) -> Tensor:
    """`logs.argmax(-1)`, by way of the maxima of columns where there are many: those are found four times as fast."""
    number, size = logs.shape
    if number * size < WORTHWHILE or size % COLUMNS:
        return logs.argmax(-1)
    columns = logs.unflatten(1, (COLUMNS, -1))
    best = columns.amax(1).argmax(-1)
    down = columns.gather(2, best[:, None, None].expand(-1, COLUMNS, 1))[..., 0].argmax(-1)
    return down * (size // COLUMNS) + best


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn: from all of them as often as they are likely, unless something narrows the choice."""

    temperature: float = 1.0  # below 1 the likely becomes likelier, above it rarer; 0 takes the likeliest
    top_k: int = 0  # only among so many of the likeliest (Fan et al., 2018); 0 is all
    top_p: float = 1.0  # only among the fewest that have this share of the probability (Holtzman et al., 2020)
    min_p: float = 0.0  # only what has this share of the likeliest one's probability (Nguyen et al., 2024)
    seed: int | Sequence[int] = 0  # one for all rows, or one for each

    def __post_init__(self) -> None:
        if not check_real("the temperature", self.temperature) >= 0:
            raise SearchError(f"the temperature is {self.temperature}, but it must be a number from 0 upwards")
        if check_whole("top_k", self.top_k) < 0:
            raise SearchError(f"top_k is {self.top_k}, but it must be 0 (all) or the number of tokens to draw from")
        for name in ("top_p", "min_p"):
            check_real(name, getattr(self, name))
        for seed in self.seed if isinstance(self.seed, list | tuple) else (self.seed,):
            check_whole("a seed", seed)
        if not 0 < self.top_p <= 1:
            raise SearchError(f"top_p is {self.top_p}, but it must be a share above 0 and up to 1 (all)")
        if not 0 <= self.min_p <= 1:
            raise SearchError(f"min_p is {self.min_p}, but it must be a share from 0 (all) to 1")

    def choose(self, rows: int) -> Choose:
        """For a batch of so many rows. A row's draws depend on its own seed, or on the one seed and its number."""
        if not self.temperature:
            return choose_likeliest
        if isinstance(self.seed, int):
            seeds = seeds_of(self.seed, rows)
        elif len(self.seed) == rows:
            seeds = np.array([seed & MASK for seed in self.seed], np.uint64)
        else:
            raise SearchError(f"there are {len(self.seed)} seeds for {rows} rows: give one for all, or one for each")

        def draw(logs: Tensor, rows: Sequence[int], count: int) -> Tensor:
            return draw_tokens(self.narrow(logs), draw_uniform(seeds[list(rows)], count))

        return draw

    def narrow(self, logs: Tensor) -> Tensor:
        """The logs (N, V) at this temperature, minus infinity for what is not drawn from; no longer normalized."""
        logs = logs if self.temperature == 1 else logs / self.temperature
        if 0 < self.top_k < logs.shape[1]:
            logs = keep_top_k(logs, self.top_k)
        if self.top_p < 1:
            logs = keep_top_p(logs, self.top_p)
        if self.min_p > 0:
            logs = keep_min_p(logs, self.min_p)
        return logs


def keep_top_k(logs: Tensor, count: int) -> Tensor:
    values, places = take_largest(logs, count)
    return torch.full_like(logs, -torch.inf).scatter(1, places, values)


def keep_top_p(logs: Tensor, share: float) -> Tensor:
    """The fewest tokens that together have at least this share; there is always one."""
    ordered, places = logs.sort(-1, descending=True)
    shares = ordered.softmax(-1)
    before = shares.cumsum(-1) - shares
    kept = before < share
    kept[:, 0] = True  # a share so small that rounding hides it
    return torch.full_like(logs, -torch.inf).scatter(1, places, ordered.masked_fill(~kept, -torch.inf))


def keep_min_p(logs: Tensor, share: float) -> Tensor:
    return logs.masked_fill(logs < logs.amax(-1, keepdim=True) + np.log(share), -torch.inf)


def draw_tokens(logs: Tensor, where: NDArray[np.float64]) -> Tensor:
    """The token that lies at `where` (N,), between 0 and 1, when all stand side by side as wide as they are likely."""
    bounds = logs.softmax(-1, dtype=torch.float64).cumsum(-1)
    place = torch.from_numpy(where).to(bounds.device)[:, None] * bounds[:, -1:]
    tokens = torch.searchsorted(bounds, place, right=True)[:, 0]
    return tokens.clamp_(max=logs.shape[1] - 1)  # where nothing is left the bounds are not numbers: the caller sees it


# --- chance -----------------------------------------------------------------------------------------------------

MASK = (1 << 64) - 1
STRIDE = np.uint64(0x9E3779B97F4A7C15)  # the constants are those of splitmix64 (Steele et al., 2014)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the result depends on every bit of the number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * SECOND
    return numbers ^ (numbers >> np.uint64(31))


def seeds_of(seed: int, rows: int) -> NDArray[np.uint64]:
    """A seed for each row, from one for all."""
    return mix_bits(mix_bits(np.array([seed & MASK], np.uint64)) + np.arange(1, rows + 1, dtype=np.uint64) * STRIDE)


def draw_uniform(seeds: NDArray[np.uint64], count: int) -> NDArray[np.float64]:
    """The number between 0 and 1 that each seed has for this step; never 1."""
    steps = np.full(len(seeds), (count * int(STRIDE)) & MASK, np.uint64)
    return (mix_bits(mix_bits(seeds) + steps) >> np.uint64(12)).astype(np.float64) * 2.0**-52
