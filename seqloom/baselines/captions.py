"""Captions without seeing, or hardly: one caption for every image, and the caption of the image that looks most alike.

Images are arrays (N, height, width, channels). What makes a caption good is the caller's measure: this file knows no
metric.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Doubles

Measure = Callable[
    [Sequence[str], Sequence[Sequence[str]]], float
]  # captions, references of each image → higher is better

MAX_NGRAM = 4  # n-grams, as in BLEU
ROOM = 1 << 24  # distances held at once


def choose_constant_caption(
    references: Sequence[Sequence[str]], measure: Measure, shortlist: int = 20, images: int = 500, seed: int = 0
) -> str:
    """The training caption that does best when it is given for every image.

    Measuring all captions would take hours: only those that share most n-grams with the captions of other images are
    measured, on a sample of the images.
    """
    assert references and all(references), "a caption for every image"
    best = rank_central_captions(references)[:shortlist]
    rows = np.random.default_rng(seed).permutation(len(references))[:images]
    sample = [references[row] for row in rows]
    return max(best, key=lambda caption: measure([caption] * len(sample), sample))


def rank_central_captions(references: Sequence[Sequence[str]]) -> list[str]:
    """All different captions, first those whose n-grams are found with the most images; the shape of BLEU."""
    counts: Counter[tuple[str, ...]] = Counter()
    for captions in references:
        counts.update({gram for caption in captions for gram in _list_ngrams(caption.split())})
    different = list(dict.fromkeys(caption for captions in references for caption in captions))
    median = float(np.median([len(caption.split()) for caption in different]))

    def centrality(caption: str) -> float:
        words = caption.split()
        hits: list[list[float]] = [[] for _ in range(MAX_NGRAM)]
        for gram in _list_ngrams(words):
            hits[len(gram) - 1].append(counts[gram] / len(references))
        precision = np.mean([np.log(np.mean(shares)) if shares else -np.inf for shares in hits])
        return float(precision + min(0.0, 1 - median / max(len(words), 1)))

    return sorted(different, key=centrality, reverse=True)


def find_nearest_images(training: ArrayLike, images: ArrayLike, side: int = 8) -> NDArray[np.int64]:
    """For each image the place of the training image whose colors differ least, both shrunk to `side` × `side`."""
    known, queries = shrink_images(training, side), shrink_images(images, side)
    lengths = (known**2).sum(1)
    piece = max(1, ROOM // len(known))
    # The square of what is asked is the same for every candidate, so it does not matter which is nearest.
    places = [(lengths - 2 * queries[n : n + piece] @ known.T).argmin(1) for n in range(0, len(queries), piece)]
    return np.concatenate(places) if places else np.zeros(0, dtype=np.int64)


def take_first_captions(captions: Sequence[Sequence[str]], places: ArrayLike) -> list[str]:
    """The first caption of each of these training images."""
    return [captions[place][0] for place in np.asarray(places)]


def shrink_images(images: ArrayLike, side: int) -> Doubles:
    """The mean colors of `side` × `side` fields, side by side, as numbers from 0 on: (N, side · side · channels)"""
    pixels = np.asarray(images)
    count, height, width = pixels.shape[:3]
    assert height % side == 0 and width % side == 0, "a side that divides the images"
    fields = pixels.reshape(count, side, height // side, side, width // side, -1)
    return fields.mean((2, 4), dtype=np.float64).reshape(count, -1)


def _list_ngrams(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(words[n : n + size]) for size in range(1, MAX_NGRAM + 1) for n in range(len(words) - size + 1)]
