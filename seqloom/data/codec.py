"""How one side of an example becomes numbers: learned from the training rows, kept as JSON. Knows no file."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Ragged

Raw = Any  # one side of one example as it is read: a text, or an array whose first axis is its length
Counts = dict[str, int]


class Codec(ABC):
    """Raw values to numbers. What it knows was learned from training rows and from nothing else."""

    kind: str
    dtype: np.dtype[Any]  # of the numbers, on disk
    shape: tuple[int, ...] = ()  # of one element
    unknown: int | None = None  # the number of what was never learned

    @abstractmethod
    def __len__(self) -> int:
        """How many different numbers there are, or how many of them make an element."""

    @abstractmethod
    def encode_many(self, raws: Sequence[Raw]) -> Ragged: ...

    def normalize(self, raw: Raw) -> Raw:
        """`raw` as a perfect model would give it."""
        return raw

    def balance(self, counts: NDArray[np.int64]) -> Counts:
        """How often each number occurs, by name, where that is worth a look; `counts` is by number."""
        return {}

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything learned, with its kind."""


class Symbols(Codec):
    """Numbers that stand for symbols, which can be written one after the other; the special ones come first."""

    symbols: tuple[str, ...]  # by number

    @abstractmethod
    def names(self, ids: Iterable[int]) -> list[str]:
        """Each symbol as a person sees it in a picture."""


Learn = Callable[[Iterator[Raw]], Codec]
