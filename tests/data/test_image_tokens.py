"""Images as squares: every image is the nearest mosaic, every mosaic is itself, and nothing else is kept."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.vocabulary import SPECIALS
from seqloom.errors import DataError, RunError
from seqloom.fields.image_tokens import ImageTokens, choose_typical, cut_up, nearest, parse_shades, to_shades


def fitted(images, side: int, most: int) -> ImageTokens:
    return ImageTokens.fit(images, SimpleNamespace(square=side, vocabulary_size=most))


def noise(count: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 1, *shape), dtype=np.uint8)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 3), st.integers(1, 4), st.integers(1, 40))
def test_a_mosaic_comes_back_exactly_and_is_its_own_nearest(height, width, channels, side, most):
    images = noise(5, height, width, channels)
    field = fitted(iter(images), side, most)
    ids = field.encode_many(list(images))
    assert len(field) <= most + len(SPECIALS) and (ids.lengths == field.count).all()
    for row in ids:
        image = field.decode(row.tolist())
        assert image.shape == (height, width, channels)
        # A square that reaches over the edge comes back cut, and may then be more like another.
        assert field.encode_many([image])[0].tolist() == row.tolist() or height % side or width % side


def test_with_room_for_every_square_nothing_is_lost():
    images = noise(6, 6, 4, 1)
    field = fitted(iter(images), 2, 1000)
    for [image], row in zip(images, field.encode_many(list(images)), strict=True):
        assert (field.decode(row.tolist()) == image).all()


def test_squares_are_cut_row_by_row():
    image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1)
    assert cut_up(image, 2)[0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


def test_the_nearest_is_that_of_all_distances():
    asked, known = noise(50, 3)[:, 0], noise(9, 3, seed=1)[:, 0]
    distances = ((asked[:, None].astype(float) - known) ** 2).sum(-1)
    assert (distances[np.arange(50), nearest(asked, known)] == distances.min(1)).all()


def test_typical_squares_leave_less_than_drawn_ones():
    squares = np.concatenate([noise(300, 4, seed=n)[:, 0] // 8 + 60 * n for n in range(4)])
    found = choose_typical(squares, 8)
    rest = [((squares.astype(float) - some[nearest(squares, some)]) ** 2).sum() for some in (found, squares[::150])]
    assert len(np.unique(found, axis=0)) == len(found) == 8 and rest[0] < 0.7 * rest[1]


def test_what_was_learned_is_read_back_and_damage_is_seen():
    field = fitted(iter(noise(4, 5, 5, 3)), 2, 7)
    saved = json.loads(json.dumps(field.to_json()))
    again = ImageTokens.from_json(saved)
    assert again.size == field.size and (again.squares == field.squares).all()
    for broken in (
        {"side": 3},
        {"squares": saved["squares"][:1] * 2},
        {"squares": []},
        {"size": [5, 5]},
        {"side": "2"},
    ):
        with pytest.raises(RunError, match="the image tokens are not"):
            ImageTokens.from_json(saved | broken)


def test_an_image_of_another_size_is_refused():
    field = fitted(iter(noise(4, 6, 6, 1)), 2, 7)
    with pytest.raises(DataError, match="an image is 6×4×1, but this model draws 6×6×1"):
        field.encode_many(list(noise(1, 6, 4, 1)))


def test_shades_show_an_image_and_are_read_back_to_within_a_shade():
    [[image]] = noise(1, 5, 7, 1)
    text = "\n".join(to_shades(image))
    assert len(text.split("\n")) == 5 and all(len(line) == 14 for line in text.split("\n"))
    assert np.abs(parse_shades(text, image.shape).astype(int) - image).max() <= 256 / 5
    assert (parse_shades("", (2, 2, 1)) == 0).all()
