"""How far a model sees, by measurement: how much each element read moves each output.

‖∂y_t/∂x_s‖, the Frobenius norm, from a few random directions of y_t (its expected square is exact). Where nothing
moves, it is zero to the bit: causal, two-way and windowed bodies differ as they should.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...arrays import Floats
from ...layers.padding import gather_steps, last_step, take_steps, to_front
from ...models import Batch
from .reading import INPUTS, SOURCE, Model, Names, disable_dropout, get_mask, number_positions, take_row, wrap_model

OUTPUTS = 64  # outputs that are asked, at most, evenly over the sequence
# From how small a share of the largest influence on learning can begin: measured on recall at a distance, where models
# that are trained on one distance learn up to about this lag and not beyond (docs/doctor.md).
REACH = 1 / 1000


@dataclass(frozen=True)
class ReceptiveField:
    """How much each element read (columns) moves each output (rows): (T, S)."""

    read: list[str]
    outputs: list[str]
    influence: Floats


def compute_receptive_field(
    model: Model,
    batch: Batch,
    names: Names | None = None,
    side: str = INPUTS,
    directions: int = 4,
    at_most: int = OUTPUTS,
) -> ReceptiveField:
    """Of the first row of the batch. `side` says whose elements: what is read step by step, or the source."""
    batch = take_row(batch)
    names = number_positions(batch) if names is None else names
    shown = get_mask(batch, side)[0].cpu()
    with disable_dropout(model):
        vectors, outputs = embed_side(model, batch, side)
        count = int(batch.mask.sum()) if outputs.shape[1] == batch.mask.shape[1] else outputs.shape[1]
        output_steps = np.unique(np.linspace(0, count - 1, min(count, at_most)).astype(int))
        rows = [_compute_gradient_norms(vectors, outputs[:, step], directions, int(step))[0] for step in output_steps]
    labels = names.target if len(names.target) == count else names.inputs
    influence = torch.stack(rows)[:, shown].numpy() if rows else np.zeros((0, int(shown.sum())))
    return ReceptiveField(names.of(side)[: int(shown.sum())], [labels[step] for step in output_steps], influence)


def compute_influence_by_lag(model: Model, batch: Batch, directions: int = 4) -> Floats:
    """How much the element at each lag from 0 moves the last output: the mean over the rows that are that long.

    The whole batch is asked at once; of a model that writes about a source, what it reads itself counts.
    """
    lengths = batch.mask.sum(1).cpu()
    longest = int(lengths.max()) if len(lengths) else 0
    if not longest:
        return np.zeros(0)
    with disable_dropout(model):
        vectors, outputs = embed_side(model, batch, INPUTS)
        whole = outputs.shape[1] == batch.mask.shape[1]
        ends = gather_steps(outputs, last_step(batch.mask)) if whole else outputs[:, -1]
        moved = _compute_gradient_norms(vectors, ends, directions)
    order, _ = to_front(batch.mask.cpu())
    rows = take_steps(moved[..., None], order)[..., 0]  # padding behind, whatever side it was on
    total, count = torch.zeros(longest), torch.zeros(longest)
    for row, length in zip(rows, lengths.tolist(), strict=True):
        total[:length] += row[:length].flip(0)
        count[:length] += 1
    return (total / count.clamp(min=1)).numpy()


def compute_memory_length(influence: Floats, share: float = REACH) -> int:
    """The furthest lag at which an element still moves the output by this share of the most any element does."""
    if not len(influence) or not influence.max() > 0:
        return 0
    return int(np.nonzero(influence >= share * influence.max())[0][-1])


def embed_side(model: Model, batch: Batch, side: str) -> tuple[Tensor, Tensor]:
    """The vectors of one side as a leaf (B, S, D), and the outputs that follow from them (B, T, D)."""
    shape = wrap_model(model)
    read = batch.source[0] if side == SOURCE else batch.inputs
    vectors: Tensor = shape.embedding_of(side)(read).detach().clone().requires_grad_()
    outputs = shape.read(batch, vectors, side)
    return vectors, outputs if outputs.dim() == 3 else outputs[:, None]


def _compute_gradient_norms(vectors: Tensor, outputs: Tensor, directions: int, seed: int = 0) -> Tensor:
    """The norm of ∂output/∂vectors at each element of each row, which depend on nothing of one another: (B, S)."""
    chance = torch.Generator().manual_seed(seed)
    square = torch.zeros(vectors.shape[:2])
    for _ in range(directions):
        direction = torch.randn(outputs.shape[1:], generator=chance, dtype=torch.float64).to(outputs)
        [gradient] = torch.autograd.grad((outputs * direction).sum(), vectors, retain_graph=True, allow_unused=True)
        if gradient is not None:
            square += gradient.norm(dim=-1).square().cpu().float() / directions
    return square.sqrt()
