"""What is mixed into what a trained net expects: a cache of what was read, an n-gram model of the training text."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from ..errors import RunError
from ..models import Generator
from .continuous_cache import MAX_LENGTH, ContinuousCache
from .ngram_mixture import NGramMixture

CACHE = "cache"


class Mixture(Protocol):
    """What is mixed into the answers of a trained net."""

    @property
    def settings(self) -> Sequence[str]:
        """The settings that want it."""

    def wrap(self, net: Any) -> Any:
        """The net with what is mixed in; the net stays as it is."""

    def to_arrays(self) -> dict[str, Any]:
        """By name, for the run folder."""


class TokenMixture(NamedTuple):
    """One of them, or both: the cache stands next to the net, the n-gram model around the two."""

    cache: ContinuousCache | None
    ngram: NGramMixture | None

    def wrap(self, net: Generator) -> Generator:
        """The net with what is mixed in; the net stays as it is."""
        for part in (self.cache, self.ngram):
            net = net if part is None else part.wrap(net)
        return net

    @property
    def settings(self) -> list[str]:
        """The settings that want what is mixed in."""
        return [f"model.{name}" for name, part in zip(self._fields, self, strict=True) if part is not None]

    # --- in the run folder ---

    def to_arrays(self) -> dict[str, Any]:
        arrays = {} if self.ngram is None else self.ngram.to_arrays()
        return arrays if self.cache is None else arrays | {CACHE: np.array(self.cache, dtype=np.float64)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], vocabulary: int, place: object) -> "TokenMixture":
        """What `to_arrays` gave; RunError if it cannot be that."""
        cache, ngram = None, None
        if (stored := tensors.pop(CACHE, None)) is not None:
            values = stored.tolist() if stored.shape == (3,) else [0.0, 0.0, 0.0]
            if not (1 <= values[0] <= MAX_LENGTH and values[0] % 1 == 0 and 0 < values[1] < 1e4 and 0 < values[2] < 1):
                raise RunError(f"{place}: does not hold the length, sharpness and share of a cache")
            cache = ContinuousCache(int(values[0]), *values[1:])
        if tensors or cache is None:
            ngram = NGramMixture.from_tensors(tensors, vocabulary, place)
        return cls(cache, ngram)
