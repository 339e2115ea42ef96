"""What the run's own training examples show about it: what could be said without reading, how well the model answers,
how the batches are mixed, how far back the answer depends on what is read, and how far back the model remembers.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...layers.heads import Head
from ...models import Batch, Generator, Labeler
from ..measures.reading import compute_features, copy_sharing_weights, disable_dropout
from ..measures.spectra import compute_spectra
from .dependence import Dependence, measure_dependence
from .memory import MemoryReach, measure_memory

FITTED = 4096  # elements that the best constant answer is fitted to, where it cannot be counted
BATCHES = 6  # that the model itself reads


@dataclass(frozen=True)
class LabelShare:
    """The share of the answers that are the most frequent one, and the share of the targets that are theirs."""

    answers: float
    targets: float


@dataclass(frozen=True)
class Weights:
    """The size of the matrices, as the root of the mean square, at the start and now; and the recurrent radius."""

    start: float
    now: float
    radius: float  # the largest spectral radius of a recurrent matrix at the start; 0 if there is none


@dataclass(frozen=True)
class Evidence:
    blind: float  # the loss of the best answer that reads nothing
    loss: float  # of the model's answers
    dropped: float  # the same loss with features left out as in training
    rows: float  # examples a batch
    mixed: float | None  # within a batch, the share of all variety there is among the targets
    drawn: float | None  # the same if the order were drawn
    usual: LabelShare | None
    weights: Weights
    dependence: Dependence
    memory: MemoryReach | None


def collect_evidence(
    model: Labeler | Generator, fresh: Labeler | Generator, batches: Sequence[Batch], drawn: Sequence[Batch]
) -> Evidence:
    """Of the model as it is and as it began, on batches as training reads them and as it would in a drawn order."""
    few = batches[:: max(1, len(batches) // BATCHES)][:BATCHES]
    depends = measure_dependence(drawn, model.per_element) if model.source is None else Dependence(np.zeros(0))
    varied = max(few, key=lambda batch: batch.mask.shape[1] * min(len(batch.mask), 16))
    swapped = varied.inputs.shape[:2] == varied.mask.shape and len(varied.mask) > 1
    return Evidence(
        compute_blind_loss(model, drawn),
        compute_mean_loss(model, few),
        compute_mean_loss(model, few, dropping=True),
        float(np.mean([len(batch.mask) for batch in batches])),
        measure_mixing(batches),
        measure_mixing(drawn),
        measure_most_frequent(model, few),
        Weights(measure_matrices(fresh), measure_matrices(model), compute_largest_radius(fresh)),
        depends,
        measure_memory(model, varied, find_peaks(depends)) if swapped else None,
    )


@torch.no_grad()
def compute_mean_loss(model: Labeler | Generator, batches: Sequence[Batch], dropping: bool = False) -> float:
    """Of a target, with or without dropout; smoothing and weights of classes never count."""
    model = copy_sharing_weights(model) if dropping else model
    objective, total, count = model.objective(), 0.0, 0.0
    with disable_dropout(model), torch.no_grad(), torch.random.fork_rng([]):
        torch.manual_seed(0)
        if dropping:
            objective.train()
            model.head.eval()
        for batch in batches:
            loss, elements, _ = objective(batch)
            total, count = total + float(loss), count + float(elements)
    return total / max(count, 1.0)


def compute_blind_loss(model: Labeler | Generator, batches: Sequence[Batch]) -> float:
    """The loss of the best answer that does not depend on what is read, whatever the head tells."""
    targets = [_get_targets(model, batch) for batch in batches]
    if model.head.outcome == "class":
        values = np.concatenate([target[mask].cpu().numpy().reshape(-1) for target, mask in targets])
        return compute_entropy(np.unique(values, return_counts=True)[1])
    return _fit_constant_answer(model, batches)


def _get_targets(model: Labeler | Generator, batch: Batch) -> tuple[Tensor, Tensor]:
    """The targets and where they count."""
    if not model.per_element:
        return batch.target, torch.ones(len(batch.target), dtype=torch.bool)
    mask = batch.mask if batch.loss_mask is None else batch.loss_mask
    return batch.target, mask


def compute_entropy(counts: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> float:
    shares = counts / max(int(counts.sum()), 1)
    return float(-(shares * np.log(shares)).sum())


def _fit_constant_answer(model: Labeler | Generator, batches: Sequence[Batch]) -> float:
    """A copy of the head, given the same features for everything, learns what it can."""
    head: Head = copy.deepcopy(model.head).requires_grad_()
    head.eval()
    with disable_dropout(model), torch.no_grad():
        width = compute_features(model, batches[0].rows(slice(0, 1))).shape[-1]
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    few = batches[:4]
    loss = torch.zeros(())
    for step in range(200):
        batch = few[step % len(few)].rows(slice(0, max(1, FITTED // max(1, few[0].mask.shape[1]))))
        target, mask = _get_targets(model, batch)
        with torch.enable_grad():
            total, count = head.loss(torch.ones(*mask.shape, width), target, mask if mask.dim() > 1 else None)
            loss = total / count.clamp(min=1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float(loss.detach())


def measure_mixing(batches: Sequence[Batch]) -> float | None:
    """The entropy of the targets within a batch, on average, as a share of that of all together.

    Few targets show less variety than there is: half a degree of freedom each is added (Miller, 1955).
    """
    if len(batches) < 3 or any(batch.target.is_floating_point() or batch.target.dim() > 2 for batch in batches):
        return None
    inside, every = [], []
    for batch in batches:
        values = batch.target[batch.mask] if batch.target.shape == batch.mask.shape else batch.target
        seen = values.reshape(-1).cpu().numpy()
        if len(seen) < 4:
            continue
        counts = np.unique(seen, return_counts=True)[1]
        inside.append(compute_entropy(counts) + (len(counts) - 1) / (2 * len(seen)))
        every.append(seen)
    whole = compute_entropy(np.unique(np.concatenate(every), return_counts=True)[1]) if len(every) > 2 else 0.0
    return min(1.0, float(np.mean(inside)) / whole) if whole > 0 else None


@torch.no_grad()
def measure_most_frequent(model: Labeler | Generator, batches: Sequence[Batch]) -> LabelShare | None:
    """Of a model that gives one label to a sequence."""
    if model.per_element or model.head.outcome != "class":
        return None
    with disable_dropout(model), torch.no_grad():
        answers = torch.cat([model.head(model.read(batch)).argmax(-1) for batch in batches])
    targets = torch.cat([batch.target for batch in batches])
    label = answers.mode().values
    return LabelShare(float((answers == label).float().mean()), float((targets == label).float().mean()))


def measure_matrices(model: nn.Module) -> float:
    """The median over the matrices of the root of the mean square; tables of vectors do not count."""
    sizes = [
        float(weight.detach().square().mean().sqrt())
        for name, weight in model.named_parameters()
        if weight.dim() >= 2 and "embed" not in name
    ]
    return float(np.median(sizes)) if sizes else 0.0


def compute_largest_radius(model: Labeler | Generator) -> float:
    return max((one.radius for one in compute_spectra(model) if one.radius is not None), default=0.0)


def find_peaks(depends: Dependence) -> list[int]:
    """The lags that tell most."""
    lags = np.flatnonzero(depends.bits > 0)
    return [int(lag) for lag in lags[np.argsort(-depends.bits[lags])][:32]]
