"""What a model expects at every position: the likeliest symbols, how sure it is, and how surprised it was."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...arrays import Floats
from ...errors import RunError
from ...models import Batch, Generator, Labeler
from .reading import Names, compute_features, disable_dropout, number_positions, take_row

TEMPERATURES = tuple(n / 20 for n in range(2, 41))  # from 0.1 to 2: the stops of a slider


@dataclass(frozen=True)
class NextTokens:
    """At every position: the likeliest symbols and their probabilities, at each of some temperatures."""

    steps: list[str]  # what was read last
    target: list[str]  # what really came
    temperatures: tuple[float, ...]
    symbols: NDArray[np.int64]  # (T, top), the likeliest first
    probabilities: Floats  # (temperatures, T, top)
    entropy: Floats  # (temperatures, T), in bits
    surprise: Floats  # (T,), in bits, at temperature 1: how unlikely was what came
    labels: bool = False  # whether the symbols are labels of what was read, rather than what comes next

    def name_symbols(self, vocabulary: Sequence[str]) -> list[list[str]]:
        return [[vocabulary[symbol] for symbol in row] for row in self.symbols]


def predict_next_tokens(
    model: Labeler | Generator,
    batch: Batch,
    names: Names | None = None,
    top: int = 5,
    temperatures: Sequence[float] = TEMPERATURES,
) -> NextTokens:
    """On the first row of the batch, for a model whose head gives logits over symbols."""
    batch = take_row(batch)
    names = number_positions(batch) if names is None else names
    if not predicts_symbols(model):
        raise RunError(f"a model with a {type(model.head).__name__} head gives no distribution over next symbols")
    with disable_dropout(model), torch.no_grad():
        raw_logits: Tensor = model.head(compute_features(model, batch))
    logits = raw_logits.double().cpu().view(-1, raw_logits.shape[-1])
    each = len(logits) == batch.mask.shape[1]
    if each:
        logits = logits[batch.mask[0].cpu()]
    top = min(top, logits.shape[-1])
    symbols = logits.topk(top, -1).indices
    heated = [_compute_softmax(logits, temperature) for temperature in temperatures]
    shown = [one.gather(-1, symbols) for one in heated]
    target = batch.target.cpu().view(-1)[: len(logits)]
    came = logits.log_softmax(-1).gather(-1, target[:, None])[:, 0] / -np.log(2)
    return NextTokens(
        names.inputs[: len(logits)] if each else [names.inputs[-1] if names.inputs else ""],
        names.target[: len(logits)],
        tuple(temperatures),
        symbols.numpy(),
        torch.stack(shown).numpy(),
        torch.stack([_compute_entropy(one) for one in heated]).numpy(),
        came.numpy(),
        not model.generates,
    )


def predicts_symbols(model: Labeler | Generator) -> bool:
    """Whether the model chooses one of several symbols, rather than numbers or any number of them."""
    return model.head.outcome in ("class", "path")


def _compute_softmax(logits: Tensor, temperature: float) -> Tensor:
    """At temperature 0, all probability is the likeliest symbol's."""
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()
    return (logits / temperature).softmax(-1)


def _compute_entropy(probabilities: Tensor) -> Tensor:
    return -torch.special.xlogy(probabilities, probabilities).sum(-1) / np.log(2)
