"""Whether order matters to a run, over a whole file: its scores with the words shuffled, and minimal pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.pretokenized import SEPARATOR, split_elements
from ..errors import DataError, RunError
from ..metrics import Score, accuracy
from .json_output import drop_undefined

if TYPE_CHECKING:
    from .run import Run


def score_shuffled(run: "Run", examples: Sequence[Any], seed: int = 0) -> dict[str, dict[str, float]]:
    """Every score of the examples in order, and with the elements of what is read in an order drawn for each."""
    if "series" in run.task.fields:
        raise RunError(f"{run.folder}: the rows of a series have their times, so they are not shuffled")
    chance = np.random.default_rng(seed)
    parts = {"ordered": examples, "shuffled": [shuffle_example(run, one, chance) for one in examples]}
    scores_by_part = {name: drop_undefined(run.task.score(run.model, part)) for name, part in parts.items()}
    return {
        name: {part: scores[name].score.value for part, scores in scores_by_part.items()}
        for name in scores_by_part["ordered"]
        if name in scores_by_part["shuffled"]
    }


def shuffle_example(run: "Run", example: Sequence[Any], chance: np.random.Generator) -> tuple[Any, ...]:
    """What is read in another order, and with it what has a part for each of its elements, such as tags."""
    sides = list(run.task.fields)
    read = "source" if "source" in sides else "target"
    if run.task.fields[read].is_image:
        raise RunError(f"{run.folder}: reads images, which have no order to shuffle")
    elements = split_raw(example[sides.index(read)])
    order = chance.permutation(len(elements))
    return tuple(
        join_raw(split_raw(raw), order, raw) if side == read or run.task.fields[side].per_element else raw
        for side, raw in zip(sides, example, strict=True)
    )


def split_raw(raw: Any) -> Sequence[Any]:
    """Words of a text, or the characters of a single word; the rows of an array."""
    if not isinstance(raw, str):
        return list(raw)
    words = split_elements(raw)
    return words if len(words) > 1 else list(raw)


def join_raw(elements: Sequence[Any], order: Any, raw: Any) -> Any:
    moved = [elements[place] for place in order]
    if not isinstance(raw, str):
        return np.array(moved).reshape(np.shape(raw))
    if SEPARATOR in raw:
        return SEPARATOR.join([*moved, ""])
    return (" " if len(split_elements(raw)) > 1 else "").join(moved)


@dataclass(frozen=True)
class MinimalPair:
    """Two texts that differ little, and what a run makes of each: a log-probability, or an answer."""

    first: str
    second: str
    results: tuple[Any, Any]
    right: bool  # whether the first is more probable, or the answers differ


@dataclass(frozen=True)
class PairScores:
    pairs: list[MinimalPair]
    score: Score
    says: str  # what is right
    chance: float | None  # the share of one who guesses


def score_pairs(run: "Run", pairs: Sequence[tuple[str, str]], given: Sequence[Any] | None = None) -> PairScores:
    """Of a run that gives texts a probability, how often the first of two has more of it; of one that classifies, how
    often it answers them differently."""
    if not pairs:
        raise DataError("there is not a single pair")
    first, second = ([pair[place] for pair in pairs] for place in (0, 1))
    if run.classes:
        results: list[list[Any]] = [[one[0].output for one in run.predict_many(texts)] for texts in (first, second)]
        right = [a != b for a, b in zip(*results, strict=True)]
        says, chance = "answered differently", None
    else:
        about = list(given) if given is not None else None
        results = [[one.log_probability for one in run.score_texts(texts, about)] for texts in (first, second)]
        right = [a > b for a, b in zip(*results, strict=True)]
        says, chance = "first text more probable", 0.5
    outcomes = zip(pairs, zip(*results, strict=True), right, strict=True)
    scored = [MinimalPair(*pair, both, good) for pair, both, good in outcomes]
    return PairScores(scored, accuracy([str(one) for one in right], ["True"] * len(right)), says, chance)
