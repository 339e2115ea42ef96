"""In which order a task's batches come: another one in every epoch, the same one for the same epoch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.config.recipe import Recipe
from seqloom.tasks import TASKS, declare
from seqloom.tasks.task import Feed

from ..recipes import forecasting, small, walks

WORDS = [("good film", "glad"), ("bad plot", "sad"), ("a fine film", "glad"), ("an awful plot", "sad")] * 10
PICTURES = [(np.full((1, 8, 8, 3), 6 * n, np.uint8), label) for n, (_, label) in enumerate(WORDS)]


def texts(folder: Path, *settings: str) -> tuple[Recipe, Any]:
    path = folder / "text.txt"
    path.write_text("".join(f"{number} green bottles hanging on the wall.\n" for number in range(60)))
    return Recipe.read(
        "language", f"data.train={path}", "train.batch_tokens=64", "train.bptt_window=8", *settings
    ), None


def chords(folder: Path) -> tuple[Recipe, Any]:
    chance = np.random.default_rng(0)
    made = [[[60 + n] for n in chance.integers(0, 9, chance.integers(5, 20)).tolist()] for _ in range(30)]
    path = folder / "pieces.json"
    path.write_text(json.dumps({"train": made[:20], "valid": made[20:25], "test": made[25:]}))
    return Recipe.read("chorales", f"data.train={path}", "train.batch_tokens=32", "train.bptt_window=8"), None


def listed(task: str, examples: list[Any]) -> tuple[Recipe, Any]:
    return Recipe.of({"task": task}).override("train.batch_tokens=16"), {"train": examples, "validation": examples}


def packed(objective: str) -> tuple[Recipe, Any]:
    recipe, _ = listed("pretrain", [])
    rows = [(text,) for text, _ in WORDS]
    settings = (f"train.objective={objective}", "data.window=8", "data.target_tokenizer=words")
    return recipe.override(*settings), {"train": rows, "validation": rows}


CASES: dict[str, Callable[[Path], tuple[Recipe, Any]]] = {
    "seq2seq": lambda folder: (small(folder), None),
    "transcribe": lambda _: (
        listed("transcribe", [(text * 3, text) for text, _ in WORDS])[0].override("data.source_type=tokens"),
        listed("transcribe", [(text * 3, text) for text, _ in WORDS])[1],
    ),
    "classify": lambda _: listed("classify", WORDS),
    "tag": lambda _: listed("tag", [(text, " ".join("x" * len(text.split()))) for text, _ in WORDS]),
    "caption": lambda _: listed("caption", PICTURES),
    "draw": lambda _: listed("draw", PICTURES),
    "forecast": lambda _: (forecasting(), walks()),
    "language": texts,
    "language, documents": lambda folder: texts(folder, "data.documents=lines"),
    "language, transformer": lambda folder: texts(folder, "model.kind=transformer"),
    "music": chords,
    "pretrain": lambda _: packed("masked"),
    "pretrain, causal": lambda _: packed("causal"),
}


def test_every_task_is_tried() -> None:
    assert {name.split(",")[0] for name in CASES} == {*TASKS}


@pytest.mark.parametrize("name", CASES)
def test_every_epoch_has_an_order_of_its_own_that_seed_and_epoch_decide(name: str, tmp_path: Path) -> None:
    recipe, examples = CASES[name](tmp_path)

    def orders(seed: int) -> list[str]:
        asked = recipe.changed("train.seed", seed).resolved()
        task, prepared = declare(asked).prepare(asked, print, examples)
        feed = Feed(task, prepared)
        return [json.dumps([rows.tolist() for rows in feed.order(epoch)]) for epoch in range(4)]

    found = orders(3)
    assert len({*found}) == 4 and orders(3) == found and not {*orders(4)} & {*found}
    assert all(len(json.loads(order)) > 3 for order in found)
