"""Polyphonic music without a melody in mind: how often each pitch sounds, and whether it goes on sounding.

A piece is an array (T, P) of frames, true where a pitch sounds; pitches are independent given the frame before, as they
are for a Bernoulli head. Losses are in nats a frame, over all P pitches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles


@dataclass(frozen=True)
class FrameFrequency:
    """Each pitch sounds as often as it does in training, whatever came before."""

    chances: Doubles  # (P,)

    @classmethod
    def fit(cls, pieces: Sequence[ArrayLike], smoothing: float = 0.5) -> "FrameFrequency":
        """`smoothing` frames with the pitch, and as many without it, are added to those of training."""
        frames = np.concatenate([_as_frames(piece) for piece in pieces])
        return cls((frames.sum(0) + smoothing) / (len(frames) + 2 * smoothing))

    def losses(self, piece: ArrayLike) -> Doubles:
        """Negative log-likelihood of each frame (T,)."""
        return _compute_losses(_as_frames(piece), self.chances)


@dataclass(frozen=True)
class PreviousFrame:
    """The frame before, repeated, with the chance of each pitch to end and to begin."""

    first: FrameFrequency  # of the frame that has none before it
    chances: Doubles  # (2, P): to sound after silence, and after sounding

    @classmethod
    def fit(cls, pieces: Sequence[ArrayLike], smoothing: float = 1.0) -> "PreviousFrame":
        """A pitch that is rarely heard behaves as all pitches do; `smoothing` frames say so."""
        whole = [_as_frames(piece) for piece in pieces]
        before, after = (np.concatenate([piece[cut] for piece in whole]) for cut in (slice(None, -1), slice(1, None)))
        chances = []
        for earlier in (1 - before, before):
            times, sounding = earlier.sum(0), (earlier * after).sum(0)
            overall = (sounding.sum() + 0.5) / (times.sum() + 1)  # of all pitches together
            chances.append((sounding + smoothing * overall) / (times + smoothing))
        return cls(FrameFrequency.fit(pieces), np.array(chances))

    def losses(self, piece: ArrayLike) -> Doubles:
        """Negative log-likelihood of each frame (T,), given the one before."""
        frames = _as_frames(piece)
        silent, sounding = self.chances
        later = _compute_losses(frames[1:], np.where(frames[:-1] > 0, sounding, silent))
        return np.concatenate([self.first.losses(frames[:1]), later])


def _as_frames(piece: ArrayLike) -> Doubles:
    frames = np.asarray(piece, dtype=bool)
    assert frames.ndim == 2, "frames × pitches"
    return frames.astype(np.float64)


def _compute_losses(frames: Doubles, chances: Doubles) -> Doubles:
    return -np.log(np.where(frames > 0, chances, 1 - chances)).sum(-1)
