"""A bag of tokens that begins as NB-SVM: its first features are how much each symbol speaks for each label, the
log-count ratios of naive Bayes, weighed by a logistic regression.

Wang and Manning (2012) found such features to beat both naive Bayes and a linear model without them on short texts.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..arrays import Doubles, Integers
from ..baselines.nb_svm import fit_against_others
from ..data.ragged import Ragged

TRUSTS = (0.25, 0.5, 1.0, 2.0, 4.0)  # how sure of itself the beginning may be: the surest that validation bears
SMALL = 0.1  # the part of their usual spread that other features begin with


def list_once(source: Ragged, symbols: int) -> tuple[Integers, Integers]:
    """Each symbol of a text once: the number of the text, and the symbol."""
    owner = np.repeat(np.arange(len(source)), source.lengths)
    once = np.unique(owner * symbols + source.values.astype(np.int64))
    return once // symbols, once % symbols


def weigh_evidence(source: Ragged, labels: Ragged, symbols: int, classes: int) -> tuple[Doubles, Doubles]:
    """How much each symbol speaks for each label (symbols, classes), and each label by itself (classes,), by NB-SVM."""
    text, symbol = list_once(source, symbols)
    label = labels.values.astype(np.int64)
    known = (label >= 0) & (label < classes)
    place = np.cumsum(known) - 1  # of a text among those whose label is known
    kept = known[text]
    row, feature = place[text[kept]], symbol[kept]
    fitted = [fit_against_others(row, feature, label[known] == one, symbols) for one in range(classes)]
    weights, biases = zip(*fitted, strict=True)
    return np.stack(weights, 1), np.array(biases)


@torch.no_grad()
def choose_trust(evidence: Doubles, biases: Doubles, length: float, source: Ragged, labels: Ragged) -> float:
    """The trust by which these labels of validation are likeliest."""
    owner = np.repeat(np.arange(len(source)), source.lengths)
    sums = np.stack([np.bincount(owner, row[source.values], len(source)) for row in evidence.T], 1)
    scores = torch.from_numpy(sums * (length / np.maximum(source.lengths, 1))[:, None] ** 0.5 + biases)
    truth = torch.from_numpy(labels.values.astype(np.int64))
    kept = (truth >= 0) & (truth < len(biases))
    if not kept.any():
        return 1.0
    return min(TRUSTS, key=lambda trust: float(cross_entropy(trust * scores[kept], truth[kept])))


@torch.no_grad()
def begin_with_naive_bayes(
    model: Any, train: Mapping[str, Ragged], validation: Mapping[str, Ragged], names: int
) -> bool:
    """Set the first features of the embedding and of the head; false if there are too few of them for the labels."""
    embed, project = model.embed, model.head.project
    symbols, size = embed.weight.shape
    if size < names:
        return False
    source = train["source"]
    evidence, biases = weigh_evidence(source, train["target"], symbols, names)
    length = float(np.mean(np.maximum(source.lengths, 1)))
    trust = choose_trust(evidence, biases, length, validation["source"], validation["target"])
    embed.weight.mul_(SMALL)
    embed.weight[:, :names] = torch.from_numpy(evidence * length**0.5 / embed.scale)
    project.weight.mul_(SMALL)
    project.weight[:, :names] = trust * torch.eye(names)
    project.bias.copy_(torch.from_numpy(trust * biases))
    return True
