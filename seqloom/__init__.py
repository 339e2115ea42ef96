"""From a person's own sequences to a trained, measured, understood model.

from seqloom import Recipe, load, train
for record in train(Recipe.read("transduce"), into="runs/dates"): ...
load("runs/dates").predict("3 mai 2024")
"""

import os

TYPE_CHECKING = False  # typing's own takes longer to load than the rest until signals are heard: see `stopping`

# Threads that wait for one another by spinning slow a busy machine down: with one other program on two cores, a step
# of training took 5,264 ms instead of 90; with this much patience, 89, and 95 on an idle one. Read when torch loads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if TYPE_CHECKING:
    from .recipe import Recipe as Recipe
    from .runs import Run as Run
    from .runs import load as load
    from .runs import train as train

__all__ = ["Recipe", "Run", "load", "train"]


def __getattr__(name: str) -> object:
    """Import on first use: torch takes seconds, and `seqloom --help` needs none of it."""
    if name == "Recipe":
        from .recipe import Recipe

        return Recipe
    if name in __all__:
        from . import runs

        return getattr(runs, name)
    raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
