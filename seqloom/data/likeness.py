"""Texts that are alike without being equal: near duplicates in two parts, and neighbors in a file.

Near duplicates are found by MinHash (Broder, 1997): of all stretches of 16 bytes in a text, the least hash under each
of four hash functions. Two texts share one with the probability that is their Jaccard similarity, so three shared ones
mean that about two thirds or more of their stretches are the same.
"""

from collections import Counter
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Rows, Texts, split_rows

STRETCH = 16  # bytes: a power of 2
SHORTEST, LONGEST = 40, 512  # bytes of a text: shorter ones are alike by chance, and no more of a longer one is read
PRIME = 0x100000001B3
HASHES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)  # odd: one to one
SHARED = 3  # least hashes that near duplicates share
COMPARED, ASKED = 20_000, 2_000  # texts of training, and of another part

REACH, PLACES = 4, 500  # rows behind a row that are its neighbors, and rows that are looked at
RAREST = 2  # places in which a word may occur to be telling
SURE = 5.0  # standard errors


class TextNeighbors(NamedTuple):
    near: float  # rare words that a row shares with those behind it
    far: float  # and with rows elsewhere

    @property
    def alike(self) -> bool:
        return self.near > 2 * self.far


def find_near_duplicates(texts: Texts, queries: Rows, known: Rows) -> Rows:
    """The asked rows that are nearly the same as a known one; of very many, some evenly over all are looked at."""
    long = texts.lengths >= SHORTEST
    queries, known = _thin(queries[long[queries]], ASKED), _thin(known[long[known]], COMPARED)
    alike = np.zeros(len(queries), dtype=np.bool_)
    ours, theirs = compute_sketches(texts, queries), compute_sketches(texts, known)
    for chosen in combinations(range(len(HASHES)), SHARED):
        alike |= np.isin(_join(ours, chosen), _join(theirs, chosen))
    return queries[alike]


def compute_sketches(texts: Texts, rows: Rows) -> NDArray[np.uint64]:
    """The least hash of all stretches of each text (n, hashes), in which capitals are small letters."""
    sketches = np.empty((len(rows), len(HASHES)), dtype=np.uint64)
    for piece in split_rows(np.minimum(texts.lengths[rows], LONGEST)):
        stretched = [_hash_stretches(texts, int(row)) for row in rows[piece]]
        starts = np.cumsum([0, *map(len, stretched[:-1])])
        whole = np.concatenate(stretched)
        for place, factor in enumerate(HASHES):
            mixed = (whole ^ (whole >> np.uint64(29))) * np.uint64(factor)
            sketches[piece, place] = np.minimum.reduceat(mixed ^ (mixed >> np.uint64(32)), starts)
    return sketches


def _hash_stretches(texts: Texts, row: int) -> NDArray[np.uint64]:
    start, stop = texts.offsets[row : row + 2].tolist()
    letters = texts.bytes[start : min(stop, start + LONGEST)]
    hashes = (letters + 32 * ((letters >= 65) & (letters <= 90))).astype(np.uint64) + np.uint64(1)
    size = 1
    while size < STRETCH:  # a stretch is two of half its size
        hashes = hashes[:-size] * np.uint64(pow(PRIME, size, 1 << 64)) + hashes[size:]
        size *= 2
    return hashes


def _join(sketches: NDArray[np.uint64], chosen: tuple[int, ...]) -> NDArray[np.uint64]:
    """Combine some of the hashes of each row into one key."""
    keys = np.zeros(len(sketches), dtype=np.uint64)
    for column in chosen:
        keys = keys * np.uint64(PRIME) + sketches[:, column]
    return keys


def _thin(rows: Rows, most: int) -> Rows:
    return rows[:: max(1, -(-len(rows) // most))]


def compare_neighbors(texts: Texts, rows: Rows) -> TextNeighbors | None:
    """Whether rows share more rare words with those behind them in the file than with rows elsewhere; None if there is
    no telling difference."""
    size = REACH + 1
    if len(rows) < 20 * size:
        return None
    starts = np.linspace(0, len(rows) - size, min(PLACES, len(rows) // size)).astype(np.int64)
    windows = [[set(texts[int(row)].lower().split()) for row in rows[start : start + size]] for start in starts]
    places = Counter(word for window in windows for word in set().union(*window))
    rare = {word for word, count in places.items() if count <= RAREST}

    def count_shared(window: list[set[str]], others: list[set[str]]) -> int:
        return sum(len(window[0] & other & rare) for other in others[1:])

    far = [windows[(place + len(windows) // 2) % len(windows)] for place in range(len(windows))]
    near = np.array([count_shared(window, window) for window in windows], dtype=np.float64)
    other = np.array([count_shared(*both) for both in zip(windows, far, strict=True)], dtype=np.float64)
    difference = near - other
    if difference.mean() <= SURE * difference.std(ddof=1) / len(near) ** 0.5:
        return None
    neighbors = TextNeighbors(float(near.mean()), float(other.mean()))
    return neighbors if neighbors.alike else None
