"""A run folder that somebody has tampered with answers, or is refused in one sentence; it never ends in a trace."""

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.cli.terminal import show_scores
from seqloom.config.recipe import Recipe
from seqloom.errors import SeqloomError
from seqloom.runs.run import diagnose, load, train

from .mutations import mutate
from .recipes import forecasting, small, walks

FEW = ("model.size=8", "train.steps=4", "train.validate_every=2", "train.watch_every=2", "train.batch_tokens=256")
LETTERS = [("abab"[: 2 + n % 3] * (1 + n % 4), "odd" if n % 2 else "even") for n in range(80)]
TAGGED = [("a b c"[: 1 + 2 * (n % 3)], "X Y X"[: 1 + 2 * (n % 3)]) for n in range(80)]
TEXTS = [("the cat sat on the mat " * (1 + n % 3),) for n in range(40)]


def by(task: str, *settings: str) -> Recipe:
    return Recipe.of({"task": task}).override(*FEW, *settings)


def images(count: int) -> list[tuple[np.ndarray[Any, Any], str]]:
    bars = {"down": np.s_[:, 1:3], "across": np.s_[1:3, :]}
    found = []
    for number in range(count):
        name, image = list(bars)[number % 2], np.zeros((1, 4, 4, 1), dtype=np.uint8)
        image[0][bars[name]] = 200 + number % 3
        found.append((image, name))
    return found


DRAWN = {"train": images(60), "validation": images(10), "test": images(20)}
RUNS: dict[str, tuple[Recipe, Any, Any]] = {  # a recipe, examples, and what it is asked
    "seq2seq": (Recipe(), None, "abc"),
    "classify": (by("classify", "train.class_weights=true"), LETTERS, "abab"),
    "rating": (by("classify", "data.target_type=number"), [(text, str(len(text))) for text, _ in LETTERS], "abab"),
    "tag": (by("tag", "data.characters=4"), TAGGED, "a b"),
    "language": (by("language", "data.target_tokenizer=bpe", "train.bptt_window=8"), TEXTS, "the"),
    "forecast": (forecasting("train.watch_every=2", "data.calendar=false"), walks(90), walks(20)),
    "draw": (by("draw", "data.square=2", "data.source_tokenizer=words", "search.beam_size=2"), DRAWN, "down"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small run of several tasks, whose data is no longer there."""
    parent, found = tmp_path_factory.mktemp("mutated"), {}
    for name, (recipe, examples, _) in RUNS.items():
        if examples is None:
            recipe = small(parent, "train.watch_every=2")
        list(train(recipe, parent / name, examples=examples))
        found[name] = parent / name
    (parent / "backwards.tsv").unlink()
    return found


def outcomes(folder: Path, given: Any) -> list[str]:
    """What comes of everything that a person would do with a folder: nothing, or the sentence that refuses it."""
    found: list[str] = []

    def attempt(ask: Any) -> Any:
        try:
            return ask()
        except SeqloomError as error:
            found.append(str(error))
            return None

    attempt(lambda: diagnose(folder, seconds=0))
    run = attempt(lambda: load(folder))
    if run is not None:
        attempt(lambda: show_scores([run.scores]))
        attempt(lambda: (run.history.curves, run.history.watched, run.history.rates))
        attempt(lambda: list(map(str, run.predict(given))))
    return found


def attack(folder: Path, given: Any, scratch: Path, seeds: range) -> int:
    """How many of the folders that these seeds make were refused."""
    refused = 0
    for seed in seeds:
        target = scratch / "run"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target, ignore=shutil.ignore_patterns("checkpoints", "events*"))
        said = mutate(target, random.Random(f"{folder.name} {seed}"))
        try:
            sentences = outcomes(target, given)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {said}: {type(error).__name__}: {error}") from error
        for sentence in sentences:
            assert len(sentence.splitlines()) == 1 and sentence.isprintable(), (seed, said, sentence)
            assert len(sentence) < 1000, (seed, said, sentence)
        refused += bool(sentences)
    return refused


@pytest.mark.parametrize("task", RUNS)
def test_a_mutated_run_folder_answers_or_is_refused_in_one_sentence(folders, task, tmp_path, capsys):
    assert outcomes(folders[task], RUNS[task][2]) == []
    assert attack(folders[task], RUNS[task][2], tmp_path, range(60)) > 10


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("task", RUNS)
def test_thousands_of_mutated_run_folders_answer_or_are_refused_in_one_sentence(folders, task, part, tmp_path, capsys):
    attack(folders[task], RUNS[task][2], tmp_path, range(1000 * (part + 1), 1000 * (part + 2)))
