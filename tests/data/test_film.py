"""The film of a ball: what is drawn is where it is, and no throw is in two parts."""

import numpy as np

from seqloom.data.samples import SAMPLES
from seqloom.data.samples.film import EVERY, SEEN, SIDE, THROWS, draw, name_pixel
from seqloom.data.samples.series import throw_ball


def test_the_brightest_pixel_is_the_one_that_the_ball_is_in():
    path = throw_ball(200, np.random.default_rng(0))
    for place, picture in zip(path, draw(path), strict=True):
        row, column = divmod(int(picture.argmax()), SIDE)
        assert name_pixel(place) == f"{column} {row}"
        assert column == min(int(place[0] * SIDE), SIDE - 1) and row == min(int(place[1] * SIDE), SIDE - 1)


def test_the_sample_is_the_same_every_time_and_parts_share_no_pictures():
    first, again = SAMPLES["film"](), SAMPLES["film"]()
    assert set(first) == set(THROWS)
    for part in first:
        assert all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(first[part], again[part], strict=True))
    shown = {part: {pictures.tobytes() for pictures, _ in examples} for part, examples in first.items()}
    assert sum(map(len, shown.values())) == len(set().union(*shown.values()))
    pictures, answer = first["train"][0]
    assert pictures.shape == (SEEN, SIDE * SIDE) and all(0 <= int(word) < SIDE for word in answer.split())


def test_an_answer_is_where_the_ball_goes_on_to_and_mostly_not_where_it_was():
    """The next example of a throw begins so many pictures later that it shows the answer of the one before."""
    examples = SAMPLES["film"]()["test"]
    going = examples[: len(examples) // THROWS["test"]]
    for (_, answer), (later, _) in zip(going, going[1:], strict=False):
        row, column = divmod(int(later[SEEN - EVERY].argmax()), SIDE)
        assert answer == f"{column} {row}"
    last = [divmod(int(pictures[-1].argmax()), SIDE) for pictures, _ in examples]
    stays = np.mean([answer == f"{column} {row}" for (row, column), (_, answer) in zip(last, examples, strict=True)])
    assert 0.1 < stays < 0.6
