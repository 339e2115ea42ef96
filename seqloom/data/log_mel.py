"""Sound as frames: the power of short overlapping spans in bands of the mel scale, as logarithms."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.arrays import Doubles, Singles
from seqloom.config.recipe import Data
from seqloom.errors import RecipeError

FLOOR = 1e-8  # added to every power: 80 decibels below a tone of full scale
REACH = 16  # zero crossings of the sinc on each side of a sample, in resampling
AT_ONCE = 1 << 15  # samples or frames that are worked on together


class LogMelSettings(NamedTuple):
    """Settings of log-mel frames."""

    rate: int  # samples a second
    bands: int
    length: float  # of a frame, in milliseconds
    hop: float  # from the beginning of a frame to that of the next, in milliseconds

    @classmethod
    def of(cls, data: Data) -> "LogMelSettings":
        return cls(data.sample_rate, data.mel_bands, data.frame_length, data.frame_hop)


class LogMel:
    """Samples to frames. The window is Hann's; a last span that is not full is filled with silence, so that every
    sample is in some frame."""

    def __init__(self, settings: LogMelSettings) -> None:
        self.settings = settings
        self.span, self.hop = (round(settings.rate * ms / 1000) for ms in (settings.length, settings.hop))
        if self.span < 2 or self.hop < 1:
            raise RecipeError(
                f"a frame of {settings.length:g} ms with a hop of {settings.hop:g} ms has fewer than 2 samples, or "
                f"moves by none, at {settings.rate} samples a second: raise data.frame_length or data.frame_hop"
            )
        self.window = np.sin(np.pi * np.arange(self.span) / self.span) ** 2
        self.bins = 1 << (self.span - 1).bit_length()  # of the Fourier transform, which is quick for powers of 2

    @cached_property
    def filters(self) -> Doubles:
        """How much each frequency of the transform counts in each band, (bins / 2 + 1, bands): triangles whose
        corners are equally far apart on the mel scale, from 0 to half of the sample rate."""
        rate, bands = self.settings.rate, self.settings.bands
        corners = convert_from_mel(np.linspace(0, to_mel(rate / 2), bands + 2))
        low, middle, high = corners[:-2], corners[1:-1], corners[2:]
        frequency = np.fft.rfftfreq(self.bins, 1 / rate)[:, None]
        weights = np.minimum((frequency - low) / (middle - low), (high - frequency) / (high - middle)).clip(0)
        if not weights.any(0).all():
            raise RecipeError(
                f"data.mel_bands is {bands}, more than a frame of {self.settings.length:g} ms can tell apart at "
                f"{rate} samples a second: choose fewer, or raise data.frame_length"
            )
        return weights

    def frames(self, samples: NDArray[np.floating]) -> Singles:
        """Samples (N,) between -1 and 1 as frames (T, bands)."""
        steps = max(1, 1 + -(-(len(samples) - self.span) // self.hop))
        whole = np.zeros((steps - 1) * self.hop + self.span)
        whole[: len(samples)] = samples
        spans = np.lib.stride_tricks.sliding_window_view(whole, self.span)[:: self.hop]
        pieces = (self._frames(spans[start : start + AT_ONCE]) for start in range(0, steps, AT_ONCE))
        return np.concatenate(list(pieces)).astype(np.float32)

    def _frames(self, spans: Doubles) -> Doubles:
        """The power is that of a tone of the same level, whatever the window."""
        spectrum = np.fft.rfft(spans * self.window, self.bins)
        power = (spectrum.real**2 + spectrum.imag**2) / self.window.sum() ** 2
        return np.log(power @ self.filters + FLOOR)


def to_mel(frequency: float) -> float:
    return float(2595 * np.log10(1 + frequency / 700))


def convert_from_mel(mel: Doubles) -> Doubles:
    return 700 * (10 ** (mel / 2595) - 1)


def resample(samples: NDArray[np.floating], rate: int, target_rate: int) -> Doubles:
    """The samples at another rate: each new one is a sum of those around it, weighed by a windowed sinc that lets
    pass what both rates can hold."""
    if rate == target_rate:
        return np.asarray(samples, np.float64)
    cutoff = min(1.0, target_rate / rate)
    reach = int(np.ceil(REACH / cutoff))
    near, padded = np.arange(-reach + 1, reach + 1), np.pad(np.asarray(samples, np.float64), reach)
    pieces = []
    count = -(-len(samples) * target_rate // rate)
    for start in range(0, count, AT_ONCE):
        place = np.arange(start, min(start + AT_ONCE, count)) * (rate / target_rate)
        first = np.floor(place).astype(np.int64)
        distance = (near + first[:, None] - place[:, None]) * cutoff
        weights = np.sinc(distance) * np.cos(np.pi / 2 * np.clip(distance / REACH, -1, 1)) ** 2
        pieces.append(cutoff * (padded[first[:, None] + near + reach] * weights).sum(1))
    return np.concatenate(pieces) if pieces else np.zeros(0)
