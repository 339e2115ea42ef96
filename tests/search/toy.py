"""A model that anybody could write: a plain function, whose opinion depends on all that was written before."""

import itertools

import torch
from torch import Tensor

from seqloom.search import Hypothesis

END = 0


class Toy:
    """Logits by a table, looked up by a number that every token changes. It counts how often it is asked."""

    def __init__(self, size: int = 4, seed: int = 0, sharpness: float = 1.5) -> None:
        chance = torch.Generator().manual_seed(seed)
        self.table = sharpness * torch.randn(997, size, generator=chance)
        self.size, self.calls, self.rows = size, 0, 0

    def __call__(self, last: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        self.calls, self.rows = self.calls + 1, self.rows + len(last)
        state = (state * 31 + last[:, 0] + 1) % 997
        return self.table[state][:, None], state

    def begin(self, rows: int) -> tuple[Tensor, Tensor]:
        """Rows that begin differently: where a search starts."""
        return torch.full((rows, 1), 1), torch.arange(rows) * 13

    def logs(self, row: int, tokens: list[int]) -> list[float]:
        """The log-probability of each token, asked one by one."""
        last, state = (part[row : row + 1] for part in self.begin(row + 1))
        found = []
        for token in tokens:
            logits, state = self(last, state)
            found.append(logits[0, 0].log_softmax(-1)[token].item())
            last = torch.tensor([[token]])
        return found

    def every(self, row: int, steps: int, length_penalty: float = 0.0) -> list[Hypothesis]:
        """Every way to write up to `steps` tokens, best first, by brute force."""
        found = {}
        for tokens in itertools.product(range(self.size), repeat=steps):
            kept = tokens[: tokens.index(END) + 1] if END in tokens else tokens
            if kept not in found:
                logs = self.logs(row, list(kept))
                output, finish = ([*kept[:-1]], "end") if kept[-1] == END else ([*kept], "length")
                found[kept] = Hypothesis(output, logs, sum(logs) / len(logs) ** length_penalty, finish)
        return sorted(found.values(), key=lambda one: -one.score)


def all_tokens(one: Hypothesis) -> list[int]:
    """With the end, where there is one."""
    return [*one.tokens, END] if one.finish == "end" else one.tokens
