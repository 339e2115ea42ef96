"""Small recipes that train in seconds: sequences written backwards, random walks continued."""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from seqloom.architectures.build import build_seq2seq
from seqloom.config.recipe import Model, Recipe
from seqloom.data.vocabulary import NEVER_WRITTEN
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical
from seqloom.models import Generator
from seqloom.training.records import Record


def backwards(folder: Path, count: int = 400, longest: int = 5) -> Path:
    """A file of pairs: a few letters, and the same letters from the last to the first."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefgh", k=chance.randint(2, longest))) for _ in range(count)]
    path = folder / "backwards.tsv"
    path.write_text("source\ttarget\n" + "".join(f"{word}\t{word[::-1]}\n" for word in words), encoding="utf-8")
    return path


def small(folder: Path, *overrides: str) -> Recipe:
    """A recipe on such a file, of a few steps."""
    settings = (
        f"data.train={backwards(folder)}",
        "model.size=16",
        "train.steps=12",
        "train.batch_tokens=256",
        "train.validate_every=4",
        "train.learning_rate=0.01",
        "search.beam_size=2",
    )
    return Recipe().override(*settings, *overrides)


def measured(records: Iterable[Record]) -> Iterator[Record]:
    """All but the notes."""
    return (record for record in records if record.kind != "note")


def texts(records: Iterable[Record]) -> list[str]:
    """The notes."""
    return [record.text for record in records if record.kind == "note"]


def forecasting(*overrides: str) -> Recipe:
    """Three rows ahead from eight, in a few steps; the examples come from Python."""
    settings = (
        *("task=forecast", "data.context=8", "data.horizon=3", "data.season=4", "model.size=8"),
        *("train.steps=4", "train.batch_tokens=256", "train.validate_every=2", "train.checkpoint_every=2"),
    )
    return Recipe().override(*settings).override(*overrides).resolved()


def small_seq2seq(model: Model, symbols: int, about: int) -> Generator:
    """Writes `symbols` about a sequence of `about` symbols."""
    return build_seq2seq(
        model,
        TokenEmbedding(about, model.embedding, model.side("encoder").dropout),
        lambda: TokenEmbedding(symbols, model.embedding, model.side("decoder").dropout),
        lambda features: Categorical(features, symbols, impossible=NEVER_WRITTEN),
    )


def walks(rows: int = 160, variables: int = 2, missing: float = 0.2) -> np.ndarray:
    """Random walks side by side, with gaps."""
    chance = np.random.default_rng(0)
    values = chance.standard_normal((rows, variables)).cumsum(0) + 10 * np.arange(1, variables + 1)
    values[chance.random(values.shape) < missing] = np.nan
    return values
