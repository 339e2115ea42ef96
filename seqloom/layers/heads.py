"""The last layer: a distribution over the next element, with its loss and its samples."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .biases import leave_out_biases
from .chunked_cross_entropy import LinearCrossEntropy
from .fast import native_decoder
from .fast.dropout import Dropout
from .fast.steps import change_of
from .state import raise_to_single

Loss = tuple[Tensor, Tensor]  # the sum of the surprises, and of how many


@dataclass(frozen=True)
class Readout:
    """How a head makes what it answers of features, for programs that compute it elsewhere: hidden layers, a product,
    and what is done with it."""

    form: str  # "logits", "values", "normal" (a mean and a spread that is squashed) or "quantiles" (sorted)
    weight: Tensor
    bias: Tensor | None
    shape: tuple[int, ...]  # of the answer to one element
    hidden: tuple[Any, ...] = ()  # modules, one after the other
    path: Mapping[str, Tensor] = field(default_factory=dict)  # the scores of neighbors, where a best path is searched


class Head(nn.Module):
    outcome: str = "number"  # what is predicted: a number, one class, any of several classes, a path or an alignment

    @abstractmethod
    def forward(self, features: Tensor) -> Any:
        """Features (..., D) -> what the distribution needs: logits, or a mean and a spread."""

    @abstractmethod
    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """How surprising the target is, where the mask (all but the last axis of the features) is true."""

    @abstractmethod
    def sample(self, expected: Any, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        """One draw per element; at temperature 0, the likeliest. The mask matters to heads that span the sequence."""

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        """How surprising each element of the target (N, ...) is, (N,)."""
        raise NotImplementedError(f"{type(self).__name__} has no likelihood of single elements")

    def log_probability(self, expected: Any, target: Tensor, mask: Tensor) -> Tensor:
        """Of all that a row of the target (B, T) says together, where the mask is true: (B,)."""
        raise NotImplementedError(f"{type(self).__name__} has no probability of a sequence")

    def log_probabilities(self, expected: Any, target: Tensor, mask: Tensor) -> Tensor:
        """Of each element of such a row after those before it, 0 where the mask is false: (B, T)."""
        raise NotImplementedError(f"{type(self).__name__} has no probabilities of the elements of a sequence")

    def tie(self, weight: nn.Parameter) -> None:
        """Share the weight of an embedding."""
        raise NotImplementedError(f"{type(self).__name__} has no weight to share")

    def fast_answer(self) -> Callable[[Tensor], Any]:
        """`forward` for features (B, D) of one step, prepared for many without gradient; with time again: (B, 1, …)."""
        return lambda y: self(y[:, None])

    def native_answer(self) -> native_decoder.Answer | None:
        """What native code has to know to choose among the answers, if it can."""
        return None

    def readout(self) -> Readout | None:
        """How it is computed, for exports; none if it cannot be said so."""
        return None


def select_valid(features: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The elements that count, in one row: (N, D) and (N, ...)."""
    if mask is None:
        mask = features.new_ones(features.shape[:-1], dtype=torch.bool)
    return features[mask], target[mask]


def sum_and_count(surprise: Tensor) -> Loss:
    return surprise.sum(), surprise.new_tensor(len(surprise))


class Categorical(Head):
    """One of `classes`: words, characters, tags, labels.

    With `chunk`, the loss takes that many elements at a time and never holds the logits of all. In training,
    `smoothing` gives that share of the belief to all classes alike (Szegedy et al., 2016), and a class counts as much
    as its one of `weights` says; otherwise the loss is the plain surprise. Classes that are `impossible` have the logit
    minus infinity everywhere, so the others share all of the probability, in the loss as in what is told.
    """

    outcome = "class"
    weights: Tensor
    impossible: Tensor

    def __init__(
        self,
        inputs: int,
        classes: int,
        chunk: int = 0,
        smoothing: float = 0.0,
        weights: Sequence[float] = (),
        impossible: Sequence[int] = (),
        bias: bool = True,
    ) -> None:
        super().__init__()
        assert not (weights and impossible), "classes that count differently can all be told"
        self.project, self.chunk, self.smoothing = nn.Linear(inputs, classes), chunk, smoothing
        if not bias:
            leave_out_biases(self)
        self.register_buffer("weights", torch.tensor(weights), persistent=False)
        self.register_buffer("impossible", torch.tensor(impossible, dtype=torch.long), persistent=False)

    @property
    def bias(self) -> Tensor:
        """With minus infinity for what is impossible: closed here, it costs nothing where there are many logits."""
        bias = self.project.bias
        return bias.index_fill(0, self.impossible, -torch.inf) if len(self.impossible) else bias

    def readout(self) -> Readout:
        return Readout("logits", self.project.weight, self.bias, (self.project.out_features,))

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(features, self.project.weight, self.bias)

    def fast_answer(self) -> Callable[[Tensor], Any]:
        if type(self) is not Categorical:
            return super().fast_answer()
        project, impossible = change_of(self.project), self.impossible
        if len(impossible):
            return lambda y: project(y).index_fill_(1, impossible, -torch.inf)[:, None]
        return lambda y: project(y)[:, None]

    def native_answer(self) -> native_decoder.Answer | None:
        return native_decoder.Answer(self.project, self.impossible) if type(self) is Categorical else None

    @property
    def rules(self) -> tuple[Tensor | None, float]:
        """The weights of the classes and the smoothing, as they are now."""
        weights = self.weights if self.training and len(self.weights) else None
        return weights, self.smoothing if self.training else 0.0

    def tie(self, weight: nn.Parameter) -> None:
        self.project.weight = weight

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        weights, smoothing = self.rules
        logits = raise_to_single(self(features))
        if not smoothing or not len(self.impossible):
            return F.cross_entropy(logits, target, weights, reduction="none", label_smoothing=smoothing)
        logs = logits.log_softmax(-1)
        shared = logs.index_fill(-1, self.impossible, 0).sum(-1) / (logs.shape[-1] - len(self.impossible))
        return -(1 - smoothing) * logs.gather(-1, target[:, None])[:, 0] - smoothing * shared

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        features, target = select_valid(features, target, mask)
        if not self.chunk or len(features) <= self.chunk:
            return sum_and_count(self.negative_log_likelihood(features, target))
        layer, rules = self.project, (*self.rules, self.impossible)
        total = LinearCrossEntropy.apply(features, target, layer.weight, layer.bias, *rules, self.chunk)
        return total, total.new_tensor(len(features))

    def log_probability(self, expected: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return self.log_probabilities(expected, target, mask).sum(-1)

    def log_probabilities(self, expected: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        logs = raise_to_single(expected).log_softmax(-1).gather(-1, target[..., None]).squeeze(-1)
        return logs.masked_fill(~mask, 0)

    def sample(self, expected: Tensor, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        if temperature == 0:
            return expected.argmax(-1)
        return torch.distributions.Categorical(logits=expected / temperature).sample()


class Bernoulli(Head):
    """Any of `notes` at once: a piano roll."""

    outcome = "classes"

    def __init__(self, inputs: int, notes: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, notes)

    def readout(self) -> Readout:
        return Readout("logits", self.project.weight, self.project.bias, (self.project.out_features,))

    def forward(self, features: Tensor) -> Tensor:
        return self.project(features)

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(raise_to_single(self(features)), target, reduction="none").sum(-1)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        return sum_and_count(self.negative_log_likelihood(*select_valid(features, target, mask)))

    def sample(self, expected: Tensor, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        if temperature == 0:
            return (expected > 0).to(expected)
        return torch.bernoulli((expected / temperature).sigmoid())


class Normal(Head):
    """`channels` real numbers with their uncertainty: a time series."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, 2 * channels)

    def readout(self) -> Readout:
        return Readout("normal", self.project.weight, self.project.bias, (self.project.out_features // 2,))

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        mean, spread = raise_to_single(self.project(features)).chunk(2, -1)
        return mean, F.softplus(spread) + 1e-4

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        features, target = select_valid(features, target, mask)
        return sum_and_count(-torch.distributions.Normal(*self(features)).log_prob(target).sum(-1))

    def sample(self, expected: tuple[Tensor, Tensor], temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        mean, spread = expected
        return mean + temperature * spread * torch.randn_like(mean)


class Quantiles(Head):
    """`steps` × `channels` numbers at once, and of each, where the share of a level lies below it.

    The loss is that of the pinball (Koenker and Bassett, 1978); a target that is not known (NaN) does not count.
    """

    levels: Tensor

    def __init__(self, inputs: int, steps: int, channels: int, levels: Sequence[float]) -> None:
        super().__init__()
        self.shape = steps, channels, len(levels)
        self.project = nn.Linear(inputs, steps * channels * len(levels))
        self.register_buffer("levels", torch.tensor(levels), persistent=False)

    def readout(self) -> Readout:
        return Readout("quantiles", self.project.weight, self.project.bias, self.shape)

    def forward(self, features: Tensor) -> Tensor:
        """(..., steps, channels, levels), increasing on the last axis."""
        return raise_to_single(self.project(features)).unflatten(-1, self.shape).sort(-1).values

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        features, target = select_valid(features, target, mask)
        above = target.nan_to_num()[..., None] - self(features)
        return mask_missing(torch.maximum(self.levels * above, (self.levels - 1) * above).mean(-1), target)

    def sample(self, expected: Tensor, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        """Between the levels, in a straight line; beyond the outermost, these."""
        shift = torch.rand(expected.shape[:-1], device=expected.device) - 0.5
        level = 0.5 + temperature * shift
        right = torch.searchsorted(self.levels, level).clamp(1, max(len(self.levels) - 1, 1))
        left = right - 1
        right = right.clamp(max=len(self.levels) - 1)
        width = (self.levels[right] - self.levels[left]).clamp(min=torch.finfo(self.levels.dtype).tiny)
        share = ((level - self.levels[left]) / width).clamp(0, 1)[..., None]
        low, high = expected.gather(-1, left[..., None]), expected.gather(-1, right[..., None])
        return (low + share * (high - low))[..., 0]


class Mean(Head):
    """`steps` × `channels` numbers at once, by squared error; a target that is not known (NaN) does not count."""

    def __init__(self, inputs: int, steps: int, channels: int) -> None:
        super().__init__()
        self.shape = steps, channels
        self.project = nn.Linear(inputs, steps * channels)

    def readout(self) -> Readout:
        return Readout("values", self.project.weight, self.project.bias, self.shape)

    def forward(self, features: Tensor) -> Tensor:
        """(..., steps, channels)"""
        return raise_to_single(self.project(features)).unflatten(-1, self.shape)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        features, target = select_valid(features, target, mask)
        return mask_missing((target.nan_to_num() - self(features)) ** 2, target)

    def sample(self, expected: Tensor, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        """The mean, whatever the temperature: how far off it may be is not known."""
        return expected


def mask_missing(errors: Tensor, target: Tensor) -> Loss:
    """Of the targets that are known, the sum of the errors, and how many; no error may be NaN: so would its slope."""
    there = ~target.isnan()
    return (errors * there).sum(), there.sum()


class WrappedHead(Head):
    """Around another head, whose distribution it has: it changes what that one is computed from, or how."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head
        self.outcome = head.outcome

    def log_probability(self, expected: Any, target: Tensor, mask: Tensor) -> Tensor:
        return self.head.log_probability(expected, target, mask)

    def log_probabilities(self, expected: Any, target: Tensor, mask: Tensor) -> Tensor:
        return self.head.log_probabilities(expected, target, mask)

    def sample(self, expected: Any, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        return self.head.sample(expected, temperature, mask)


class MLPHead(WrappedHead):
    """A hidden layer in front of any head: a product and what is done `after` it, by default ReLU and dropout."""

    def __init__(
        self, inputs: int, hidden: int, head: Head, dropout: float = 0.0, after: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__(head)
        self.hidden = nn.Sequential(nn.Linear(inputs, hidden), *(after or (nn.ReLU(), Dropout(dropout))))

    def readout(self) -> Readout | None:
        inner = self.head.readout()
        return None if inner is None else replace(inner, hidden=(*self.hidden, *inner.hidden))

    def forward(self, features: Tensor) -> Any:
        return self.head(self.hidden(features))

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        return self.head.loss(self.hidden(features), target, mask)

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        return self.head.negative_log_likelihood(self.hidden(features), target)
