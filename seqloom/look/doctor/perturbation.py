"""How far back a model remembers, by experiment: an element is swapped for that of another example, and the answer
moves or does not.

A gradient says how an answer would move if an element changed by almost nothing; a swap says what becomes of it when
the element is another one, which is what forgetting means. Knows nothing of training.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...arrays import Floats
from ...layers.heads import Head
from ...layers.padding import gather_steps, last_step
from ...models import Batch, Generator, Labeler
from ..measures.reading import compute_features, disable_dropout

SHARE = 0.2  # of the most that any swap moves the answer; docs/doctor.md says how it was found
NEAR = 16  # lags that are all asked; further ones in steps of about a tenth
ROWS, ELEMENTS = 64, 8192  # that are read at once, at most
WORK = 3e11  # products, at most: of a large model fewer lags are asked
FEWEST = 8


@dataclass(frozen=True)
class Perturbation:
    """How much the element at each lag moves the answer: 0 is not at all, 1 is as much as can be."""

    lags: NDArray[np.int64]
    moved: Floats

    @property
    def length(self) -> float:
        """The furthest lag at which a swap still moves the answer by the share of the most that any does."""
        if not len(self.moved) or not self.moved.max() > 0:
            return 0.0
        limit = SHARE * self.moved.max()
        place = int(np.nonzero(self.moved >= limit)[0][-1])
        return float(self.lags[place])


def choose_lags(longest: int, also: Sequence[int] = ()) -> NDArray[np.int64]:
    """Every near lag, then ever fewer; those of `also` among them."""
    near = np.arange(min(NEAR, longest))
    count = max(2, int(np.log(max(longest, 2) / NEAR) / np.log(1.1)) + 2)
    far = np.geomspace(NEAR, longest - 1, count).round().astype(int) if longest > NEAR else np.zeros(0, int)
    known = np.array([lag for lag in also if 0 <= lag < longest], dtype=np.int64)
    return np.unique(np.concatenate([near, far, known])).astype(np.int64)


def _thin(lags: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """So many of them at most, evenly, the first and the last included."""
    return lags[np.unique(np.linspace(0, len(lags) - 1, min(count, len(lags))).round().astype(int))]


@torch.no_grad()
def perturb_by_lag(model: Labeler | Generator, batch: Batch, also: Sequence[int] = ()) -> Perturbation:
    """How much each element, counted back from the last, moves what is told at the end of its row.

    What stands there is taken from another row at the same lag, so what is put in is what might have stood there. The
    mean is over the rows where that is another element.
    """
    batch = batch.rows(slice(None, max(2, min(ROWS, ELEMENTS // max(1, batch.mask.shape[1])))))
    lengths = batch.mask.sum(1)
    longest = int(lengths.max()) if len(lengths) else 0
    work = 2.0 * batch.mask.numel() * sum(parameter.numel() for parameter in model.parameters())
    lags = _thin(choose_lags(longest, also), max(FEWEST, int(WORK / max(work, 1.0))))
    with disable_dropout(model), torch.no_grad():
        plain = compute_answers(model, batch)
        moved = np.array([_measure_change(model, batch, int(lag), lengths, plain) for lag in lags])
    return Perturbation(lags, moved)


def _measure_change(model: Labeler | Generator, batch: Batch, lag: int, lengths: Tensor, plain: Tensor) -> float:
    rows = (lengths > lag).nonzero()[:, 0]
    if len(rows) < 2:
        return 0.0
    places = last_step(batch.mask)[rows] - lag
    inputs = batch.inputs.clone()
    before = inputs[rows, places]
    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(lag))
    after = before[drawn]
    changed = (before != after).flatten(1).any(1) if before.dim() > 1 else before != after
    if not changed.any():
        return 0.0
    inputs[rows, places] = after
    compared = rows[changed]
    answers = compute_answers(model, batch._replace(inputs=inputs))
    return float(compute_distance(model.head, answers[compared], plain[compared]).mean())


def compute_answers(model: Labeler | Generator, batch: Batch) -> Tensor:
    """What is told at the end of each row: probabilities, or where the head tells none, what it reads. (B, K)"""
    top = compute_features(model, batch)
    if top.dim() == 3:
        top = gather_steps(top, last_step(batch.mask))
    if model.head.outcome == "class":
        return model.head(top).float().softmax(-1)
    return model.head(top).float().sigmoid() if model.head.outcome == "classes" else top.float()


def compute_distance(head: Head, one: Tensor, other: Tensor) -> Tensor:
    """Between answers, row by row: of probabilities the total variation; of features, as a share of their spread."""
    if head.outcome == "class":
        return (one - other).abs().sum(-1) / 2
    if head.outcome == "classes":
        return (one - other).abs().amax(-1)
    spread = other.std(0).norm().clamp(min=1e-12) * 2**0.5  # of two rows that have nothing to do with each other
    return ((one - other).norm(dim=-1) / spread).clamp(max=1)
