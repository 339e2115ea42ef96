"""NB-SVM beside a trained classifier: what each token and each pair of neighbors says about the label.

A net reads a text as a whole, a linear model of pairs knows rare phrases that few training texts have: the two err on
different texts. How much each of them counts is fitted on the validation part.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..arrays import Doubles, Integers
from ..baselines.bags import list_features
from ..baselines.nb_svm import fit_against_others
from ..data.ragged import Ragged
from ..errors import RunError
from ..layers.heads import Head
from ..models import Labeler
from .wrapping import MixingHead

SETTING = "model.nb_svm"
MOST_PAIRS = 1 << 21  # the most frequent ones are kept
HELD_BACK = 0.5  # nats that a share costs that is e times too large or too small: matters where few examples decide


class NBSVMMixture(NamedTuple):
    """How much each token, then each pair of tokens, speaks for each label, and how much that and the net count."""

    pairs: Integers  # sorted: first token × number of tokens + second token
    weights: Doubles  # (tokens + pairs, labels)
    biases: Doubles  # (labels,)
    shares: Doubles  # (2,): what the log-probabilities of the net and those of NB-SVM are multiplied by

    @property
    def settings(self) -> tuple[str, ...]:
        return (SETTING,)

    @classmethod
    def fit(cls, source: Ragged, labels: Integers, tokens: int, names: int) -> "NBSVMMixture":
        """NB-SVM alone, of encoded texts and their labels; labels that have no number do not count."""
        source, labels = source.take(np.flatnonzero(labels >= 0)), labels[labels >= 0]
        text, first, joined = join_tokens(source, tokens)
        keys, counts = np.unique(joined[joined >= 0], return_counts=True)
        if len(keys) > MOST_PAIRS:
            keys = np.sort(keys[np.argsort(-counts, kind="stable")[:MOST_PAIRS]])
        row, feature = list_features(text, first, joined, keys, tokens)
        used, number = np.unique(feature, return_inverse=True)  # symbols that no text has say nothing
        alone = range(1 if names == 2 else 0, names)
        fitted = [fit_against_others(row, number, labels == one, len(used)) for one in alone]
        weights, biases = np.zeros((tokens + len(keys), len(alone))), np.array([bias for _, bias in fitted])
        weights[used] = np.stack([weight for weight, _ in fitted], 1)
        if names == 2:  # one classifier for both
            weights, biases = np.concatenate([-weights, weights], 1), np.concatenate([-biases, biases])
        weights, biases = (values.astype(np.float32).astype(np.float64) for values in (weights, biases))  # as in files
        return cls(keys, weights, biases, np.ones(2))

    def score(self, source: Ragged) -> Doubles:
        """What NB-SVM says of encoded texts (N, labels)."""
        tokens = len(self.weights) - len(self.pairs)
        row, feature = list_features(*join_tokens(source, tokens), self.pairs, tokens)
        sums = [np.bincount(row, one[feature], minlength=len(source)) for one in self.weights.T]
        return np.stack(sums, 1) + self.biases

    def weigh(self, net: Tensor, counted: Tensor, labels: Tensor) -> "NBSVMMixture":
        """The same with the shares by which these labels of held-out texts are likeliest, given what both say."""
        scales = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([scales], max_iter=100, line_search_fn="strong_wolfe")

        def measure() -> Tensor:
            optimizer.zero_grad()
            logits = scales[0].exp() * net + scales[1].exp() * counted
            total = cross_entropy(logits, labels, reduction="sum") + HELD_BACK * scales.square().sum()
            total.backward()
            return total

        with torch.enable_grad():
            optimizer.step(measure)
        return self._replace(shares=scales.detach().exp().numpy())

    def wrap(self, net: Labeler) -> Labeler:
        """The net with NB-SVM beside it; the net stays as it is."""
        return NBSVMBeside(net, self).eval()

    # --- in the run folder ---

    def to_arrays(self) -> dict[str, Any]:
        single = {"weights": self.weights.astype(np.float32), "biases": self.biases.astype(np.float32)}
        return {"pairs": self.pairs, "shares": self.shares, **single}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], tokens: int, labels: int, place: object) -> "NBSVMMixture":
        """What `to_arrays` gave; RunError if it cannot be that."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        if arrays.keys() != set(cls._fields):
            raise RunError(f"{place}: does not hold the weights of an NB-SVM")
        found = cls(**{name: arrays[name] for name in cls._fields})
        pairs = found.pairs
        sound = (
            pairs.dtype == np.int64
            and pairs.ndim == 1
            and (np.diff(pairs) > 0).all()
            and (not len(pairs) or (pairs[0] >= 0 and pairs[-1] < tokens**2))
            and found.weights.shape == (tokens + len(pairs), labels)
            and found.biases.shape == (labels,)
            and found.shares.shape == (2,)
            and (found.shares > 0).all()
        )
        if not sound:
            raise RunError(f"{place}: the weights are not those of an NB-SVM of {tokens} tokens and {labels} labels")
        return cls(pairs, *(values.astype(np.float64) for values in found[1:]))


def join_tokens(source: Ragged, tokens: int) -> tuple[Integers, Integers, Integers]:
    """Of every token: its text, its number, and the pair that it begins, negative where it begins none."""
    text = np.repeat(np.arange(len(source)), source.lengths)
    values = source.values[:, 0] if source.values.ndim == 2 else source.values
    first = values.astype(np.int64)
    joined = np.full(len(first), -1)
    inside = text[:-1] == text[1:]
    joined[:-1][inside] = (first[:-1] * tokens + first[1:])[inside]
    return text, first, joined


class NBSVMBeside(Labeler):
    """A classifier whose head sees, behind what the net makes of a text, what NB-SVM says of it."""

    def __init__(self, net: Labeler, mixture: NBSVMMixture) -> None:
        super().__init__(net.embed, net.encoder, WeighedHead(net.head, mixture), per_element=False)
        self.mixture = mixture

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        own, there = super().features(x, mask), mask.cpu().numpy()
        texts = Ragged(x.cpu().numpy()[there], np.append(0, there.sum(1).cumsum()))
        return torch.cat([own, torch.from_numpy(self.mixture.score(texts)).to(own)], -1)


class WeighedHead(MixingHead):
    """The log-probabilities of the net and of NB-SVM, added by their shares."""

    def __init__(self, head: Head, mixture: NBSVMMixture) -> None:
        super().__init__(head, len(mixture.biases))
        self.own_share, self.other_share = mixture.shares.tolist()

    def mix(self, logits: Tensor, extra: Tensor) -> Tensor:
        return (self.own_share * logits.log_softmax(-1) + self.other_share * extra).log_softmax(-1)
