"""Written answers without learning: the source itself, and the answer that is most often right.

What is learned from the training targets is small enough to be stored with a model, so that a run can be scored against
it after the data is gone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence


def most_frequent(targets: Iterable[str]) -> str:
    """The target that stands most often among those of training (of several, the first); empty if there is none."""
    [(target, _)] = Counter(targets).most_common(1) or [("", 0)]
    return target


def copy_and_most_frequent(sources: Sequence[str], most_frequent: str) -> dict[str, list[str]]:
    """The answers of each baseline by its name: the source itself, and always the most frequent target."""
    return {"copy": list(sources), "most frequent": [most_frequent] * len(sources)}
