"""Whether texts were written or copied: what of them stands in known texts. Knows texts, not who wrote them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .score import Score, ratio, score_sums

COMPARED = 1 << 22  # characters of the known texts that are searched: more would take minutes
SEPARATOR = "\0"  # two known texts: nothing that is written holds it, so no run goes over it


@dataclass(frozen=True)
class CopiedRun:
    """Of one text: how long it is, how long the longest run that stands elsewhere, and whether that is all of it."""

    length: int
    longest: int

    @property
    def whole(self) -> bool:
        return self.length > 0 and self.longest == self.length

    @property
    def share(self) -> float:
        return self.longest / max(self.length, 1)


def find_copied(texts: Iterable[str], known: Iterable[str]) -> list[CopiedRun]:
    """What of each text stands in the known ones."""
    body = join_texts(known)
    return [CopiedRun(len(text), measure_longest_run(text, body)) for text in texts]


def join_texts(known: Iterable[str]) -> str:
    """The known texts as one, up to COMPARED characters."""
    parts, room = [], COMPARED
    for text in known:
        parts.append(text[:room])
        room -= len(text)
        if room <= 0:
            break
    return SEPARATOR.join(parts)


def measure_longest_run(text: str, body: str) -> int:
    """The length of the longest piece of a text that stands in the body: from each place only a longer one counts."""
    longest = 0
    for start in range(len(text)):
        while start + longest < len(text) and text[start : start + longest + 1] in body:
            longest += 1
    return longest


def score_copied(texts: Sequence[CopiedRun], what: str) -> dict[str, Score]:
    """The share of texts that are copied whole, and the mean share of a text that its longest copied run is."""
    tables = {
        "copied": (
            [float(one.whole) for one in texts],
            f"share of {len(texts)} {what} that stand in training; 0 is none",
        ),
        "longest copied run": ([one.share for one in texts], f"share of each of {len(texts)} {what}; 1 is all of it"),
    }
    return {
        name: score_sums(np.stack([values, np.ones(len(texts))], 1), ratio, "lower", scale, intervals=True)
        for name, (values, scale) in tables.items()
    }


def summarize_copied(texts: Sequence[CopiedRun]) -> dict[str, Any]:
    """The same for a program, with the worst case."""
    worst = max(texts, key=lambda one: one.longest)
    return {
        "whole": sum(one.whole for one in texts) / len(texts),
        "longest run": asdict(worst),
        "mean share": sum(one.share for one in texts) / len(texts),
    }
