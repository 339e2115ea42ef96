"""How good answers are: texts, labels, numbers and likelihoods, each score with its interval.

Metrics know predictions and what is right, as plain lists and arrays: no model, no task, no file, no torch.
"""

from .score import Score
from .texts import (
    bleu,
    chrf,
    exact_match,
    mean_sentence_bleu,
    phoneme_error_rate,
    ter,
    token_error_rate,
    word_error_rate,
)

__all__ = [
    "Score",
    "bleu",
    "chrf",
    "exact_match",
    "mean_sentence_bleu",
    "phoneme_error_rate",
    "ter",
    "token_error_rate",
    "word_error_rate",
]
