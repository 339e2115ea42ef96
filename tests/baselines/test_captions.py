"""Captions without seeing, against brute force."""

import random

import numpy as np

from seqloom.baselines.captions import (
    choose_constant_caption,
    find_nearest_images,
    rank_central_captions,
    shrink_images,
    take_first_captions,
)
from seqloom.metrics import bleu

SUBJECTS, VERBS, PLACES = (
    ("a dog", "a man", "two dogs", "a girl"),
    ("runs", "jumps", "sits"),
    ("in the grass", "here", ""),
)


def captions(seed: int, images: int) -> list[list[str]]:
    draw = random.Random(seed)

    def caption() -> str:
        subject = draw.choices(SUBJECTS, [5, 3, 1, 1])[0]
        return f"{subject} {draw.choices(VERBS, [4, 1, 1])[0]} {draw.choices(PLACES, [4, 1, 1])[0]} .".replace(
            "  ", " "
        )

    return [[caption() for _ in range(5)] for _ in range(images)]


def measure(predictions, references) -> float:
    return bleu(predictions, references, intervals=False).value


def test_the_constant_caption_is_the_best_there_is():
    for seed in range(5):
        references = captions(seed, 30)
        every = {caption for each in references for caption in each}
        values = {caption: measure([caption] * 30, references) for caption in every}
        found = choose_constant_caption(references, measure, shortlist=5)
        assert len(every) > 15 and values[found] == max(values.values())


def test_only_the_shortlist_is_measured_and_only_on_the_sample():
    asked = []

    def listening(predictions, references) -> float:
        asked.append(len(references))
        return measure(predictions, references)

    choose_constant_caption(captions(1, 30), listening, shortlist=4, images=10)
    assert asked == [10] * 4


def test_every_caption_is_ranked_once():
    references = [["a", "a b c d e", "x y"], ["a b c d e", ""]]
    ranked = rank_central_captions(references)
    assert ranked[0] == "a b c d e" and sorted(ranked) == ["", "a", "a b c d e", "x y"]


def test_the_nearest_image_differs_least_in_its_fields():
    for seed in range(20):
        draw = np.random.default_rng(seed)
        training = draw.integers(256, size=(30, 16, 8, 3)).astype(np.uint8)
        asked = draw.integers(256, size=(9, 16, 8, 3)).astype(np.uint8)
        expected = []
        for image in asked:
            fields = [image[r : r + 8, c : c + 4].mean((0, 1)) for r in (0, 8) for c in (0, 4)]
            distances = []
            for other in training:
                others = [other[r : r + 8, c : c + 4].mean((0, 1)) for r in (0, 8) for c in (0, 4)]
                distances.append(np.sum((np.array(fields) - others) ** 2))
            expected.append(int(np.argmin(distances)))
        assert find_nearest_images(training, asked, side=2).tolist() == expected


def test_an_image_is_its_own_nearest_and_lends_its_first_caption():
    images = np.random.default_rng(0).integers(256, size=(20, 8, 8, 3)).astype(np.uint8)
    places = find_nearest_images(images, images[[7, 3]])
    assert take_first_captions([[f"first {n}", "second"] for n in range(20)], places) == ["first 7", "first 3"]


def test_shrinking_to_the_size_that_is_there_changes_nothing():
    images = np.random.default_rng(0).random((2, 4, 4, 3))
    assert np.array_equal(shrink_images(images, 4), images.reshape(2, -1))
