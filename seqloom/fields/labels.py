"""Answers that are no sequences: one label, several labels at once, a number; and a label for each element.

Each learns its names or its scale from the training rows. A label that was never seen there has no number, which is an
error in training and a miss in scoring; it is never taken for another one.
"""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config.recipe import Data, Recipe
from ..counts import format_count
from ..data.numbers import LARGEST, check_near
from ..data.pretokenized import join_elements, split_elements
from ..data.ragged import Ragged, compute_offsets
from ..data.schema import Raw
from ..data.vocabulary import check_symbols
from ..errors import DataError, RunError
from ..layers.crf import CRF
from ..layers.heads import Bernoulli, Categorical, Head, Normal
from ..layers.padding import lengths_to_mask
from .base import Field, Prediction, Rows

NONE = -1  # the number of a label that was never seen in training


@dataclass(frozen=True)
class LabelPrediction(Prediction):
    """A label, and how probable it is; predictions are ranked by the logarithm."""

    probability: float

    def measures(self) -> dict[str, float]:
        return {"probability": self.probability}

    def get_class_probabilities(self) -> dict[str, float]:
        return {self.output: self.probability}


@dataclass(frozen=True)
class LabelSetPrediction(Prediction):
    """All labels that are likelier than not, and how probable each one is; the score is the log-probability of just
    these, each label on its own."""

    probabilities: dict[str, float]

    def measures(self) -> dict[str, float]:
        return {"probability": math.exp(self.score)}

    def get_class_probabilities(self) -> dict[str, float]:
        return self.probabilities


@dataclass(frozen=True)
class NumberPrediction(Prediction):
    """A number and how far off it may be: one standard deviation. It has no rank."""

    value: float
    spread: float

    @property
    def exact(self) -> str:
        return repr(self.value)

    def rows(self) -> list[dict[str, Any]]:
        return [{"prediction": self.value, "spread": self.spread}]


class NameField(Field):
    """Names by number, the most frequent first."""

    dtype = np.dtype(np.int32)
    unknown = NONE

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.symbols = self.names
        self.numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    @abstractmethod
    def split(cls, raw: str) -> list[str]:
        """The names in a text."""

    @classmethod
    def fit(cls, raws: Iterator[str], settings: Data) -> Self:
        counts = Counter(name for text in raws for name in cls.split(text))
        return cls(sorted(counts, key=lambda name: (-counts[name], name)))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        names = check_symbols(values.get("names"))
        if not names:
            raise RunError("the labels are an empty list")
        return cls(names)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        return Ragged.of([[self.numbers.get(name, NONE) for name in self.split(raw)] for raw in raws])

    def check_answer(self, raw: Raw) -> None:
        if unknown := [name for name in self.split(raw) if name not in self.numbers]:
            known = ", ".join(self.names[:10]) + (" …" if len(self) > 10 else "")
            raise DataError(
                f"{unknown[0]!r:.80} is none of the {format_count(len(self), 'label')} of this run: {known}"
            )

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        """Each name with its number among all."""
        return [f"{self.names[number]} ({number + 1} of {len(self)})" for number in encoded.tolist() if number != NONE]

    def balance(self, counts: NDArray[np.int64]) -> dict[str, int]:
        return dict(zip(self.names, counts.tolist(), strict=True))


class Label(NameField):
    """One of several names."""

    kind = "label"

    @classmethod
    def split(cls, raw: str) -> list[str]:
        return [raw]

    def find_known_rows(self, encoded: Ragged) -> NDArray[np.int64]:
        return np.flatnonzero(encoded.values != NONE)

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        return Categorical(features, len(self), 0, recipe.train.label_smoothing, weights)

    def targets(self, encoded: Ragged, rows: Rows) -> Tensor:
        """A class (B,)."""
        return torch.from_numpy(encoded.pad(rows)[0])[:, 0]

    def predictions(self, expected: Any, count: int) -> list[Prediction]:
        logs, places = expected.cpu().double().log_softmax(-1).topk(min(count, len(self)))
        best = zip(logs.tolist(), places.tolist(), strict=True)
        return [LabelPrediction(self.names[place], log, math.exp(log)) for log, place in best]


class LabelSet(NameField):
    """Any number of names at once, between commas; none at all is written as "-"."""

    kind = "labels"

    @classmethod
    def split(cls, raw: str) -> list[str]:
        return split_names(raw)

    @classmethod
    def convert(cls, value: Any) -> Raw:
        """A list or a set of labels, perhaps an empty one, or a text."""
        if isinstance(value, list | tuple | set | frozenset):
            names = [str(one).strip() for one in value]
            return value if any("," in name or not name for name in names) else join_names(sorted(set(names)))
        return super().convert(value)

    def normalize(self, raw: str) -> str:
        return join_names(split_names(raw))

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        return Bernoulli(features, len(self))

    def targets(self, encoded: Ragged, rows: Rows) -> Tensor:
        """Which classes (B, K), 1 or 0 each."""
        values, lengths = map(torch.from_numpy, encoded.pad(rows))
        target = torch.zeros(len(values), len(self))
        row, place = torch.nonzero(lengths_to_mask(lengths, values.shape[1]) & (values != NONE), as_tuple=True)
        target[row, values[row, place]] = 1
        return target

    def predictions(self, expected: Any, count: int) -> list[Prediction]:
        chances = expected.cpu().double().sigmoid()
        likely = join_names(sorted(name for name, chance in zip(self.names, chances, strict=True) if chance > 0.5))
        score = float(torch.maximum(chances, 1 - chances).log().sum())
        return [LabelSetPrediction(likely, score, dict(zip(self.names, chances.tolist(), strict=True)))]

    def error(self, prediction: Prediction, answer: str) -> float:
        return float(set(split_names(prediction.output)) != set(split_names(answer)))


class Number(Field):
    """A number, and the scale of those in training."""

    kind = "number"
    dtype = np.dtype(np.float32)

    def __init__(self, mean: float, spread: float) -> None:
        self.mean, self.spread = mean, spread

    @classmethod
    def fit(cls, raws: Iterator[str], settings: Data) -> Self:
        numbers = np.fromiter(map(parse_number, raws), np.float64)
        return cls(float(numbers.mean()), float(numbers.std()) or 1.0)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        mean, spread = values.get("mean"), values.get("spread")
        floats = isinstance(mean, float) and isinstance(spread, float)
        if not floats or not np.isfinite(mean) or not 0 < spread < 1e38:  # type: ignore[arg-type,operator]
            raise RunError("the scale of the target is not a mean and a spread above 0")
        return cls(mean, spread)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mean": self.mean, "spread": self.spread}

    def __len__(self) -> int:
        return 1

    @classmethod
    def check(cls, raw: Raw) -> str:
        if sentence := super().check(raw):
            return sentence
        try:
            parse_number(raw)
        except DataError as error:
            return str(error).removeprefix("the target ")
        return ""

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        numbers = np.fromiter(map(parse_number, raws), np.float32, len(raws))
        check_near(numbers, self.mean, self.spread)
        return Ragged(numbers, compute_offsets(np.ones(len(raws), dtype=np.int64)))

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        return Normal(features, 1)

    def targets(self, encoded: Ragged, rows: Rows) -> Tensor:
        """A number on the scale of training (B, 1)."""
        return (torch.from_numpy(encoded.pad(rows)[0]) - self.mean) / self.spread

    def predictions(self, expected: Any, count: int) -> list[Prediction]:
        value, spread = (float(part) * self.spread for part in expected)
        return [NumberPrediction(f"{value + self.mean:.4g}", 0.0, value + self.mean, spread)]

    def error(self, prediction: Any, answer: str) -> float:
        return abs(prediction.value - parse_number(answer))


class Tags(NameField):
    """A label for each element, between them what stands between the elements."""

    kind = "tags"
    per_element = True

    @classmethod
    def split(cls, raw: str) -> list[str]:
        return split_elements(raw)

    @classmethod
    def convert(cls, value: Any) -> Raw:
        """A list of tags, or a text."""
        return super().convert(join_elements(value))

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        if recipe.model.crf:
            return CRF(features, len(self))
        return Categorical(features, len(self), 0, recipe.train.label_smoothing, weights)

    def targets(self, encoded: Ragged, rows: Rows) -> Tensor:
        """Tags (B, T), NONE where one was never seen in training and behind the end of a row."""
        values, lengths = map(torch.from_numpy, encoded.pad(rows))
        return values.masked_fill(~lengths_to_mask(lengths, values.shape[1]), NONE)


def split_names(text: str) -> list[str]:
    """The labels of a text such as "sport, politics"; sorted, each once."""
    return sorted({name for part in text.split(",") if (name := part.strip()) and name != "-"})


def join_names(names: Sequence[str]) -> str:
    """Labels as a text."""
    return ", ".join(names) or "-"


def parse_number(text: str) -> float:
    """The number that a text is. A comma may stand for the point where there is no point."""
    try:
        number = float(text.replace(",", ".") if "." not in text else text)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise DataError(f"the target {text!r:.50} is not a number, but this recipe's target is one (data.target_type)")
    if abs(number) > LARGEST:
        raise DataError(f"the target {text!r:.50} is too large: numbers are read up to {LARGEST:.0e}")
    return number
