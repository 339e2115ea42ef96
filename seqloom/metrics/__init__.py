"""How good answers are: texts, labels, numbers and likelihoods, each score with its interval.

Metrics know predictions and what is right, as plain lists and arrays: no model, no task, no file, no torch.
"""

from .by_length import score_by_length
from .labels import accuracy, confusion_matrix, f1, multilabel_f1, per_class, subset_accuracy
from .likelihood import bits_per_character, blocks, nats, perplexity
from .numbers import (
    coverage,
    mae,
    mase,
    mse,
    quantile_loss,
    r2,
    rmse,
    seasonal_scale,
)
from .score import Score, measure_lead
from .tags import entity_f1, per_entity, tag_accuracy
from .texts import (
    bleu,
    chrf,
    exact_match,
    mean_sentence_bleu,
    ter,
    token_error_rate,
)

__all__ = [
    "Score",
    "accuracy",
    "bits_per_character",
    "bleu",
    "blocks",
    "chrf",
    "confusion_matrix",
    "coverage",
    "entity_f1",
    "exact_match",
    "f1",
    "mae",
    "mase",
    "mean_sentence_bleu",
    "measure_lead",
    "mse",
    "multilabel_f1",
    "nats",
    "per_class",
    "per_entity",
    "perplexity",
    "quantile_loss",
    "r2",
    "rmse",
    "score_by_length",
    "seasonal_scale",
    "subset_accuracy",
    "tag_accuracy",
    "ter",
    "token_error_rate",
]
