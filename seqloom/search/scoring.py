"""How likely given sequences are: each token's log-probability, and their sum."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import SearchError
from ..layers.state import State, select
from .base import Hypothesis, Step, check, score_of


def score(
    step: Step,
    last: Tensor,
    state: State,
    sequences: Sequence[Sequence[int]],
    *,
    end: int | None,
    length_penalty: float = 0.0,
    piece: int = 1,
) -> list[Hypothesis]:
    """The ledger of one sequence for each row of `last` (B, 1), the end after it included unless that is None.

    `piece` is how many elements `step` may be given at a time: every function takes one; a `Generator` takes any
    number, and many at a time are quicker.
    """
    check(0, last)
    if len(sequences) != len(last):
        raise SearchError(f"there are {len(sequences)} sequences for {len(last)} rows: give one for each")
    whole = [[*sequence] if end is None else [*sequence, end] for sequence in sequences]
    order = sorted(range(len(whole)), key=lambda row: -len(whole[row]))  # the longest first: the others leave in turn
    longest = len(whole[order[0]]) if whole else 0
    padded = last.new_tensor([whole[row] + [0] * (longest - len(whole[row])) for row in order]).view(-1, longest)
    inputs = torch.cat([last[last.new_tensor(order)], padded], 1)[:, :longest]
    ledgers: list[list[float]] = [[] for _ in whole]
    if order != list(range(len(whole))):
        state = select(state, last.new_tensor(order))
    for start in range(0, longest, piece):
        going = sum(len(sequence) > start for sequence in whole)
        if going < len(inputs):
            inputs, padded = inputs[:going], padded[:going]
            state = select(state, torch.arange(going, device=last.device))
        with torch.no_grad():
            logits, state = step(inputs[:, start : start + piece], state)
            target = padded[:, start : start + piece, None]
            check_known(target, logits.shape[-1])
            exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
            gains = (exact.gather(2, target) - exact.logsumexp(-1, keepdim=True))[..., 0].tolist()
        for row, row_logs in zip(order, gains, strict=False):
            ledgers[row] += row_logs[: len(whole[row]) - start]
    finish = "length" if end is None else "end"
    return [
        Hypothesis(list(sequence), logs, score_of(sum(logs), len(logs), length_penalty), finish)
        for sequence, logs in zip(sequences, ledgers, strict=True)
    ]


def check_known(tokens: Tensor, size: int) -> None:
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < size:
        raise SearchError(f"a sequence to score has a token outside of the vocabulary of {size}")
