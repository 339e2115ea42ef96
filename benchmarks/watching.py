"""What it costs to watch training (train.watch_every=100): a look beside a step, as a share of a hundred steps."""

import time
from collections.abc import Callable

import torch

from seqloom.architectures.build import build_generator
from seqloom.config.recipe import Recipe
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical
from seqloom.look.watching import Watching
from seqloom.models import Batch, GenerationObjective
from seqloom.training.optimizer import build_optimizer
from seqloom.training.update import update

EVERY, REPEATS = 100, 3
ROWS, LENGTH, SYMBOLS = 32, 64, 200  # of random tokens: time does not depend on what they say
CASES = {
    "lstm 128, 1 layer": ("model.kind=lstm", "model.size=128"),
    "gru 256, 2 layers": ("model.kind=gru", "model.size=256", "model.depth=2"),
    "transformer 128, 4 layers": ("model.kind=transformer", "model.size=128", "model.depth=4"),
    "lstm 512, 1 layer": ("model.kind=lstm", "model.size=512"),
}


def best(act: Callable[[], object]) -> float:
    """Seconds, of the fastest of several times."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(3, SYMBOLS, (ROWS, LENGTH + 1))
    batch = Batch.from_sequence(tokens, torch.ones_like(tokens, dtype=torch.bool))
    print(f"{'':26} {'ms a step':>10} {'ms a look':>10} {f'share, one look in {EVERY} steps':>32}")
    for name, changes in CASES.items():
        recipe = Recipe.of({"task": "language"}).override(*changes, "train.steps=1000").resolved()
        embed = TokenEmbedding(SYMBOLS, recipe.model.embedding)
        model = build_generator(recipe.model, embed, lambda features: Categorical(features, SYMBOLS))
        objective = GenerationObjective(model)
        optimizer, watch = build_optimizer(objective, recipe.train), Watching(objective)
        step = best(lambda: update(objective, optimizer, [batch], recipe.train))  # noqa: B023
        look = best(lambda: watch.after(watch.before(), 1.0))  # noqa: B023
        print(f"{name:26} {1000 * step:10.1f} {1000 * look:10.1f} {look / (EVERY * step):32.2%}")


if __name__ == "__main__":
    main()
