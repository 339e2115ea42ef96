"""What an answer is worth that needs no learning: the floor every score stands beside.

Plain functions from texts to answers; whoever scores a model scores these with the same metrics. This file knows no
model and no metric. What a baseline learns from the training targets is small enough to be stored with the model, so
that a run can be scored against it after the data is gone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence


def most_frequent(targets: Iterable[str]) -> str:
    """The target that stands most often among those of training (of several, the first); empty if there is none."""
    [(target, _)] = Counter(targets).most_common(1) or [("", 0)]
    return target


def transduction(sources: Sequence[str], usual: str) -> dict[str, list[str]]:
    """The answers of each baseline by its name: the source itself, and always the `usual` (most frequent) target."""
    return {"copy": list(sources), "most frequent": [usual] * len(sources)}
