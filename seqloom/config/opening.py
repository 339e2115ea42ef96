"""Settings that a recipe may leave open: they say "auto", and are settled from the data before training.

A recipe that was tuned for a built-in sample has its settings opened when a person's own data takes the place of the
sample; those that the person has typed stay. Which value each gets is decided where the data is read.
"""

from collections.abc import Iterable, Mapping
from typing import Any

AUTO = "auto"
NET = ("model.kind", "model.size", "model.dropout", "train.batch_tokens", "train.learning_rate", "train.steps")
LENGTH = ("data.lowercase", "data.vocabulary_size", "data.min_count", "data.max_length", "data.too_long")
OPENABLE: dict[str, tuple[str, ...]] = {
    "classify": (
        *("data.source_tokenizer", *LENGTH, *NET, "model.nb_svm"),
        *("train.beta2", "train.select_by", "train.validation_tokens"),
    ),
    "tag": ("data.characters", "data.endings", "data.min_count", "model.crf", "model.lexicon", *NET),
    "seq2seq": ("data.source_tokenizer", "data.target_tokenizer", *LENGTH[1:], *NET),
    "language": ("model.dropout", "model.ngram", "train.steps"),
    "music": ("model.dropout", "model.ngram", "train.steps"),
    "forecast": (
        *("data.context", "data.horizon", "data.season"),
        *("model.channel_independent", "model.relative"),
        *NET,
    ),
}


def split_open(task: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Values by dotted name without those that say "auto", and the names of these."""
    names = {name for name in OPENABLE.get(task, ()) if values.get(name) == AUTO}
    return {name: value for name, value in values.items() if name not in names}, names


def take_open(values: dict[str, Any], task: str) -> tuple[dict[str, Any], set[str]]:
    """The same of nested tables, as a TOML file has them."""
    names = set()
    for name in OPENABLE.get(task, ()):
        section, key = name.split(".")
        table = values.get(section)
        if isinstance(table, dict) and table.get(key) == AUTO:
            values = values | {section: {other: value for other, value in table.items() if other != key}}
            names.add(name)
    return values, names


def name_all(values: Mapping[str, Any]) -> Iterable[str]:
    """The dotted names of what nested tables say."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in name_all(value))
        else:
            yield name
