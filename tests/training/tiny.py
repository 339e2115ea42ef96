"""The smallest thing that can be trained like the real ones: a recurrent guesser with dropout, and data for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.config.recipe import Train
from seqloom.config.train import GeneratorTrain
from seqloom.models import Batch, Objective
from seqloom.training.records import Record

SYMBOLS = 12


class Guesser(Objective):
    """Tells each symbol from those before it. Poisoned rows (symbol 0 first) give NaN."""

    carries = True

    def __init__(self, seed: int = 0, dropout: float = 0.3, size: int = 6) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(SYMBOLS, size)
        self.drop = nn.Dropout(dropout)
        self.read = nn.GRU(size, size, batch_first=True)
        self.norm = nn.LayerNorm(size)
        self.tell = nn.Linear(size, SYMBOLS)

    def forward(self, batch: Batch, state: Any = None) -> tuple[Tensor, Tensor, Any]:
        before = None if state is None else state.transpose(0, 1).contiguous()  # a state is batch first
        values, state = self.read(self.drop(self.embed(batch.inputs)), before)
        logits = self.tell(self.norm(values))
        losses = nn.functional.cross_entropy(logits.transpose(1, 2), batch.target, reduction="none")
        poison = torch.where(batch.mask[:, :1] & (batch.inputs[:, :1] == 0), torch.nan, 1.0)
        return (losses * poison)[batch.mask].sum(), batch.mask.sum(), state.transpose(0, 1).clone()


class Rows:
    """Rows of mixed lengths, of symbols that are written in texts; the order is drawn from (seed, epoch) alone."""

    def __init__(self, rows: int = 40, size: int = 6, seed: int = 3) -> None:
        chance = np.random.default_rng(seed)
        self.texts = [chance.integers(3, SYMBOLS, chance.integers(3, 9)) for _ in range(rows)]
        self.size, self.seed = size, seed
        self.asked: list[list[int]] = []

    def order(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        rows = np.random.default_rng((self.seed, epoch)).permutation(len(self.texts))
        return [rows[at : at + self.size] for at in range(0, len(rows), self.size)]

    def batch(self, rows: NDArray[Any]) -> Batch:
        self.asked.append(rows.tolist())
        length = max(len(self.texts[row]) for row in rows)
        ids, mask = torch.zeros(len(rows), length, dtype=torch.int64), torch.zeros(len(rows), length, dtype=torch.bool)
        for at, row in enumerate(rows):
            text = torch.from_numpy(self.texts[row])
            ids[at, : len(text)], mask[at, : len(text)] = text, True
        return Batch.from_sequence(ids, mask)


def settings(**given: Any) -> Train:
    defaults = {"steps": 24, "learning_rate": 0.02, "warmup": 3, "validate_every": 5, "checkpoint_every": 4, "seed": 11}
    return GeneratorTrain(**{**defaults, **given}).resolved()


def validation(objective: Objective, feed: Rows):
    """The mean loss over all rows, which must be asked for in evaluation mode and without gradients."""

    def validate() -> dict[str, float]:
        assert not objective.training and not torch.is_grad_enabled()
        loss, count, _ = objective(feed.batch(np.arange(len(feed.texts))))
        return {"loss": loss.item() / count.item()}

    return validate


def untimed(records: list[Record]) -> list[Record]:
    """All of the records but the timings."""
    return [replace(record, tokens_per_second=0.0, seconds=0.0) for record in records]


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Equal to the bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
