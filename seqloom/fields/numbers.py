"""Vectors of numbers, one a step, some of their values perhaps missing; scaled as the training part is."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..arguments import describe_value
from ..arrays import Singles
from ..config.recipe import Data, Model
from ..counts import format_count
from ..data.numbers import LARGEST, check_near
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..errors import DataError, RunError
from ..layers.embeddings import NumberEmbedding
from .base import ArrayField, Body, Rows, as_array, format_numbers, pad_to_one

SHOWN = 3  # steps of a sequence in a few words


class Numbers(ArrayField):
    """They are kept as read; `scaled` is what a network sees."""

    kind = "numbers"
    dtype = np.dtype(np.float32)

    def __init__(self, mean: Sequence[float], spread: Sequence[float], gaps: bool) -> None:
        self.mean, self.spread = (np.array(values, dtype=np.float32) for values in (mean, spread))
        self.gaps = gaps  # whether values were missing in training
        self.shape = (len(self.mean),)

    @classmethod
    def fit(cls, raws: Iterator[Singles], settings: Data) -> Self:
        """Mean and spread of each variable over all steps at which it is known."""
        steps, count, total, squares = 0, np.zeros(1), np.zeros(1), np.zeros(1)
        for values in raws:
            known = ~np.isnan(values)
            filled = np.where(known, values, 0).astype(np.float64)
            steps, count = steps + len(values), count + known.sum(0)
            total, squares = total + filled.sum(0), squares + (filled**2).sum(0)
        if not np.isfinite(squares).all():
            raise DataError("the numbers are too large to be scaled")
        gaps = bool((count < steps).any())
        mean = total / np.maximum(count, 1)
        spread = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
        return cls(mean.tolist(), np.where(spread > 1e-12, spread, 1).tolist(), gaps)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        mean, spread, gaps = (values.get(key) for key in ("mean", "spread", "gaps"))
        lists = isinstance(mean, list) and isinstance(spread, list) and len(mean) == len(spread) > 0
        if not lists or not isinstance(gaps, bool) or not all(map(_is_usable, mean, spread)):  # type: ignore[arg-type]
            raise RunError("the scale of the source is not a mean and a spread above 0 for each variable")
        return cls(mean, spread, gaps)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mean": self.mean.tolist(), "spread": self.spread.tolist(), "gaps": self.gaps}

    def __len__(self) -> int:
        return len(self.mean)

    @classmethod
    def check(cls, raw: Raw) -> str:
        array = as_array(raw)
        if array is None or array.ndim not in (1, 2):
            return f"is {describe_value(raw)}, but an array of numbers was expected: steps × variables"
        if (large := np.abs(array) > LARGEST).any():
            return f"holds the number {array[large][0]:g}, but numbers are read up to {LARGEST:.0e}"
        return ""

    def encode_many(self, raws: Sequence[Any]) -> Ragged:
        arrays = [np.asarray(raw, dtype=np.float32).reshape(len(raw), -1) for raw in raws]
        for array in arrays:
            if array.shape[1] != len(self):
                raise DataError(
                    f"an input has {format_count(array.shape[1], 'number')} a step, but this model reads {len(self)}"
                )
            check_near(array, self.mean, self.spread)
        return Ragged.stack(arrays) if arrays else Ragged(np.empty((0, len(self)), np.float32), np.zeros(1, np.int64))

    def describe(self, raw: Raw) -> str:
        values = np.asarray(raw, dtype=np.float32)
        return f"{super().describe(raw)}: {'; '.join(map(format_numbers, values[:SHOWN]))}"

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        return super().describe_encoded(self.scale_values(encoded[None])[0])

    @property
    def inputs(self) -> int:
        """The numbers of a step that a network sees: with gaps, each with whether it is known and since when."""
        return len(self) * (3 if self.gaps else 1)

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        return nn.Identity() if decays(model) else NumberEmbedding(self.inputs, model.embedding)

    def features(self, model: Model) -> int:
        return 3 * len(self) if decays(model) else model.embedding

    def collate(self, encoded: Ragged, rows: Rows, model: Model) -> tuple[Tensor, Tensor]:
        values, lengths = encoded.pad(rows)
        return pad_to_one(torch.from_numpy(self.scale_values(values, decays(model))), lengths)

    def depends_on_past(self, model: Model) -> bool:
        return self.gaps or decays(model)

    def scale_values(self, values: Singles, whole: bool = False) -> Singles:
        """Values (B, T, D) as the network sees them: (B, T, D), or (B, T, 3 D) with what is known and for how long.

        The latter where values were missing in training, or where the `whole` of it is asked for.
        """
        known = ~np.isnan(values)
        scaled = (np.where(known, values, self.mean) - self.mean) / self.spread
        if not self.gaps and not whole:
            if not known.all():
                raise DataError("a value is missing, but in training none was")
            return scaled.astype(np.float32)
        return np.concatenate([scaled, known, count_since_known(known)], -1).astype(np.float32)


def decays(model: Model) -> bool:
    """Whether the encoder itself wants to know of every number if it was there, and for how long not."""
    return model.side("encoder").kind == "gru-d"


def count_since_known(known: NDArray[np.bool_]) -> Singles:
    """How many steps ago each variable was last known, (…, T, D); where it never was, since the beginning."""
    steps = np.arange(known.shape[-2])[:, None]
    last = np.maximum.accumulate(np.where(known, steps, 0), axis=-2)
    before = np.concatenate([np.zeros_like(last[..., :1, :]), last[..., :-1, :]], -2)
    return (steps - before).astype(np.float32)


def _is_usable(mean: object, spread: object) -> bool:
    numbers = isinstance(mean, float | int) and isinstance(spread, float | int)
    return numbers and abs(mean) < 1e38 and 0 < spread < 1e38  # type: ignore[arg-type,operator]
