"""Small runs of every task and kind, with weights that nothing has trained: enough to be exported and asked."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.architectures import ARCHITECTURES
from seqloom.config.recipe import Recipe
from seqloom.runs.run import Run
from seqloom.tasks import declare

from ..laws.zoo import stirred
from ..recipes import walks

KINDS = tuple(kind for kind in ARCHITECTURES if kind != "bag")  # which has no depth: test_bag.py
SMALL = ("model.size=8", "model.depth=2")
WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "and", "so", "did", "(the", "dog)", "."]
DAYS = np.datetime64("2024-01-01") + np.arange(160)


def sentences(count: int = 40) -> list[str]:
    chance = random.Random(0)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 7))) for _ in range(count)]


def images(count: int = 24, side: int = 6) -> list[Any]:
    chance = np.random.default_rng(0)
    return [chance.integers(0, 256, (side, side, 1)).astype(np.uint8) for _ in range(count)]


def chords(folder: Path) -> Path:
    chance = np.random.default_rng(0)
    made = [[[60 + int(n), 64 + int(n)] for n in chance.integers(-3, 4, 9)] for _ in range(12)]
    path = folder / "pieces.json"
    path.write_text(json.dumps({"train": made, "valid": made[:4], "test": made[:4]}))
    return path


def numbers(count: int = 24, missing: float = 0.2) -> list[Any]:
    chance = np.random.default_rng(0)
    made = [chance.standard_normal((int(chance.integers(2, 9)), 3)) for _ in range(count)]
    return [np.where(chance.random(one.shape) < missing, np.nan, one) for one in made]


def sounds(count: int = 24) -> list[Any]:
    chance = np.random.default_rng(0)
    return [chance.uniform(-1, 1, int(chance.integers(20, 400))).astype(np.float32) for _ in range(count)]


def parts(examples: Any) -> dict[str, Any]:
    return {part: examples for part in ("train", "validation", "test")}


def table() -> Any:
    """Two variables and another input, a row a day."""
    return walks(variables=3)


# Of each: settings, examples (or None, if the settings name a file), and what is asked.
Case = tuple[tuple[str, ...], Any, list[Any]]


def cases(folder: Path) -> dict[str, Case]:
    texts = sentences()
    asked = ["the cat", "so did it: ÄÖ unknown,words", "", "cat " * 30]
    labels = [("x", "y", "z")[len(text) % 3] for text in texts]
    tags = [" ".join(word[0].upper() for word in text.split()) for text in texts]
    return {
        "classify": (("task=classify",), parts(list(zip(texts, labels, strict=True))), asked),
        "classify-labels": (
            ("task=classify", "data.target_type=labels", "data.source_tokenizer=bpe", "model.pool=attention"),
            parts([(text, ("a, b", "b", "-")[len(text) % 3]) for text in texts]),
            asked,
        ),
        "classify-number": (
            ("task=classify", "data.target_type=number", "data.source_tokenizer=characters", "model.hidden=5"),
            parts([(text, str(len(text))) for text in texts]),
            asked,
        ),
        "classify-numbers": (
            ("task=classify", "data.source_type=numbers", "model.pool=max"),
            parts([(one, ("a", "b")[len(one) % 2]) for one in numbers()]),
            numbers(3),
        ),
        "classify-sound": (
            ("task=classify", "data.source_type=sound", "data.sample_rate=2000", "data.mel_bands=6", "model.pool=max"),
            parts([(one, ("a", "b")[len(one) % 2]) for one in sounds()]),
            sounds(3),
        ),
        "tag": (("task=tag",), parts(list(zip(texts, tags, strict=True))), [*asked[:2], "Mat\tcat"]),
        "tag-numbers": (
            ("task=tag", "data.source_type=numbers", "model.hidden=6"),
            parts([(one, " ".join("ab"[int(row[0] > 0)] for row in one)) for one in numbers(missing=0)]),
            numbers(3, missing=0),
        ),
        "tag-crf": (
            ("task=tag", "model.crf=true", "model.lexicon=true", "data.characters=6", "data.max_length=9")
            + ("data.endings=2",),
            parts(list(zip(texts, tags, strict=True))),
            [
                *asked[:2],
                "Mat scat 3cat !? ÄÖ",
                " ".join(WORDS * 3),
            ],  # one word again and again: paths that are shifted would tie
        ),
        "seq2seq": (
            ("task=seq2seq", "data.source_tokenizer=words", "data.target_tokenizer=words"),
            parts([(text, " ".join(reversed(text.split()))) for text in texts]),
            asked,
        ),
        "seq2seq-luong": (
            (
                *("task=seq2seq", "data.source_tokenizer=unigram", "data.target_tokenizer=wordpiece"),
                *("data.vocabulary_size=520", "model.attention_style=luong", "model.attention=dot"),
            ),
            parts([(text, text.upper()) for text in texts]),
            asked,
        ),
        "caption": (
            ("task=caption", "model.patch=4", "model.attention=scaled"),
            parts([(one[None], text) for one, text in zip(images(), texts, strict=False)]),
            images(2),
        ),
        "draw": (
            ("task=draw", "data.square=3", "data.vocabulary_size=20"),
            parts([(one[None], text) for one, text in zip(images(), texts, strict=False)]),
            asked[:2],
        ),
        "language": (("task=language", "train.bptt_window=16"), "\n".join(texts), [*asked, "a mat"]),
        "language-documents": (
            (
                *("task=language", "data.documents=lines", "data.target_tokenizer=bpe", "model.tied=true"),
                *("train.bptt_window=16", "data.vocabulary_size=300"),
            ),
            texts,
            asked,
        ),
        "music": (
            ("task=music", f"data.train={chords(folder)}", "train.bptt_window=8"),
            None,
            ["60 64\n61 65", "", "-\n60\n" * 6],
        ),
        "forecast": (
            ("task=forecast", "data.context=8", "data.horizon=3", "data.season=4"),
            table(),
            [table()[:20], table()],
        ),
        "forecast-alone": (
            (
                *("task=forecast", "data.context=8", "data.horizon=3", "data.season=4", "model.relative=mean"),
                *("model.channel_independent=true", "model.quantiles=[]"),
            ),
            table(),
            [table()[:20], table()],
        ),
    }


def untrained(case: Case, kind: str, *more: str) -> Run:
    settings, examples, _ = case
    recipe = Recipe().override(*settings, *SMALL).override(f"model.kind={kind}").override(*more).resolved()
    task, _ = declare(recipe).prepare(recipe, print, examples)
    model = stirred(task.shape.build()).eval()
    if getattr(recipe.model, "lexicon", False):
        model.embed.table.normal_()
    return Run(Path("run"), task, model)
