"""Frames of pitches against spelled-out counting, and the law of distributions."""

import itertools
import math

import numpy as np
import pytest

from seqloom.baselines.music import FrameFrequency, PreviousFrame


def pieces(seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.random((draw.integers(1, 9), 4)) < [0.1, 0.9, 0.5, 0] for _ in range(5)]


def test_a_pitch_sounds_as_often_as_it_did():
    for seed in range(50):
        given = pieces(seed)
        frames = [frame for piece in given for frame in piece]
        model = FrameFrequency.fit(given, smoothing=0.5)
        for pitch in range(4):
            share = (sum(frame[pitch] for frame in frames) + 0.5) / (len(frames) + 1)
            assert model.chances[pitch] == pytest.approx(share)


def test_a_pitch_goes_on_as_often_as_it_did():
    for seed in range(50):
        given = pieces(seed)
        steps = [(a, b) for piece in given for a, b in itertools.pairwise(piece)]
        model = PreviousFrame.fit(given, smoothing=2)
        for earlier in (0, 1):
            everywhere = [b[pitch] for a, b in steps for pitch in range(4) if a[pitch] == earlier]
            usual = (sum(everywhere) + 0.5) / (len(everywhere) + 1)
            for pitch in range(4):
                here = [b[pitch] for a, b in steps if a[pitch] == earlier]
                assert model.chances[earlier, pitch] == pytest.approx((sum(here) + 2 * usual) / (len(here) + 2))


@pytest.mark.parametrize("kind", [FrameFrequency, PreviousFrame])
def test_the_chances_of_all_frames_sum_to_one(kind):
    model = kind.fit(pieces(0))
    frames = np.array(list(itertools.product([0, 1], repeat=4)))
    firsts = [math.exp(-model.losses([frame])[0]) for frame in frames]
    assert sum(firsts) == pytest.approx(1)
    for before in frames:
        seconds = [math.exp(-model.losses([before, frame])[1]) for frame in frames]
        assert sum(seconds) == pytest.approx(1)


def test_a_held_chord_is_less_of_a_surprise_when_the_past_is_known():
    held = np.repeat(np.eye(4, dtype=bool), 10, axis=0)
    assert PreviousFrame.fit([held]).losses(held).mean() < FrameFrequency.fit([held]).losses(held).mean()


def test_pieces_of_one_frame_or_none_have_losses():
    model = PreviousFrame.fit(pieces(1))
    assert model.losses(np.zeros((1, 4))).shape == (1,)
    assert model.losses(np.zeros((0, 4))).shape == (0,)
