"""An output layer that begins as a logistic regression on what a body knows that was taught before.

While a new output layer is random, its gradients spoil the body below it (Kumar et al., 2022). Fitted first, it lets
fine-tuning begin with what the body knows.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # on half the squared weights, beside the mean loss
FOLDS = 5
STEPS = 200  # of L-BFGS at most


def fit_logistic(features: Tensor, labels: Tensor, classes: int, penalty: float) -> tuple[Tensor, Tensor]:
    """The weights (classes, D) and biases of the regularized logistic regression, which has one optimum."""
    weight = features.new_zeros(classes, features.shape[1], requires_grad=True)
    bias = features.new_zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        total = cross_entropy(features @ weight.T + bias, labels) + penalty / 2 * weight.square().sum()
        total.backward()
        return total

    with torch.enable_grad():
        optimizer.step(loss)
    return weight.detach(), bias.detach()


def choose_penalty(features: Tensor, labels: Tensor, classes: int, seed: int) -> float:
    """The penalty with the least loss on the parts of the examples that a regression was not fitted on."""
    part = torch.from_numpy(np.random.default_rng(seed).permutation(len(labels)) % FOLDS)
    losses = dict.fromkeys(PENALTIES, 0.0)
    for fold in range(FOLDS):
        rest, held_out = part != fold, part == fold
        if not held_out.any() or not rest.any():
            continue
        for penalty in PENALTIES:
            weight, bias = fit_logistic(features[rest], labels[rest], classes, penalty)
            predicted = features[held_out] @ weight.T + bias
            losses[penalty] += float(cross_entropy(predicted, labels[held_out], reduction="sum"))
    return min(losses, key=lambda penalty: losses[penalty])


@torch.no_grad()
def begin_with_probe(project: Any, features: Tensor, labels: Tensor, seed: int) -> float:
    """Set an output layer to the regression of labels on features (N, D), and give the penalty that was chosen."""
    features = features.double()
    mean, spread = features.mean(0), features.std().clamp(min=1e-12)
    scaled, classes = (features - mean) / spread, project.out_features
    penalty = choose_penalty(scaled, labels, classes, seed)
    weight, bias = fit_logistic(scaled, labels, classes, penalty)
    project.weight.copy_(weight / spread)
    if project.bias is not None:
        project.bias.copy_(bias - weight @ mean / spread)
    return penalty
