"""Targets that are no sequences: one label, several labels at once, a number; and a label for each element.

Each learns its names or its scale from the training rows. A label that was never seen there has no number, which is an
error in training and a miss in scoring; it is never taken for another one.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.data.codec import Codec, Counts
from seqloom.data.numbers import LARGEST, check_near
from seqloom.data.ragged import Ragged, offsets_of
from seqloom.data.vocabulary import checked_symbols
from seqloom.errors import DataError, RunError

NONE = -1  # the number of a label that was never seen in training


class Named(Codec):
    """Names by number, the most frequent first."""

    dtype = np.dtype(np.int32)
    unknown = NONE

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    @abstractmethod
    def parts(cls, raw: str) -> list[str]:
        """The names in a text."""

    @classmethod
    def learn(cls, texts: Iterator[str]) -> Self:
        counts = Counter(name for text in texts for name in cls.parts(text))
        return cls(sorted(counts, key=lambda name: (-counts[name], name)))

    @classmethod
    def read(cls, found: dict[str, Any]) -> Self:
        names = checked_symbols(found.get("names"))
        if not names:
            raise RunError("the labels are an empty list")
        return cls(names)

    def __len__(self) -> int:
        return len(self.names)

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        return Ragged.of([[self.numbers.get(name, NONE) for name in self.parts(raw)] for raw in raws])

    def balance(self, counts: NDArray[np.int64]) -> Counts:
        return dict(zip(self.names, counts.tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names)}


class Labels(Named):
    """One of several names."""

    kind = "label"

    @classmethod
    def parts(cls, raw: str) -> list[str]:
        return [raw]


class LabelSets(Named):
    """Any number of names at once, between commas; none at all is written as "-"."""

    kind = "labels"

    @classmethod
    def parts(cls, raw: str) -> list[str]:
        return names_in(raw)

    def normalize(self, raw: str) -> str:
        return written(names_in(raw))


class Rating(Codec):
    """A number, and the scale of those in training."""

    kind = "number"
    dtype = np.dtype(np.float32)

    def __init__(self, mean: float, spread: float) -> None:
        self.mean, self.spread = mean, spread

    @classmethod
    def learn(cls, texts: Iterator[str]) -> "Rating":
        numbers = np.fromiter(map(number_in, texts), np.float64)
        return cls(float(numbers.mean()), float(numbers.std()) or 1.0)

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Rating":
        mean, spread = (found.get(key) for key in ("mean", "spread"))
        if (
            not isinstance(mean, float)
            or not isinstance(spread, float)
            or not (np.isfinite(mean) and 0 < spread < 1e38)
        ):
            raise RunError("the scale of the target is not a mean and a spread above 0")
        return cls(mean, spread)

    def __len__(self) -> int:
        return 1

    def encode_many(self, raws: Sequence[str]) -> Ragged:
        numbers = np.fromiter(map(number_in, raws), np.float32, len(raws))
        check_near(numbers, self.mean, self.spread)
        return Ragged(numbers, offsets_of(np.ones(len(raws), dtype=np.int64)))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mean": self.mean, "spread": self.spread}


def names_in(text: str) -> list[str]:
    """The labels of a text such as "sport, politics"; sorted, each once."""
    return sorted({name for part in text.split(",") if (name := part.strip()) and name != "-"})


def written(names: Sequence[str]) -> str:
    """Labels as a text."""
    return ", ".join(names) or "-"


def number_in(text: str) -> float:
    """The number that a text is. A comma may stand for the point where there is no point."""
    try:
        number = float(text.replace(",", ".") if "." not in text else text)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise DataError(f"the target {text!r:.50} is no number, but this recipe's target is one (data.target_type)")
    if abs(number) > LARGEST:
        raise DataError(f"the target {text!r:.50} is too large: numbers are read up to {LARGEST:.0e}")
    return number
