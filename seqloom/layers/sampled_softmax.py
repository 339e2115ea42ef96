"""Learning to choose among very many without looking at all of them: the loss of a draw. Telling looks at all."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .heads import Categorical, Head, Loss, Readout, select_valid, sum_and_count


class SampledSoftmax(Head):
    """A `Categorical` whose loss in training weighs the target against a draw of the classes (Jean et al., 2015).

    Classes are drawn `draws` times, the first ones more often: class r with a chance of log(1 + 1 / (r + 1)), which is
    how words are spread when the most frequent stands first. Each class that was drawn at all stands for as many as it
    had a chance to (Horvitz and Thompson, 1952), so the sum over all classes is met on average, exactly.
    """

    chances: Tensor
    weight: Tensor  # the logarithm of the chance to be drawn at all

    def __init__(self, head: Categorical, draws: int) -> None:
        super().__init__()
        self.head, self.draws = head, draws
        classes = head.project.out_features
        chances = torch.log1p(1 / torch.arange(1, classes + 1, dtype=torch.float64)) / math.log(classes + 1)
        drawn = -torch.expm1(draws * torch.log1p(-chances)) if classes > 1 else torch.ones_like(chances)
        self.register_buffer("chances", chances, persistent=False)
        self.register_buffer("weight", drawn.log().float(), persistent=False)

    def readout(self) -> Readout:
        return self.head.readout()

    def forward(self, features: Tensor) -> Tensor:
        return self.head(features)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        if not self.training:
            return self.head.loss(features, target, mask)
        features, target = select_valid(features, target, mask)
        drawn = torch.multinomial(self.chances, self.draws, replacement=True).unique()
        project = self.head.project
        # One look into the matrix for both: its gradient is as large as the matrix, so it is made once.
        classes = torch.cat([drawn, target])
        others, own = F.embedding(classes, project.weight).split([len(drawn), len(target)])
        shift, shift_own = self.head.bias[classes].split([len(drawn), len(target)])
        rivals = torch.addmm(shift - self.weight[drawn], features, others.T)
        rivals = rivals.masked_fill(drawn == target[:, None], -math.inf)
        truth = (features * own).sum(-1) + shift_own
        logits = torch.cat([truth[:, None], rivals], 1)
        return sum_and_count(F.cross_entropy(logits, torch.zeros_like(target), reduction="none"))

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        return self.head.negative_log_likelihood(features, target)

    def tie(self, weight: nn.Parameter) -> None:
        self.head.tie(weight)

    def sample(self, expected: Any, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        return self.head.sample(expected, temperature, mask)
