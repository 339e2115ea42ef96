"""Documents end to end, and in which pieces they are read: by streams side by side, by drawn windows, by document.

Every document stands behind START and before END. A place is one thing to predict and what is read right before it:
place 0 of a document is its first token, predicted from START, its last place is END, predicted from the last token.
All orders are pure functions of their arguments and cover every place exactly once. Knows no network.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from seqloom.data import batching
from seqloom.data.ragged import Ragged, Rows
from seqloom.data.splits import shuffle
from seqloom.data.vocabulary import END, PAD, START

Spans = NDArray[np.int64]  # (rows, 3): the first place, the place behind the last, and whether the rows go on
Numbers = NDArray[Any]


class Places(ABC):
    """Things to predict one after the other, counted through all documents."""

    def __init__(self, begins: Rows) -> None:
        self.begins = begins  # where each document begins, and where the last one ends

    def __len__(self) -> int:
        return int(self.begins[-1])

    @abstractmethod
    def targets(self, places: Rows) -> Numbers:
        """The tokens to predict at these places."""

    @abstractmethod
    def inputs(self, places: Rows) -> Numbers:
        """The tokens read before each of these places."""

    def read(self, spans: Spans) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
        """Inputs, targets and mask (rows, T). Behind the end of all documents the first begins again."""
        lengths = spans[:, 1] - spans[:, 0]
        steps = np.arange(lengths.max(initial=0))
        mask = steps < lengths[:, None]
        places = (spans[:, :1] + steps)[mask] % len(self)
        tables = []
        for values in (self.inputs(places), self.targets(places)):
            table = np.full((*mask.shape, *values.shape[1:]), PAD, dtype=values.dtype)
            table[mask] = values
            tables.append(table)
        return tables[0], tables[1], mask


class Stream(Places):
    """The places of documents of tokens, each behind START and before END."""

    def __init__(self, documents: Ragged) -> None:
        super().__init__(documents.offsets + np.arange(len(documents.offsets)))
        self.documents = documents

    def targets(self, places: Rows) -> Numbers:
        within, start, length = self._locate(places)
        values = self.documents.values
        # A document that ends the text has nothing behind it to look up, hence the minimum.
        tokens = values[np.minimum(start + within, len(values) - 1)] if len(values) else np.zeros_like(within)
        return np.where(within == length, END, tokens).astype(np.int64)

    def inputs(self, places: Rows) -> Numbers:
        within, start, _ = self._locate(places)
        values = self.documents.values
        tokens = values[np.maximum(start + within - 1, 0)] if len(values) else np.zeros_like(within)
        return np.where(within == 0, START, tokens).astype(np.int64)

    def _locate(self, places: Rows) -> tuple[Rows, Rows, Rows]:
        """Of each place: how far into its document it is, where that starts among the values, and how long it is."""
        document = np.searchsorted(self.begins, places, side="right") - 1
        start = self.documents.offsets[document]
        return places - self.begins[document], start, self.documents.offsets[document + 1] - start


BUFFER = 1 << 20  # windows of a long text that are shuffled together

# --- training ---------------------------------------------------------------------------------------------------


class LazyBatches(Sequence[Spans]):
    """Batches that are made when they are asked for: a long text has more of them than memory."""

    def __init__(self, length: int, make: Callable[[int], Spans]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, number: int) -> Spans: ...
    @overload
    def __getitem__(self, number: slice) -> list[Spans]: ...
    def __getitem__(self, number: int | slice) -> Spans | list[Spans]:
        if isinstance(number, slice):
            return [self._make(one) for one in range(*number.indices(self._length))]
        if not -self._length <= number < self._length:
            raise IndexError(f"batch {number} of {self._length}")
        return self._make(number % self._length)


def plan_streams(total: int, rows: int, window: int, seed: int, epoch: int) -> Sequence[Spans]:
    """A text as `rows` streams, window by window, each going on where the one before has ended.

    An epoch begins anywhere in the text, so that streams and windows lie differently each time.
    """
    rows = max(1, min(rows, total // window))
    length = -(-total // rows)
    starts = np.minimum(np.arange(rows) * length, total)
    stops = np.minimum(starts + length, total)
    shift = draw_number(total, seed, epoch)

    def batch(number: int) -> Spans:
        first = number * window
        begins, ends = np.minimum(starts + first, stops), np.minimum(starts + first + window, stops)
        return np.stack([begins + shift, ends + shift, np.full(rows, first > 0)], 1)

    return LazyBatches(-(-length // window), batch)


def plan_windows(begins: Rows, budget: int, window: int, seed: int, epoch: int) -> Sequence[Spans]:
    """Documents cut into windows, each read afresh, in a drawn order; the cuts are elsewhere in every epoch."""
    shift = 1 + draw_number(window, seed, epoch)
    if len(begins) == 2 and begins[1] - begins[0] > BUFFER * window:
        return plan_long_windows(int(begins[0]), int(begins[1]), budget, window, shift, seed, epoch)
    spans = cut_windows(begins, window, shift)
    return [spans[rows] for rows in batching.plan_epoch(spans[:, 1] - spans[:, 0], budget, seed, epoch)]


def plan_long_windows(
    start: int, stop: int, budget: int, window: int, shift: int, seed: int, epoch: int
) -> Sequence[Spans]:
    """The same of one long text, without a list of all: drawn stretches of BUFFER windows, a drawn order in each."""
    total = 1 + -(-(stop - start - shift) // window)
    rows = max(1, budget // window)
    stretches = shuffle(-(-total // BUFFER), seed, epoch, 3)
    sizes = np.minimum(BUFFER, total - stretches * BUFFER)
    ends = np.cumsum(-(-sizes // rows))  # batches up to the end of each stretch

    @lru_cache(maxsize=2)
    def order(stretch: int) -> Rows:
        return shuffle(int(sizes[stretch]), seed, epoch, 4, stretch)

    def batch(number: int) -> Spans:
        place = int(np.searchsorted(ends, number, side="right"))
        first = (number - (int(ends[place - 1]) if place else 0)) * rows
        chosen = int(stretches[place]) * BUFFER + order(place)[first : first + rows]
        begins = np.where(chosen == 0, start, start + shift + (chosen - 1) * window)
        finish = np.minimum(start + shift + chosen * window, stop)
        return np.stack([begins, finish, np.zeros_like(begins)], 1)

    return LazyBatches(int(ends[-1]), batch)


def plan_documents(begins: Rows, budget: int, window: int, seed: int, epoch: int) -> list[Spans]:
    """Whole documents of about the same length, which are read `window` by window."""
    spans = np.stack([begins[:-1], begins[1:], np.zeros_like(begins[1:])], 1)
    return [spans[rows] for rows in batching.plan_epoch(np.diff(begins), budget, seed, epoch, window)]


def cut_windows(begins: Rows, window: int, shift: int) -> Spans:
    """The documents in windows; of those longer than one window the first is `shift` places long."""
    edges_of_each = []
    for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        inner = np.arange(start + shift, stop, window) if stop - start > window else np.empty(0, dtype=np.int64)
        edges_of_each.append(np.concatenate([[start], inner, [stop]]))
    pairs = [np.stack([edges[:-1], edges[1:], np.zeros_like(edges[1:])], 1) for edges in edges_of_each]
    return np.concatenate(pairs) if pairs else np.empty((0, 3), dtype=np.int64)


def draw_number(below: int, seed: int, epoch: int) -> int:
    """A whole number from 0 to less than `below`."""
    return int(np.random.PCG64(np.random.SeedSequence((seed, epoch, 2))).random_raw() % max(1, below))


# --- scoring ----------------------------------------------------------------------------------------------------

STREAM = 2048  # places of a long text that one row of a batch is to count
LEAD = 256  # places that it reads first, so that its state is that of someone in the middle of a text


def plan_all_windows(begins: Rows, window: int) -> Spans:
    """Every place once, each but the first with at least half a window before it: (read from, count from, stop).

    For what was trained on windows and knows nothing longer.
    """
    half = max(1, window // 2)
    plans = []
    for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        counted = np.concatenate([[start], np.arange(start + window, stop, half)])
        reads = np.concatenate([[start], counted[1:] - (window - half)])
        plans.append(np.stack([reads, counted, np.append(counted[1:], stop)], 1))
    return np.concatenate(plans) if plans else np.empty((0, 3), dtype=np.int64)


def plan_all_streams(total: int) -> Spans:
    """The same of a text whose state is carried on: in streams side by side, each with a lead that does not count."""
    rows = max(1, total // STREAM)
    edges = np.arange(rows + 1) * total // rows
    return np.stack([np.maximum(edges[:-1] - LEAD, 0), edges[:-1], edges[1:]], 1)


def plan_all_documents(begins: Rows) -> Spans:
    """The same of documents, each from its beginning to its end."""
    return np.stack([begins[:-1], begins[:-1], begins[1:]], 1)
