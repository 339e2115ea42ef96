"""From a person's own sequences to a trained, measured, understood model.

from seqloom import Recipe, load, train
for record in train(Recipe.read("seq2seq"), into="runs/dates"): ...
load("runs/dates").predict("3 mai 2024")
"""

import os

TYPE_CHECKING = False  # typing's own takes longer to load than the rest until signals are heard: see `stopping`

# Threads that wait for one another by spinning slow a busy machine down: with one other program on two cores, a step
# of training took 5,264 ms instead of 90; with this much patience, 89, and 95 on an idle one. Read when torch loads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if TYPE_CHECKING:
    from .config.recipe import Recipe as Recipe
    from .runs.compare import compare as compare
    from .runs.run import Run as Run
    from .runs.run import load as load
    from .runs.run import train as train

    __version__: str

__all__ = ["Recipe", "Run", "__version__", "compare", "load", "train"]


def __getattr__(name: str) -> object:
    """Import on first use: torch takes seconds, and `seqloom --help` needs none of it."""
    if name == "Recipe":
        from .config.recipe import Recipe

        return Recipe
    if name == "__version__":
        from importlib.metadata import version

        return version("seqloom")
    if name == "compare":
        from .runs.compare import compare

        return compare
    if name in __all__:
        from .runs import run as runs

        return getattr(runs, name)
    raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
