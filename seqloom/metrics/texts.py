"""How good a list of written answers is: exact match, error rates, BLEU, chrF and TER, each with its uncertainty.

Every score here is a function of statistics summed over the examples, so the same statistics give the value and, drawn
again and again, the bootstrap interval. This file knows texts only: no model, no task, no tokenizer.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz.distance import Levenshtein

from ..arrays import Doubles
from .score import Better, Score, ratio, score_sums

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

References = str | Sequence[str]  # what is right for one example: one text, or several that are equally right
Tokens = Callable[[str], Sequence[Hashable]]  # cuts a text: `list` for characters, `str.split` for words


def exact_match(predictions: Sequence[str], references: Sequence[References], *, intervals: bool = True) -> Score:
    """The share (0 to 1) of predictions that equal one of their references, character by character."""
    right = [
        [prediction in accepted, 1]
        for prediction, accepted in zip(predictions, _list_references(references), strict=True)
    ]
    return score_sums(right, ratio, "higher", "share of examples, 0 to 1", intervals=intervals)


def token_error_rate(
    predictions: Sequence[str], references: Sequence[References], tokens: Tokens = list, *, intervals: bool = True
) -> Score:
    """Tokens to insert, delete or replace for each token of the reference (0 is perfect; it may exceed 1).

    Of several references the nearest counts: the fewest edits, and among those the longest.
    """
    edits = [
        min(_count_edits(tokens(prediction), tokens(reference)) for reference in accepted)
        for prediction, accepted in zip(predictions, _list_references(references), strict=True)
    ]
    counts = [[distance, -minus_length] for distance, minus_length in edits]
    scale = "edits a reference token; 0 is perfect, above 1 is possible"
    return score_sums(counts, ratio, "lower", scale, intervals=intervals)


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
    return _score_sacrebleu(BLEU(lowercase=lowercase, force=True), predictions, references, intervals)


def mean_sentence_bleu(
    predictions: Sequence[str],
    references: Sequence[References],
    *,
    lowercase: bool = False,
    intervals: bool = True,
) -> Score:
    """The average of sacrebleu's sentence BLEU (0 to 100); not comparable with the BLEU of a corpus.

    A sentence too short for an n-gram of four words is scored by the orders that it has (`eff:yes`).
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(lowercase=lowercase, force=True, effective_order=True)
    sentences = _compute_statistics(metric, predictions, references)
    values = [[_compute_value(metric, sentence), 1] for sentence in sentences]
    signature = str(metric.get_signature())
    return score_sums(values, ratio, "higher", "0 to 100, mean over sentences", signature, intervals=intervals)


def chrf(
    predictions: Sequence[str],
    references: Sequence[References],
    *,
    lowercase: bool = False,
    intervals: bool = True,
) -> Score:
    """Corpus chrF2 (0 to 100) as sacrebleu computes it."""
    from sacrebleu.metrics.chrf import CHRF

    return _score_sacrebleu(CHRF(lowercase=lowercase), predictions, references, intervals)


def ter(predictions: Sequence[str], references: Sequence[References], *, intervals: bool = True) -> Score:
    """Translation edit rate as sacrebleu computes it: edits and moved phrases for 100 words of reference."""
    from sacrebleu.metrics.ter import TER

    scale = "edits for 100 reference words; 0 is perfect, above 100 is possible"
    return _score_sacrebleu(TER(), predictions, references, intervals, "lower", scale)


def _list_references(references: Sequence[References]) -> list[Sequence[str]]:
    """A text alone is a list of one."""
    return [[accepted] if isinstance(accepted, str) else accepted for accepted in references]


def _count_edits(prediction: Sequence[Hashable], reference: Sequence[Hashable]) -> tuple[int, int]:
    """Edits and minus the reference's length: the smaller pair is the nearer reference."""
    return Levenshtein.distance(prediction, reference), -len(reference)


def _score_sacrebleu(
    metric: "Metric",
    predictions: Sequence[str],
    references: Sequence[References],
    intervals: bool,
    better: Better = "higher",
    scale: str = "0 to 100",
) -> Score:
    """A sacrebleu metric with its bootstrap interval."""

    def value(sums: Doubles) -> Doubles:
        return np.apply_along_axis(lambda one: _compute_value(metric, one.tolist()), -1, sums)

    statistics = _compute_statistics(metric, predictions, references)
    return score_sums(statistics, value, better, scale, str(metric.get_signature()), intervals=intervals)


def _compute_statistics(
    metric: "Metric", predictions: Sequence[str], references: Sequence[References]
) -> list[list[float]]:
    """What a sacrebleu metric needs to know of each sentence.

    Sentence statistics and the score of their sum are the two steps of sacrebleu's own bootstrap. They are not part of
    its public interface, but the only way to resample without counting all n-grams a thousand times; a test holds
    the value against `corpus_score`.
    """
    accepted = _list_references(references)
    if len(predictions) != len(accepted):
        raise ValueError(f"{len(predictions)} predictions cannot be scored against {len(accepted)} references")
    most = max(map(len, accepted), default=0)
    # sacrebleu wants one list for each rank of reference, with None where an example has fewer.
    ranks = [[texts[rank] if rank < len(texts) else None for texts in accepted] for rank in range(most)]
    statistics: list[list[float]] = metric._extract_corpus_statistics(predictions, ranks)  # type: ignore[arg-type]
    return statistics


def _compute_value(metric: "Metric", sums: list[float]) -> float:
    return float(metric._compute_score_from_stats(sums).score)
