"""Whether an attribution may be trusted: take the elements away in its order, and bring them back, and see.

If the elements it names first really drove the decision, the decision's probability falls fast as they go (deletion)
and rises fast as they come (insertion). Random orders say what anyone could have named.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ...arrays import Floats
from .attribution import Attribution, Decision


@dataclass(frozen=True)
class Faithfulness:
    """The decision's log-probability after k elements, k from 0 to S, and the same for random orders."""

    method: str
    order: NDArray[np.int64]  # the elements, the most important first
    deletion: Floats  # (S + 1,)
    insertion: Floats  # (S + 1,)
    random_deletion: Floats  # (orders, S + 1)
    random_insertion: Floats  # (orders, S + 1)

    @property
    def score(self) -> float:
        """How much further apart insertion and deletion are than by chance, as a share of all the input has done.

        Above 0, the attribution knows something; at 0 or below, it is a pretty picture. The mean over both curves.
        """
        range_ = abs(float(self.deletion[0] - self.deletion[-1]))
        if range_ < 1e-12:
            return 0.0
        rivals = self.random_insertion.mean() - self.random_deletion.mean()
        return float((self.insertion.mean() - self.deletion.mean() - rivals) / (2 * range_))

    @property
    def beaten(self) -> float:
        """The share of random orders that are worse; one that does as well counts half."""
        own = self.insertion.mean() - self.deletion.mean()
        rivals = self.random_insertion.mean(1) - self.random_deletion.mean(1)
        return float(((own > rivals + 1e-9).mean() + (own >= rivals - 1e-9).mean()) / 2) if len(rivals) else 0.0


def measure_faithfulness(decision: Decision, attribution: Attribution, orders: int = 10, seed: int = 0) -> Faithfulness:
    chance = np.random.default_rng(seed)
    own = np.argsort(-attribution.shares, kind="stable")
    rivals = [chance.permutation(len(own)) for _ in range(orders)]
    curves = [
        (_compute_curve(decision, order, False), _compute_curve(decision, order, True)) for order in (own, *rivals)
    ]
    deletions, insertions = (np.stack([pair[side] for pair in curves]) for side in (0, 1))
    return Faithfulness(attribution.method, own, deletions[0], insertions[0], deletions[1:], insertions[1:])


def _compute_curve(decision: Decision, order: NDArray[np.int64], insert: bool) -> Floats:
    """The answers while one element after another goes, or comes."""
    kept = torch.full((len(order) + 1, decision.vectors.shape[1]), not insert)
    for step, element in enumerate(order):
        kept[step + 1 :, element] = insert
    return decision.values(decision.vectors * kept[..., None].to(decision.vectors))
