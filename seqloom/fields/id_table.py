"""The ids of units of text that come again and again: each different word is encoded once, all others are looked up.

In any language few words make up most of a text, so this is several times faster than encoding everything, and as the
lookup is vectorized, Python touches each word only to hash it. Knows nothing of how a unit becomes ids.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from threading import Lock

import numpy as np

from ..data.ragged import Ragged, compute_offsets

MOST_UNITS = 1 << 18
MOST_IDS = 1 << 22


class UnitTable:
    """Remembers ids by unit, up to a limit; then it forgets all and begins anew."""

    def __init__(self, encode: Callable[[list[str]], Ragged]) -> None:
        self._encode = encode
        self._rows: dict[str, int] = {}
        self._ids = Ragged.of([])
        self._lock = Lock()

    def encode(self, texts: Iterable[Sequence[str]]) -> Ragged:
        """The ids of each text, given as its units."""
        cut = list(texts)
        units = list(chain.from_iterable(cut))
        with self._lock:  # what is known from then on stays where it is, whatever other threads add
            self._learn(set(units))
            known, ids = self._rows, self._ids
        rows = np.fromiter(map(known.__getitem__, units), np.int64, len(units))
        selected = ids.take(rows)
        ends = compute_offsets(np.fromiter(map(len, cut), np.int64, len(cut)))  # in units; in ids they are:
        return Ragged(selected.values, selected.offsets[ends])

    def _learn(self, units: set[str]) -> None:
        if len(self._rows) > MOST_UNITS or len(self._ids.values) > MOST_IDS:
            self._rows, self._ids = {}, Ragged.of([])
        news = list(units.difference(self._rows))
        if news:
            encoded = self._encode(news)
            self._rows.update(zip(news, range(len(self._rows), len(self._rows) + len(news)), strict=True))
            values = np.concatenate([self._ids.values, encoded.values])
            self._ids = Ragged(values, compute_offsets(np.concatenate([self._ids.lengths, encoded.lengths])))
