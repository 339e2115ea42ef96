"""Sources that are numbers: a vector a step, some of its values perhaps missing; scaled as the training part is."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.arrays import Singles
from seqloom.data.codec import Codec
from seqloom.data.ragged import Ragged
from seqloom.errors import DataError, RunError

MISSING = frozenset(("", "?", "na", "nan", "null", "none"))
LARGEST = 1e35  # of a number that is read: single precision ends at 3.4e38, and sums have to fit as well
FARTHEST = 1e15  # spreads from the mean of training: what is farther off has no square in single precision


class Numbers(Codec):
    """Vectors of numbers. They are kept as read; `scaled` is what a network sees."""

    kind = "numbers"
    dtype = np.dtype(np.float32)

    def __init__(self, mean: Sequence[float], spread: Sequence[float], gaps: bool) -> None:
        self.mean, self.spread = (np.array(values, dtype=np.float32) for values in (mean, spread))
        self.gaps = gaps  # whether values were missing in training
        self.shape = (len(self.mean),)

    @classmethod
    def learn(cls, series: Iterator[Singles]) -> "Numbers":
        """Mean and spread of each variable over all steps at which it is known."""
        steps, count, total, squares = 0, np.zeros(1), np.zeros(1), np.zeros(1)
        for values in series:
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
    def read(cls, found: dict[str, Any]) -> "Numbers":
        mean, spread, gaps = (found.get(key) for key in ("mean", "spread", "gaps"))
        lists = isinstance(mean, list) and isinstance(spread, list) and len(mean) == len(spread) > 0
        if not lists or not isinstance(gaps, bool) or not all(map(_usable, mean, spread)):  # type: ignore[arg-type]
            raise RunError("the scale of the source is not a mean and a spread above 0 for each variable")
        return cls(mean, spread, gaps)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def inputs(self) -> int:
        """The numbers of a step that a network sees: with gaps, each with whether it is known and since when."""
        return len(self) * (3 if self.gaps else 1)

    def encode_many(self, raws: Sequence[Any]) -> Ragged:
        arrays = [np.asarray(raw, dtype=np.float32).reshape(len(raw), -1) for raw in raws]
        for array in arrays:
            if array.shape[1] != len(self):
                raise DataError(f"an input has {array.shape[1]} numbers a step, but this model reads {len(self)}")
            check_near(array, self.mean, self.spread)
        return Ragged.stacked(arrays) if arrays else Ragged(np.empty((0, len(self)), np.float32), np.zeros(1, np.int64))

    def scaled(self, values: Singles, whole: bool = False) -> Singles:
        """Values (B, T, D) as the network sees them: (B, T, D), or (B, T, 3 D) with what is known and for how long.

        The latter where values were missing in training, or where the `whole` of it is asked for.
        """
        known = ~np.isnan(values)
        scaled = (np.where(known, values, self.mean) - self.mean) / self.spread
        if not self.gaps and not whole:
            if not known.all():
                raise DataError("a value is missing, but in training none was")
            return scaled.astype(np.float32)
        return np.concatenate([scaled, known, since(known)], -1).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mean": self.mean.tolist(), "spread": self.spread.tolist(), "gaps": self.gaps}


def since(known: NDArray[np.bool_]) -> Singles:
    """How many steps ago each variable was last known, (…, T, D); where it never was, since the beginning."""
    steps = np.arange(known.shape[-2])[:, None]
    last = np.maximum.accumulate(np.where(known, steps, 0), axis=-2)
    before = np.concatenate([np.zeros_like(last[..., :1, :]), last[..., :-1, :]], -2)
    return (steps - before).astype(np.float32)


def check_near(values: NDArray[Any], mean: Any, spread: Any) -> None:
    """Refuse numbers that cannot be brought onto the scale of training; NaN stands for a gap and is none of them."""
    with np.errstate(over="ignore"):
        far = np.abs(values - mean) / spread > FARTHEST
    if far.any():
        raise DataError(
            f"the number {values[far].flat[0]:g} is more than {FARTHEST:.0e} times as far from the mean of training as "
            "numbers there usually are: it cannot be brought onto their scale"
        )


def number_or_gap(text: str) -> float:
    """The number that a text is, NaN where it says that there is none; ValueError for anything else."""
    if text.strip().lower() in MISSING:
        return float("nan")
    number = float(text)
    if not abs(number) <= LARGEST:
        raise ValueError
    return number


def why_no_number(text: str) -> str:
    """What was expected in place of a text that `number_or_gap` refuses."""
    try:
        large = LARGEST < abs(float(text)) < float("inf")
    except ValueError:
        large = False
    return f"a number of at most {LARGEST:.0e} was expected" if large else "a number was expected"


def _usable(mean: object, spread: object) -> bool:
    numbers = isinstance(mean, float | int) and isinstance(spread, float | int)
    return numbers and abs(mean) < 1e38 and 0 < spread < 1e38  # type: ignore[arg-type,operator]
