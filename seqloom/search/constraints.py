"""What may be written, as small functions of log-probabilities: they know tokens, not models or searches.

Each lowers what it is given and leaves the rest. Where all is forbidden, the search says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import SearchError
from .base import Constraint, WrittenTokens

NEVER = -torch.inf


@dataclass(frozen=True)
class BannedTokens:
    """Tokens that are never written."""

    tokens: Sequence[int]

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        return logs.index_fill(1, index_tensor(self.tokens, logs), NEVER)


def list_fixed_bans(constraints: Sequence[Constraint]) -> list[int] | None:
    """The tokens that are forbidden whatever was written; None if a constraint has to know what was."""
    fixed = [constraint for constraint in constraints if isinstance(constraint, BannedTokens)]
    return [token for one in fixed for token in one.tokens] if len(fixed) == len(constraints) else None


@dataclass(frozen=True)
class BannedPhrases:
    """Sequences of tokens that are never written: the last of one is forbidden where the others stand before it."""

    sequences: Sequence[Sequence[int]]

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        for sequence in self.sequences:
            *before, last = index_tensor(sequence, logs)
            length = written.tokens.shape[1] - len(before)
            if length < 0:
                continue
            here = (written.tokens[:, length:] == torch.stack(before)).all(1) if before else slice(None)
            logs = logs.clone()
            logs[here, last] = NEVER
        return logs


@dataclass(frozen=True)
class Prefix:
    """What each row of the batch has to begin with; rows may begin differently, or freely."""

    prefixes: Sequence[Sequence[int]]

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        count = written.tokens.shape[1]
        forced = [(row, self.of(source)) for row, source in enumerate(written.rows.tolist())]
        pairs = [(row, prefix[count]) for row, prefix in forced if count < len(prefix)]
        if not pairs:
            return logs
        rows = torch.tensor([row for row, _ in pairs], device=logs.device)
        tokens = index_tensor([token for _, token in pairs], logs)
        only = torch.full_like(logs[rows], NEVER).scatter(1, tokens[:, None], logs[rows, tokens][:, None])
        return logs.index_copy(0, rows, only)

    def of(self, source: int) -> Sequence[int]:
        if source >= len(self.prefixes):
            raise SearchError(f"there are {len(self.prefixes)} forced prefixes, but a row of the batch is {source + 1}")
        return self.prefixes[source]


@dataclass(frozen=True)
class MinLength:
    """The end may not come before so many tokens."""

    length: int
    end: int

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        if written.tokens.shape[1] >= self.length:
            return logs
        return logs.index_fill(1, index_tensor([self.end], logs), NEVER)


@dataclass(frozen=True)
class RequiredTokens:
    """Tokens that have to be written somewhere, each as often as it is named, before the end or the last of `steps`."""

    tokens: Sequence[int]
    end: int
    steps: int

    def __post_init__(self) -> None:
        if len(self.tokens) > self.steps:
            raise SearchError(f"{len(self.tokens)} tokens are required, but only {self.steps} may be written")

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        different, times = index_tensor(self.tokens, logs).unique(return_counts=True)
        there = (written.tokens[:, :, None] == different).sum(1)  # (N, different tokens)
        missing = (times - there).clamp(min=0)
        lacking = missing.sum(1, keepdim=True)
        logs = torch.where(lacking > 0, logs.index_fill(1, index_tensor([self.end], logs), NEVER), logs)
        urgent = lacking >= self.steps - written.tokens.shape[1]  # every step that is left is needed
        only = torch.full_like(logs, NEVER)
        only[:, different] = logs[:, different].masked_fill(missing == 0, NEVER)
        return torch.where(urgent & (lacking > 0), only, logs)


@dataclass(frozen=True)
class NoRepeat:
    """No sequence of `length` tokens is written twice; with `prompts`, one for each row, nor taken from there."""

    length: int
    prompts: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        if self.length < 1:
            raise SearchError(f"the length of sequences that may not repeat is {self.length}, but it must be 1 or more")

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        past = history(written, self.prompts)
        if past.shape[1] < self.length:
            return logs
        sequences = past.unfold(1, self.length, 1)  # (N, places, length)
        again = (sequences[:, :, :-1] == past[:, None, past.shape[1] - self.length + 1 :]).all(-1)
        again &= (sequences >= 0).all(-1)  # a prompt that is shorter than others has gaps
        return logs.masked_fill(mark_tokens(sequences[:, :, -1], again, logs), NEVER)


@dataclass(frozen=True)
class RepetitionPenalty:
    """What was written before, or in `prompts`, becomes rarer: its log-probability times the penalty.

    Keskar et al. (2019) divide logits, whose zero means nothing; log-probabilities have one that does.
    """

    penalty: float
    prompts: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        if not self.penalty >= 1:
            raise SearchError(f"the repetition penalty is {self.penalty}, but it must be 1 (none) or more")

    def __call__(self, logs: Tensor, written: WrittenTokens) -> Tensor:
        past = history(written, self.prompts)
        return torch.where(mark_tokens(past, past >= 0, logs), logs * self.penalty, logs)


def mark_tokens(tokens: Tensor, valid: Tensor, logs: Tensor) -> Tensor:
    """Where in the vocabulary the valid ones of these tokens (N, T) stand: (N, V)."""
    marks = torch.zeros(logs.shape[0], logs.shape[1] + 1, dtype=torch.bool, device=logs.device)  # one place for others
    return marks.scatter_(1, torch.where(valid, tokens, logs.shape[1]), True)[:, :-1]


def history(written: WrittenTokens, prompts: Sequence[Sequence[int]]) -> Tensor:
    """The prompt of each row and what it has written, (N, P + T); where a prompt is shorter than others, -1."""
    if not prompts:
        return written.tokens
    sources = written.rows.tolist()
    if max(sources) >= len(prompts):
        raise SearchError(f"there are {len(prompts)} prompts, but a row of the batch is {max(sources) + 1}")
    longest = max(map(len, prompts))
    padded = [[-1] * (longest - len(prompts[source])) + [*prompts[source]] for source in sources]
    return torch.cat([written.tokens.new_tensor(padded).view(len(sources), longest), written.tokens], 1)


def index_tensor(tokens: Sequence[int], logs: Tensor) -> Tensor:
    """The tokens as a tensor; a search with a token that the vocabulary does not have is a mistake."""
    for token in tokens:
        if not 0 <= token < logs.shape[1]:
            raise SearchError(f"a constraint names the token {token}, but the vocabulary has {logs.shape[1]} of them")
    return torch.tensor(tokens, dtype=torch.long, device=logs.device)
