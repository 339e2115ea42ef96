"""A bag of tokens that begins as naive Bayes: the log-count ratios of each label are its first features.

Wang and Manning (2012) found such features to beat both naive Bayes and a linear model without them on short texts.
"""

from typing import Any

import numpy as np
import torch

from ..arrays import Doubles
from ..data.ragged import Ragged

TRUST = 0.3  # how sure of itself the beginning is: naive Bayes itself is far too sure
SMALL = 0.1  # the part of their usual spread that other features begin with


def count_evidence(source: Ragged, labels: Ragged, symbols: int, classes: int) -> Doubles:
    """How much each symbol speaks for each label, in nats, the mean over the labels being 0: (symbols, classes).

    A symbol counts once a text, and once more for each label (Laplace).
    """
    owner = np.repeat(np.arange(len(source)), source.lengths)
    once = np.unique(owner * symbols + source.values.astype(np.int64))
    label = labels.values.astype(np.int64)[once // symbols]
    known = (label >= 0) & (label < classes)
    counts = np.bincount(label[known] * symbols + (once % symbols)[known], minlength=classes * symbols) + 1.0
    table = counts.reshape(classes, symbols)
    evidence = np.log(table / table.sum(1, keepdims=True)).T
    return evidence - evidence.mean(1, keepdims=True)


@torch.no_grad()
def begin_with_naive_bayes(model: Any, source: Ragged, labels: Ragged, names: int) -> bool:
    """Set the first features of the embedding and of the head; false if there are too few of them for the labels."""
    embed, project = model.embed, model.head.project
    symbols, size = embed.weight.shape
    if size < names:
        return False
    evidence = count_evidence(source, labels, symbols, names)
    length = float(np.mean(np.maximum(source.lengths, 1)))
    counts = np.bincount(labels.values[labels.values >= 0].astype(np.int64), minlength=names)
    embed.weight.mul_(SMALL)
    embed.weight[:, :names] = torch.from_numpy(evidence / embed.scale)
    project.weight.mul_(SMALL)
    project.weight[:, :names] = TRUST * length**0.5 * torch.eye(names)
    project.bias.copy_(torch.from_numpy(np.log((counts + 1) / (counts.sum() + names))))
    return True
