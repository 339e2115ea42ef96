"""METEOR (Banerjee and Lavie, 2005) as NLTK computes it. It matches synonyms by WordNet, which is not part of NLTK."""

from collections.abc import Sequence
from typing import Any

from ..errors import MissingExtra, SeqloomError
from .score import Score, ratio, score_sums
from .texts import References


class NoWordNet(SeqloomError):
    """WordNet is not on this machine."""

    def text(self) -> str:
        return (
            "METEOR matches synonyms by WordNet, which is not on this machine: python -m nltk.downloader wordnet "
            "fetches it once; without a network, unpack its wordnet.zip into corpora/ of a folder that NLTK_DATA names"
        )


def load_wordnet() -> Any:
    """WordNet, if NLTK finds it."""
    try:
        from nltk.corpus import wordnet
    except ImportError:
        raise MissingExtra("nltk", "meteor") from None
    try:
        wordnet.ensure_loaded()
    except LookupError:
        raise NoWordNet from None
    return wordnet


def meteor(
    predictions: Sequence[str], references: Sequence[References], *, intervals: bool = True, wordnet: Any = None
) -> Score:
    """The mean of METEOR over the examples, each with the best of its references; words stand between spaces."""
    wordnet = load_wordnet() if wordnet is None else wordnet
    from nltk.translate.meteor_score import meteor_score

    rows = []
    for prediction, right in zip(predictions, references, strict=True):
        accepted = [right] if isinstance(right, str) else right
        words = prediction.split()
        rows.append([meteor_score([one.split() for one in accepted], words, wordnet=wordnet) if words else 0.0, 1])
    return score_sums(rows, ratio, "higher", "mean of the examples, 0 to 1", intervals=intervals)
