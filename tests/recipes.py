"""Small recipes that train in seconds: sequences written backwards."""

import random
from pathlib import Path

from seqloom.recipe import Recipe


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
        "train.batch=256",
        "train.validate_every=4",
        "train.rate=0.01",
        "search.width=2",
    )
    return Recipe().override(*settings, *overrides)
