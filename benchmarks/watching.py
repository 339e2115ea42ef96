"""What it costs to watch training (train.watch=100): seconds a step with and without, as a ratio, best of several."""

import tempfile
import time
from pathlib import Path

import torch

from seqloom.look.watching import Watching
from seqloom.recipe import Recipe
from seqloom.runs import Feed, settle, silent
from seqloom.training.loop import Training

EVERY, STEPS, REPEATS = 100, 10, 3
CASES = {
    "transduce, lstm 128": ("transduce", "model.kind=lstm", "model.size=128"),
    "transduce, transformer 128": ("transduce", "model.kind=transformer", "model.size=128"),
    "language, gru 256": ("language",),
    "language, lstm 512": ("language", "model.kind=lstm", "model.size=512"),
}


def training(recipe: Recipe, folder: Path) -> Training:
    task, prepared, model = settle(folder, recipe, None, None, False, silent)
    return Training(task.objective(model), Feed(task, prepared), task.recipe.train, watch=Watching)


def seconds_of_a_step(one: Training) -> float:
    """The best mean over some steps, none of them watched."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(STEPS):
            one.advance()
        found.append((time.perf_counter() - began) / STEPS)
    return min(found)


def seconds_of_a_look(one: Training) -> float:
    assert one.watch is not None
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        one.watch.after(one.watch.before(), 1.0)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    torch.manual_seed(0)
    print(f"{'':28} {'ms a step':>10} {'ms a look':>10} {f'share, one look in {EVERY} steps':>34}")
    for name, (recipe, *changes) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            settings = (*changes, "train.steps=100000", "train.watch=100000", "train.warmup=100")
            one = training(Recipe.read(recipe, *settings), Path(folder))
            step, look = seconds_of_a_step(one), seconds_of_a_look(one)
        print(f"{name:28} {1000 * step:10.1f} {1000 * look:10.1f} {look / (EVERY * step):34.2%}")


if __name__ == "__main__":
    main()
