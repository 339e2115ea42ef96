"""The cross entropy of a linear layer's logits, without ever holding all of them: a piece of the elements at a time.

Going forwards, each piece's gradient is taken as well while its logits are there, so they are computed once and not
again on the way back. What is kept is as large as the features and the weights, whatever the vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class LinearCrossEntropy(torch.autograd.Function):
    """The sum of `F.cross_entropy(F.linear(features, W, b), target, weights, label_smoothing=smoothing)`, in which the
    `impossible` classes have no part."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,  # (N, D)
        target: Tensor,  # (N,)
        W: Tensor,  # (classes, D)
        b: Tensor,  # (classes,)
        weights: Tensor | None,  # (classes,)
        smoothing: float,
        impossible: Tensor,  # classes
        chunk: int,
    ) -> Tensor:
        kind = features.device.type
        low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else W.dtype
        inputs, matrix, gradients = features.to(low), W.to(low), None
        if any(ctx.needs_input_grad):
            gradients = torch.empty_like(inputs), torch.zeros_like(W), torch.zeros_like(b)
        total = W.new_zeros(())
        with torch.autocast(kind, enabled=False):
            for start in range(0, len(inputs), chunk):
                span = slice(start, start + chunk)
                logits = torch.addmm(b.to(low), inputs[span], matrix.t()).to(W.dtype)
                total += surprise(logits, target[span], weights, smoothing, impossible)
                if gradients is None:
                    continue
                moved = logits.to(low)  # which is the gradient by now
                d_inputs, d_W, d_b = gradients
                torch.mm(moved, matrix, out=d_inputs[span])
                if low is W.dtype:
                    d_W.addmm_(moved.t(), inputs[span])
                else:
                    d_W += moved.t() @ inputs[span]
                d_b += logits.sum(0)
        ctx.save_for_backward(*(gradients or ()))
        ctx.dtype = features.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        d_inputs, d_W, d_b = (gradient * d_total for gradient in ctx.saved_tensors)
        return d_inputs.to(ctx.dtype), None, d_W, d_b, None, None, None, None


def surprise(logits: Tensor, target: Tensor, weights: Tensor | None, smoothing: float, impossible: Tensor) -> Tensor:
    """The summed cross entropy of logits (N, classes), which become its gradient, in place.

    The target is q: all of the belief in one class but the smoothing, which all that are possible share, each times its
    weight. The loss is Σ q (log Σ exp x − x), its gradient softmax(x) Σ q − q.
    """
    place, classes = target[:, None], logits.shape[1] - len(impossible)
    own = logits.new_ones(len(logits)) if weights is None else weights[target]
    whole = own if weights is None else weights.mean().expand(len(own))
    mass = (1 - smoothing) * own + smoothing * whole  # Σ q
    target_score = (1 - smoothing) * own * logits.gather(1, place)[:, 0]
    if smoothing:
        logits.index_fill_(1, impossible, 0)
        target_score += smoothing * (logits.sum(1) / classes if weights is None else logits @ (weights / classes))
    logits.index_fill_(1, impossible, -torch.inf)
    top = logits.amax(1, keepdim=True)
    summed = logits.sub_(top).exp_().sum(1)
    loss = (mass * (top[:, 0] + summed.log()) - target_score).sum()
    logits.mul_((mass / summed)[:, None])
    if smoothing:
        logits.sub_(smoothing / classes * (1.0 if weights is None else weights))
        logits.index_fill_(1, impossible, 0)
    logits.scatter_add_(1, place, ((smoothing - 1) * own)[:, None])
    return loss
