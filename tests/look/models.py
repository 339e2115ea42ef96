"""Small models of every kind to look into, and batches with padding wherever it can stand."""

import torch
from torch import nn

from seqloom.layers.heads import Categorical
from seqloom.models import Batch, Generator, Labeler

from ..laws.zoo import MASKS, PLAIN, SIZE, D, encoder, talker, writer

SYMBOLS = 12


def labeler(name: str, each: bool = False) -> Labeler:
    return Labeler(nn.Embedding(SYMBOLS, D), encoder(name), Categorical(SIZE, 5), each)


READS = ("gru-both", "merge-project", "learned-start", "pooled", "convolution-both", "transformer-post")
LOOKS = ("lstm-luong-dot", "lstm-bahdanau-additive", "convolution-luong", "hard", "transformer-rotary")
MODELS = {
    **{f"label {name}": lambda name=name: labeler(name) for name in READS},
    **{f"tag {name}": lambda name=name: labeler(name, each=True) for name in ("lstm-both", "transformer-window")},
    **{f"write {name}": lambda name=name: writer(name, "gru-both") for name in LOOKS},
    "write about pooled": lambda: writer("transformer-pre", "pooled"),
    **{f"talk {name}": lambda name=name: talker(name) for name in PLAIN},
}
SIDES = {**MASKS, "one": torch.ones(3, 1, dtype=torch.bool), "nothing": torch.zeros(3, 1, dtype=torch.bool)}


def batch_for(model: Labeler | Generator, mask: torch.Tensor) -> Batch:
    chance = torch.Generator().manual_seed(3)
    inputs = torch.randint(SYMBOLS, mask.shape, generator=chance)
    if isinstance(model, Labeler):
        target = torch.randint(5, mask.shape if model.per_element else mask.shape[:1], generator=chance)
        return Batch(inputs, mask, target)
    target = torch.randint(SYMBOLS, mask.shape, generator=chance)
    if model.source is None:
        return Batch(inputs, mask, target)
    return Batch(inputs, mask, target, (torch.randint(SYMBOLS, mask.shape, generator=chance), mask.flip(0)))
