"""What is inside a model, as arrays with labels. Nothing is drawn here, and watching changes nothing."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..layers.attending import Bahdanau, Luong
from ..layers.tap import recording
from ..layers.transformer import CrossAttention
from ..models import Batch, Generator


@dataclass(frozen=True)
class AttentionMap:
    """How much each target token looked at each source token."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float32]  # (T, S) each, one behind the other
    names: list[str]  # of each map: which layer, which head


@torch.no_grad()
def source_attention(model: Generator, batch: Batch, source: list[str], target: list[str]) -> AttentionMap:
    """The attention of a decoder over one source, while it writes the one target of the batch."""
    places = [
        name for name, part in model.decoder.named_modules() if isinstance(part, Bahdanau | Luong | CrossAttention)
    ]
    with recording(model.decoder, "*weights") as tape:
        model.features(batch.inputs, model.start(1, *batch.source), batch.mask)
    maps, names = [], []
    for level, place in enumerate(places, 1):
        seen = [value for name, values in tape.items() if name.startswith(f"{place}.") for value in values]
        weights = torch.cat(seen, -2)[0]  # a walk over time leaves one (…, 1, S) a step
        heads = weights if weights.dim() == 3 else weights[None]
        maps += [head.numpy() for head in heads]
        names += [f"layer {level}" + (f", head {head}" if len(heads) > 1 else "") for head in range(1, len(heads) + 1)]
    shape = (0, len(target), len(source))
    return AttentionMap(source, target, np.stack(maps) if maps else np.zeros(shape, np.float32), names)
