"""Tunes of a few notes as sound, with noise: what is heard, and the names of the notes."""

import numpy as np

from seqloom.arrays import Singles

RATE = 8000  # samples a second
COUNTS = {"train": 800, "validation": 100, "test": 100}
NAMES = [f"{letter}{octave}" for octave in (5, 6) for letter in "CDEFGAB"]
STEPS = [12 * octave + step for octave in (0, 1) for step in (0, 2, 4, 5, 7, 9, 11)]  # half tones above C5
LOWEST = 523.25  # Hz
LENGTHS, REST = (0.1, 0.25), (0.03, 0.08)  # seconds
HARMONICS = (1.0, 0.4, 0.2)


def tones() -> dict[str, list[tuple[Singles, str]]]:
    """Two to seven notes, some of them twice in a row, at 8,000 samples a second; no tune is in two parts."""
    chance, seen = np.random.Generator(np.random.PCG64(1877)), set[str]()
    parts: dict[str, list[tuple[Singles, str]]] = {part: [] for part in COUNTS}
    for part, count in COUNTS.items():
        while len(parts[part]) < count:
            notes = chance.integers(len(NAMES), size=chance.integers(2, 8))
            name = " ".join(NAMES[note] for note in notes)
            if name not in seen:
                seen.add(name)
                parts[part].append((play(notes.tolist(), chance), name))
    return parts


def play(notes: list[int], chance: np.random.Generator) -> Singles:
    """The notes one after the other, each of its own length and loudness, out of tune by at most 0.1 half tones."""
    parts = []
    for note in notes:
        frequency = LOWEST * 2 ** ((STEPS[note] + chance.uniform(-0.1, 0.1)) / 12)
        time = np.arange(int(RATE * chance.uniform(*LENGTHS))) / RATE
        waves = [share * np.sin(2 * np.pi * (k + 1) * frequency * time) for k, share in enumerate(HARMONICS)]
        rise = np.minimum(1, np.minimum(time, time[::-1]) / 0.01)
        parts += [chance.uniform(0.1, 0.5) * rise * np.sum(waves, 0), np.zeros(int(RATE * chance.uniform(*REST)))]
    sound = np.concatenate(parts)
    return np.clip(sound + 0.01 * chance.standard_normal(len(sound)), -1, 1).astype(np.float32)
