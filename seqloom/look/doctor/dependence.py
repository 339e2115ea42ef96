"""How far back the answer depends on what is read, by counting: the data's own reach, whatever a model makes of it.

The mutual information of the element at a lag and the answer, in bits, less what chance alone would show. Knows no
network. A dependence on several elements together, of which none says anything alone (a parity), is not seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import Integers
from ...models import Batch

SYMBOLS = 40  # the most frequent ones; all others count as one
DEVIATIONS = 8.0  # standard deviations above what chance gives
DRAWS = 4
SHARE = 0.5  # of the most that the element at any lag tells: what stands further back often only repeats it
LONGEST = 512


@dataclass(frozen=True)
class Dependence:
    """Bits that the element at each lag tells about the answer; 0 where it may be chance."""

    bits: NDArray[np.float64]

    @property
    def reach(self) -> int:
        """The furthest lag that tells a share of what the best one does; 0 if none tells anything."""
        if not len(self.bits) or not self.bits.max() > 0:
            return 0
        return int(np.nonzero(self.bits >= SHARE * self.bits.max())[0][-1])

    @property
    def most(self) -> float:
        return float(self.bits.max(initial=0.0))


def measure_dependence(batches: Sequence[Batch], per_element: bool) -> Dependence:
    """Of the answer on the element so many steps before it. `each`: every element has its answer, else the last."""
    pairs = [_pair_by_lag(batch, per_element) for batch in batches if is_countable(batch)]
    if not pairs:
        return Dependence(np.zeros(0))
    longest = min(max(len(one) for one in pairs), LONGEST)
    bits = []
    for lag in range(longest):
        at_lag = [one[lag] for one in pairs if lag < len(one)]
        read, target = (np.concatenate(side) for side in zip(*at_lag, strict=True))
        bits.append(estimate_information(read, target))
    return Dependence(np.array(bits))


def is_countable(batch: Batch) -> bool:
    """Whether both sides are symbols that can be counted."""
    whole = not batch.inputs.is_floating_point() and not batch.target.is_floating_point()
    return whole and batch.inputs.shape[:2] == batch.mask.shape and batch.target.dim() <= 2


def _pair_by_lag(batch: Batch, per_element: bool) -> list[tuple[Integers, Integers]]:
    """By lag, what was read and what was to be told."""
    inputs = (batch.inputs if batch.inputs.dim() == 2 else batch.inputs[..., 0]).cpu().numpy()
    mask, target = batch.mask.cpu().numpy(), batch.target.cpu().numpy()
    width = mask.shape[1]
    if per_element:
        both = [(lag, mask[:, lag:] & mask[:, : width - lag]) for lag in range(min(width, LONGEST))]
        return [(inputs[:, : width - lag][seen], target[:, lag:][seen]) for lag, seen in both]
    lengths = mask.sum(1)
    ends = np.array([np.flatnonzero(row)[-1] if row.any() else -1 for row in mask])
    pairs = []
    for lag in range(min(int(lengths.max(initial=0)), LONGEST)):
        rows = np.flatnonzero(lengths > lag)
        pairs.append((inputs[rows, ends[rows] - lag], target[rows]))
    return pairs


def estimate_information(read: Integers, target: Integers) -> float:
    """Mutual information in bits, less what the same sides show when one of them is drawn anew; 0 unless it is far
    more than that."""
    read, target = _keep_frequent(read), _keep_frequent(target)
    if len(read) < 50 or read.max() == 0 or target.max() == 0:
        return 0.0
    chance = np.random.default_rng(0)
    drawn = np.array([_count_information(read, chance.permutation(target)) for _ in range(DRAWS)])
    more = _count_information(read, target) - drawn.mean()
    # The spread of a few draws is known badly: what is expected of a χ² of as many cells is a floor to it.
    cells = float(read.max() * target.max())
    spread = max(drawn.std(ddof=1), (2 * cells) ** 0.5 / (2 * len(read)))
    return more / float(np.log(2)) if more > DEVIATIONS * spread else 0.0


def _count_information(read: Integers, target: Integers) -> float:
    """Mutual information in nats, as it is counted."""
    width = int(target.max()) + 1
    table = np.bincount(read * width + target, minlength=(int(read.max()) + 1) * width).reshape(-1, width)
    count = len(read)
    expected = np.outer(table.sum(1), table.sum(0)) / count
    there = table > 0
    return float((table[there] * np.log(table[there] / expected[there])).sum()) / count


def _keep_frequent(values: Integers) -> Integers:
    """The most frequent symbols by rank, all others as one."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    return np.minimum(ranks[places.reshape(-1)], SYMBOLS)
