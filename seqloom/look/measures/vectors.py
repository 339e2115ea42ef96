"""What the learned vectors of symbols say about them: neighbors, a map, analogies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ...arrays import Floats
from ...errors import DataError
from ...models import Generator, Labeler

SPECIAL = re.compile("<.+>")


def get_symbol_vectors(model: Labeler | Generator, side: str) -> Tensor | None:
    """The learned vectors of the symbols that are read on this side, if it reads symbols."""
    embed = model.embedding_of(side)
    weight = getattr(getattr(embed, "tokens", embed), "weight", None)
    return weight if isinstance(weight, Tensor) else None


@dataclass(frozen=True)
class Neighbors:
    """The symbols that lie nearest, by the cosine of the angle between the vectors."""

    asked: str
    symbols: list[str]
    cosines: Floats


@dataclass(frozen=True)
class Map:
    """Symbols in the plane in which they lie furthest apart (principal components)."""

    symbols: list[str]
    places: Floats  # (N, 2)
    explained: tuple[float, float]  # the share of the variance that each axis shows


@dataclass(frozen=True)
class Angles:
    """The cosines between pairs of vectors, and between as many pairs of random vectors of the same width."""

    size: int
    learned: Floats
    random: Floats

    @property
    def expected(self) -> float:
        """The standard deviation of the cosine of two random directions: 1 / √d."""
        return float(1 / np.sqrt(self.size))


class Vectors:
    """A vector for each symbol; those of an example are `marked`."""

    def __init__(self, weight: Tensor | Floats, symbols: Sequence[str], marked: Sequence[str] = ()) -> None:
        values = weight.detach().cpu().double().numpy() if isinstance(weight, Tensor) else np.asarray(weight, float)
        if len(values) != len(symbols):
            raise ValueError(f"{len(values)} vectors cannot belong to {len(symbols)} symbols")
        self.values, self.symbols, self.marked = values, list(symbols), list(dict.fromkeys(marked))
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        self.directions: Floats = values / np.where(lengths > 0, lengths, 1)

    def index(self, symbol: str) -> int:
        if symbol not in self.symbols:
            raise DataError(f"{symbol!r} is not in the vocabulary of {len(self.symbols)} symbols")
        return self.symbols.index(symbol)

    def neighbors(self, symbol: str, count: int = 10) -> Neighbors:
        place = self.index(symbol)
        return self._nearest(symbol, self.directions[place], {place}, count)

    def analogy(self, a: str, b: str, c: str, count: int = 5) -> Neighbors:
        """a is to b as c is to …: nearest to b − a + c (Mikolov et al., 2013), the three themselves left out."""
        places = [self.index(symbol) for symbol in (a, b, c)]
        first, second, third = self.directions[places]
        towards = second - first + third
        length = np.linalg.norm(towards)
        query = f"{a} is to {b} as {c} is to …"
        return self._nearest(query, towards / (length or 1), set(places), count)

    def _nearest(self, query: str, direction: Floats, without: set[int], count: int) -> Neighbors:
        cosines = self.directions @ direction
        order = [place for place in np.argsort(-cosines, kind="stable") if place not in without][:count]
        return Neighbors(query, [self.symbols[place] for place in order], cosines[order])

    def measure_angles(self, pairs: int = 5000, seed: int = 0) -> Angles:
        """Of pairs of different symbols, drawn at random; special symbols, which stand for no text, are left out."""
        chance, size = np.random.default_rng(seed), self.values.shape[1]
        own = [place for place, symbol in enumerate(self.symbols) if not SPECIAL.fullmatch(symbol)]
        if len(own) < 2:
            return Angles(size, np.zeros(0), np.zeros(0))
        first = chance.integers(len(own), size=pairs)
        second = (first + chance.integers(1, len(own), size=pairs)) % len(own)
        directions = self.directions[own]
        drawn = chance.standard_normal((2, pairs, size))
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        return Angles(size, (directions[first] * directions[second]).sum(1), (drawn[0] * drawn[1]).sum(1))

    def map(self, symbols: Sequence[str] | None = None) -> Map:
        """All symbols, or these, in two dimensions. The sign of an axis is chosen so that its furthest is positive."""
        places = range(len(self.symbols)) if symbols is None else [self.index(symbol) for symbol in symbols]
        chosen = self.values[list(places)]
        shown = [self.symbols[place] for place in places]
        if not chosen.size:
            return Map(shown, np.zeros((len(shown), 2)), (0.0, 0.0))
        centered = chosen - chosen.mean(0)
        left, spread, _ = np.linalg.svd(centered, full_matrices=False)
        axes = np.zeros((len(shown), 2))
        axes[:, : min(2, len(spread))] = (left * spread)[:, :2]
        furthest = axes[np.abs(axes).argmax(0), [0, 1]]
        axes *= np.where(furthest < 0, -1, 1)
        total = float((spread**2).sum()) or 1.0
        shares = [*(spread**2 / total), 0.0, 0.0]
        return Map(shown, axes, (float(shares[0]), float(shares[1])))
