"""Which elements drove a decision: gradient × input, integrated gradients, and occlusion.

The decision is a number: the log-probability of the target, or of one step of it. An element is taken away by putting
zeros where its vector was. What these say is only worth something if the model agrees: see `faithfulness.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...arrays import Floats
from ...errors import DataError
from ...models import Batch, Generator, Labeler
from .reading import INPUTS, SOURCE, Names, disable_dropout, number_positions, take_row

POINTS = 64  # on the straight way from nothing to the input
ROWS = 64  # variants of an input that are read at once


@dataclass(frozen=True)
class Decision:
    """A decision of a model as a function of the vectors of one input."""

    model: Labeler | Generator
    vectors: Tensor  # (1, S, D)
    answer: Callable[[Tensor], Tensor]  # (N, S, D) -> (N,)
    elements: list[str]  # what a person calls each of the S elements
    about: str

    def values(self, vectors: Tensor) -> Floats:
        """The answers to many variants, (N,)."""
        with disable_dropout(self.model), torch.no_grad():
            values: Floats = torch.cat([self.answer(part) for part in vectors.split(ROWS)]).double().cpu().numpy()
        return values


@dataclass(frozen=True)
class Attribution:
    """How much each element spoke for the decision (above 0) or against it."""

    method: str
    about: str
    elements: list[str]
    shares: Floats  # (S,)
    whole: float  # the decision's number with the whole input …
    nothing: float  # … and with nothing of it

    @property
    def gap(self) -> float:
        """How far the shares are from adding up to what the input as a whole has done."""
        return float(self.shares.sum() - (self.whole - self.nothing))


def find_decision(
    model: Labeler | Generator, batch: Batch, names: Names | None = None, step: int | None = None
) -> Decision:
    """Why this target, on the first row of the batch? With `step`, why this element of it.

    Of a model that writes about a source, the source's elements are asked about; otherwise those that are read.
    """
    batch = take_row(batch)
    names = number_positions(batch) if names is None else names
    side = INPUTS if model.source is None else SOURCE
    answer_mask = batch.mask.clone()
    if step is not None and model.head.outcome == "alignment":
        raise DataError("a token that CTC writes has no step of its own: ask about the whole answer")
    if step is not None and model.per_element:
        if not 0 <= step < answer_mask.shape[1]:
            raise DataError(f"step {step} is asked about, but the answer has the steps 0 to {answer_mask.shape[1] - 1}")
        answer_mask[:] = False
        answer_mask[0, step] = bool(batch.mask[0, step])
    with disable_dropout(model), torch.no_grad():
        read, shown = (batch.inputs, batch.mask) if model.source is None else batch.source
        vectors = model.embedding_of(side)(read)
    about = (
        "the whole answer" if step is None or step >= len(names.target) else f"{names.target[step]} (step {step + 1})"
    )
    if not model.per_element:
        about = names.target[0] or "the label"

    def answer(variants: Tensor) -> Tensor:
        rows = model.read(batch.rows(torch.zeros(len(variants), dtype=torch.long)), variants, side)
        mask = answer_mask if rows.dim() == 3 else None
        return torch.stack([-model.head.loss(row[None], batch.target, mask)[0] for row in rows])

    elements = names.of(side)
    return Decision(
        model, vectors * shown[..., None], answer, elements[: vectors.shape[1]] if shown.any() else [], about
    )


def gradient_times_input(decision: Decision) -> Attribution:
    """The slope at the input times the input: what a small change of each element would do."""
    return _make_attribution(
        "gradient × input", decision, _compute_slope(decision, decision.vectors) * decision.vectors
    )


def integrated_gradients(decision: Decision, points: int = POINTS) -> Attribution:
    """The mean slope on the straight way from nothing to the input, times the input (Sundararajan et al., 2017).

    The shares add up to what the input has done, up to the `gap` that finitely many points leave.
    """
    shares = (torch.arange(points, device=decision.vectors.device) + 0.5) / points  # the middle of each piece
    slopes = [
        _compute_slope(decision, decision.vectors * part[:, None, None])
        for part in shares.to(decision.vectors).split(ROWS)
    ]
    return _make_attribution("integrated gradients", decision, sum(slopes) / points * decision.vectors)


def occlusion(decision: Decision) -> Attribution:
    """What is lost when one element is taken away."""
    count = len(decision.elements)
    variants = decision.vectors.expand(max(count, 1), -1, -1).clone()
    for element in range(count):
        variants[element, element] = 0
    whole, nothing = _score_ends(decision)
    lost = whole - decision.values(variants)[:count]
    return Attribution("occlusion", decision.about, decision.elements, lost, whole, nothing)


METHODS = {"gradient": gradient_times_input, "integrated": integrated_gradients, "occlusion": occlusion}


def _compute_slope(decision: Decision, vectors: Tensor) -> Tensor:
    """The gradient at each variant, summed over them: (1, S, D)."""
    leaf = vectors.detach().clone().requires_grad_()
    with disable_dropout(decision.model):
        [gradient] = torch.autograd.grad(decision.answer(leaf).sum(), leaf, allow_unused=True, materialize_grads=True)
    return gradient.sum(0, keepdim=True)


def _score_ends(decision: Decision) -> tuple[float, float]:
    whole, nothing = decision.values(torch.cat([decision.vectors, torch.zeros_like(decision.vectors)]))
    return float(whole), float(nothing)


def _make_attribution(method: str, decision: Decision, products: Tensor) -> Attribution:
    shares = products.sum(-1)[0].double().cpu().numpy()[: len(decision.elements)]
    return Attribution(method, decision.about, decision.elements, shares, *_score_ends(decision))
