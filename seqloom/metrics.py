"""How good a list of written answers is: exact match, token error rate, BLEU and chrF, each with its uncertainty.

Every score here is a function of statistics summed over the examples, so the same statistics give the value and, drawn
again and again, the bootstrap interval. This file knows texts only: no model, no task, no tokenizer.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

RESAMPLES = 1000
BOOTSTRAP_SEED = 0  # one seed for all: two systems scored on the same examples are drawn alike, so they can be paired

References = str | Sequence[str]  # what is right for one example: one text, or several that are equally right
Tokens = Callable[[str], Sequence[Hashable]]  # cuts a text: `list` for characters, `str.split` for words
Value = Callable[[NDArray[np.int64]], float]  # summed statistics → the score


@dataclass(frozen=True)
class Score:
    """A number, how sure it is, and how to read it."""

    value: float
    interval: tuple[float, float] | None  # 95 %, from resampling the examples; None where nobody asked for it
    better: Literal["higher", "lower"]
    scale: str
    signature: str = ""  # sacrebleu's account of how the number came about; empty where there is nothing to choose

    def to_json(self) -> dict[str, object]:
        """For a file or a program; what there is not is left out."""
        stored: dict[str, object] = {"value": self.value, "better": self.better, "scale": self.scale}
        if self.interval is not None:
            stored["interval"] = list(self.interval)
        if self.signature:
            stored["signature"] = self.signature
        return stored


def score_texts(
    predictions: Sequence[str], references: Sequence[References], tokens: Tokens = list, *, intervals: bool = True
) -> dict[str, Score]:
    """Every score of this file by its name; without intervals where only the values are wanted (baselines)."""
    return {
        "exact": exact_match(predictions, references, intervals=intervals),
        "token_error_rate": token_error_rate(predictions, references, tokens, intervals=intervals),
        "bleu": bleu(predictions, references, intervals=intervals),
        "chrf": chrf(predictions, references, intervals=intervals),
    }


def exact_match(predictions: Sequence[str], references: Sequence[References], *, intervals: bool = True) -> Score:
    """The share (0 to 1) of predictions that equal one of their references, character by character."""
    right = [[prediction in accepted, 1] for prediction, accepted in zip(predictions, _every(references), strict=True)]
    return _score(right, _ratio, "higher", "share of examples, 0 to 1", intervals=intervals)


def token_error_rate(
    predictions: Sequence[str], references: Sequence[References], tokens: Tokens = list, *, intervals: bool = True
) -> Score:
    """Tokens to insert, delete or replace for each token of the reference (0 is perfect; it may exceed 1).

    Of several references the nearest counts: the fewest edits, and among those the longest.
    """
    edits = [
        min(_edits(tokens(prediction), tokens(reference)) for reference in accepted)
        for prediction, accepted in zip(predictions, _every(references), strict=True)
    ]
    counts = [[distance, -minus_length] for distance, minus_length in edits]
    scale = "edits a reference token; 0 is perfect, above 1 is possible"
    return _score(counts, _ratio, "lower", scale, intervals=intervals)


def bleu(
    predictions: Sequence[str],
    references: Sequence[References],
    *,
    lowercase: bool = False,
    intervals: bool = True,
) -> Score:
    """Corpus BLEU (0 to 100) as sacrebleu computes it."""
    from sacrebleu.metrics.bleu import BLEU

    # `force` only silences the advice for texts that look tokenized; the number is the same.
    return _sacrebleu(BLEU(lowercase=lowercase, force=True), predictions, references, intervals)


def chrf(
    predictions: Sequence[str],
    references: Sequence[References],
    *,
    lowercase: bool = False,
    intervals: bool = True,
) -> Score:
    """Corpus chrF2 (0 to 100) as sacrebleu computes it."""
    from sacrebleu.metrics.chrf import CHRF

    return _sacrebleu(CHRF(lowercase=lowercase), predictions, references, intervals)


def _every(references: Sequence[References]) -> list[Sequence[str]]:
    """A text alone is a list of one."""
    return [[accepted] if isinstance(accepted, str) else accepted for accepted in references]


def _edits(prediction: Sequence[Hashable], reference: Sequence[Hashable]) -> tuple[int, int]:
    """Edits and minus the reference's length: the smaller pair is the nearer reference."""
    return Levenshtein.distance(prediction, reference), -len(reference)


def _sacrebleu(
    metric: "Metric", predictions: Sequence[str], references: Sequence[References], intervals: bool
) -> Score:
    """A sacrebleu metric with its bootstrap interval.

    Sentence statistics and the score of their sum are the two steps of sacrebleu's own bootstrap. They are not part of
    its public interface, but the only way to resample without counting all n-grams a thousand times; a test holds
    the value against `corpus_score`.
    """
    accepted = _every(references)
    if len(predictions) != len(accepted):
        raise ValueError(f"{len(predictions)} predictions cannot be scored against {len(accepted)} references")
    most = max(map(len, accepted), default=0)
    # sacrebleu wants one list for each rank of reference, with None where an example has fewer.
    ranks = [[texts[rank] if rank < len(texts) else None for texts in accepted] for rank in range(most)]
    statistics = metric._extract_corpus_statistics(predictions, ranks)  # type: ignore[arg-type]

    def value(sums: NDArray[np.int64]) -> float:
        return float(metric._compute_score_from_stats(sums.tolist()).score)

    return _score(statistics, value, "higher", "0 to 100", str(metric.get_signature()), intervals=intervals)


def _ratio(sums: NDArray[np.int64]) -> float:
    return float(sums[0] / max(sums[1], 1))


def _score(
    statistics: Sequence[Sequence[int]],
    value: Value,
    better: Literal["higher", "lower"],
    scale: str,
    signature: str = "",
    *,
    intervals: bool,
) -> Score:
    table = np.asarray(statistics, dtype=np.int64)
    assert len(table), "nothing to score: the caller has to see to it that there are examples"
    interval = _bootstrap(table, value) if intervals else None
    return Score(value(table.sum(axis=0)), interval, better, scale, signature)


def _bootstrap(table: NDArray[np.int64], value: Value) -> tuple[float, float]:
    """Where the value lies in 95 of 100 draws of as many examples, with replacement."""
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        times = np.bincount(generator.integers(len(table), size=len(table)), minlength=len(table))
        drawn[number] = value(times @ table)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)
