"""A head that spans the sequence: tags that depend on their neighbors (Lafferty et al., 2001)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .heads import Head, Loss, Readout
from .padding import full_mask, gather_steps, last_step, take_steps, to_front, zero_padding
from .state import raise_to_single


class CRF(Head):
    """A linear chain: a score per element and tag, one per pair of neighbors, one per tag at either end."""

    outcome = "path"

    def __init__(self, inputs: int, tags: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, tags)
        self.pairs = nn.Parameter(torch.zeros(tags, tags))  # from, to
        self.first, self.last = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.zeros(tags))

    def readout(self) -> Readout:
        path = {"pairs": self.pairs, "first": self.first, "last": self.last}
        return Readout("logits", self.project.weight, self.project.bias, (self.project.out_features,), path=path)

    def forward(self, features: Tensor) -> Tensor:
        scores: Tensor = self.project(features)
        return scores  # (B, T, tags)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        mask = full_mask(features) if mask is None else mask
        logs = self.log_probability(self(zero_padding(features, mask)), target, mask)
        return -logs.sum(), mask.sum().to(logs)

    def log_probability(self, expected: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """Of the path (B, T) among all paths of its length: (B,). Where nothing is to be told, it is certain."""
        order, _ = to_front(mask)
        scores, tags, mask = (
            raise_to_single(take_steps(zero_padding(expected, mask), order)),
            take_steps(target, order),
            take_steps(mask, order),
        )
        total = self.forwards(scores, mask, 1.0, torch.logsumexp)[:, -1] + self.last
        return (self.score(scores, tags, mask) - total.logsumexp(-1)).masked_fill(~mask[:, 0], 0)

    def log_probabilities(self, expected: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """Of each tag of a path after those before it: among all ways on from there, whatever comes later."""
        order, back = to_front(mask)
        scores = raise_to_single(take_steps(zero_padding(expected, mask), order))
        tags, mask = take_steps(target, order).masked_fill(~take_steps(mask, order), 0), take_steps(mask, order)
        later, after = [], self.last.expand_as(scores[:, 0])  # all ways on behind each tag
        for time in range(scores.shape[1] - 1, -1, -1):
            later.append(after)
            ways = self.pairs + (scores[:, time] + after)[:, None]
            after = torch.where(mask[:, time, None], ways.logsumexp(2), after)
        before = torch.cat([self.first.expand_as(scores[:, :1]), self.pairs[tags[:, :-1]]], 1)
        logs = (before + scores + torch.stack(later[::-1], 1)).log_softmax(-1)
        return take_steps(logs.gather(2, tags[..., None]).squeeze(2) * mask, back)

    def score(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """What one path is worth: (B,)."""
        tags = tags.masked_fill(~mask, 0)
        own = (scores.gather(2, tags[..., None]).squeeze(2) * mask).sum(1)
        between = (self.pairs[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]).sum(1)
        return own + between + self.first[tags[:, 0]] + self.last[gather_steps(tags, last_step(mask))]

    def forwards(self, scores: Tensor, mask: Tensor, cold: float, sum_up: Callable[..., Tensor]) -> Tensor:
        """The worth of all ways, or of the best, to each tag: (B, T, tags). Padding is at the end and passes it on."""
        worth = [(scores[:, 0] + self.first) * cold]
        for time in range(1, scores.shape[1]):
            ways = worth[-1][:, :, None] + (self.pairs + scores[:, time, None]) * cold
            worth.append(torch.where(mask[:, time, None], sum_up(ways, 1), worth[-1]))
        return torch.stack(worth, 1)

    def sample(self, expected: Tensor, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        """A path drawn as a whole; at temperature 0, the best one. Padding gets tag 0."""
        mask = full_mask(expected) if mask is None else mask
        order, back = to_front(mask)
        scores, mask = take_steps(zero_padding(expected, mask), order), take_steps(mask, order)
        if temperature == 0:
            path = self.backwards(self.forwards(scores, mask, 1.0, torch.amax), mask, 1.0, best)
        else:
            cold = 1 / temperature
            path = self.backwards(self.forwards(scores, mask, cold, torch.logsumexp), mask, cold, draw)
        return take_steps(path, back)

    def backwards(self, worth: Tensor, mask: Tensor, cold: float, choose: Callable[[Tensor], Tensor]) -> Tensor:
        """Choose the last tag, then each before it in the light of the one after."""
        tag = choose(worth[:, -1] + self.last * cold)
        path = [tag]
        for time in range(worth.shape[1] - 1, 0, -1):
            before = choose(worth[:, time - 1] + self.pairs[:, tag].T * cold)
            tag = torch.where(mask[:, time], before, tag)
            path.append(tag)
        return torch.stack(path[::-1], 1) * mask


def best(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def draw(logits: Tensor) -> Tensor:
    return torch.distributions.Categorical(logits=logits).sample()
