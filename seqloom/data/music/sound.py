"""Tunes as files a person can play: MIDI through mido, and WAV through a small synthesizer of our own.

The synthesizer adds a few harmonics to each note, with a soft start, a fading middle and a soft end. One channel.
"""

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqloom.data.formats.abc import Tune
from seqloom.data.music.abc_playback import SoundingNote, compute_whole_note_seconds, list_sounds
from seqloom.errors import DataError, MissingExtra

TICKS = 480  # a quarter note: all usual tuplets come out whole
VELOCITY = 80
RATE = 22050  # samples a second
HARMONICS = (1.0, 0.45, 0.25, 0.12, 0.06)
ATTACK, RELEASE, FADE = 0.01, 0.06, 1.2  # seconds: of the rise, of the end, and until a third is left
LONGEST = 1800  # seconds: more is no tune, and would fill the memory


def write_midi(tune: Tune, path: Path) -> None:
    """Write a tune, repeats played, as a MIDI file of one track."""
    save_midi(list_sounds(tune), compute_whole_note_seconds(tune), path)


def save_midi(sounds: Sequence[SoundingNote], second: float, path: Path) -> None:
    """Write sounds as a MIDI file of one track; `second` is how long a whole note lasts."""
    try:
        import mido
    except ImportError:
        raise MissingExtra("mido", "music") from None
    events: list[tuple[int, int, int]] = []  # tick, 0 to end before 1 begins, pitch
    for sound in sounds:
        events.append((round(sound.start * 4 * TICKS), 1, sound.pitch))
        events.append((round((sound.start + sound.length) * 4 * TICKS), 0, sound.pitch))
    track = mido.MidiTrack([mido.MetaMessage("set_tempo", tempo=round(second / 4 * 1e6))])
    now = 0
    for tick, begins, pitch in sorted(events):
        kind = "note_on" if begins else "note_off"
        track.append(mido.Message(kind, note=pitch, velocity=VELOCITY * begins, time=tick - now))
        now = tick
    mido.MidiFile(ticks_per_beat=TICKS, tracks=[track]).save(path)


def write_wav(tune: Tune, path: Path) -> None:
    """Write a tune, repeats played, as a WAV file of 16 bits, one channel."""
    save_wav(synthesize_tune(tune), path)


def save_wav(samples: npt.NDArray[np.float32], path: Path) -> None:
    """Write samples between -1 and 1 as a WAV file of 16 bits, one channel."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes((samples * 32767).astype("<i2").tobytes())


def synthesize_tune(tune: Tune) -> npt.NDArray[np.float32]:
    """The samples of a tune, between -1 and 1."""
    try:
        return synthesize_sounds(list_sounds(tune), compute_whole_note_seconds(tune))
    except OverflowError as error:
        raise DataError(str(error), tune.file, tune.line) from None


def synthesize_sounds(sounds: Sequence[SoundingNote], second: float) -> npt.NDArray[np.float32]:
    """The samples of sounds, between -1 and 1; `second` is how long a whole note lasts."""
    end = max((float(sound.start + sound.length) * second for sound in sounds), default=0.0) + RELEASE
    if end > LONGEST:
        raise OverflowError(f"the tune would last {end:,.0f} seconds, more than {LONGEST:,}")
    samples = np.zeros(int(end * RATE) + 1, np.float32)
    for sound in sounds:
        start = int(float(sound.start) * second * RATE)
        tone = _synthesize_tone(sound.pitch, float(sound.length) * second)[: len(samples) - start]
        samples[start : start + len(tone)] += tone
    loudest = np.abs(samples).max()
    return samples * np.float32(0.9) / max(loudest, np.float32(1e-9))


def _synthesize_tone(pitch: int, seconds: float) -> npt.NDArray[np.float32]:
    """One note: harmonics below half the sampling rate, and an envelope."""
    times = np.arange(int((seconds + RELEASE) * RATE)) / RATE
    frequency = 440 * 2 ** ((pitch - 69) / 12)
    tone = np.zeros(len(times))
    for number, strength in enumerate(HARMONICS, 1):
        if number * frequency < RATE / 2:
            tone += strength * np.sin(2 * np.pi * number * frequency * times)
    envelope = (
        np.minimum(times / ATTACK, 1) * np.exp(-times / FADE) * np.clip((seconds + RELEASE - times) / RELEASE, 0, 1)
    )
    return (tone * envelope).astype(np.float32)
