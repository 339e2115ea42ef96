"""Jigs and reels made up on the spot, in ABC notation: a sample for music.

Every tune has two parts of eight bars, each played twice, over a pattern of chords. A bar is a rhythm whose beats fall
on notes of the chord and whose other notes step along the scale. Nobody wrote these tunes, so nobody owns them.
"""

import random
from typing import NamedTuple

COUNTS = {"train": 900, "validation": 60, "test": 60}
SEED = 1684
LETTERS = "CDEFGAB"
KEYS = {"D": 1, "G": 4, "A": 5, "C": 0, "Edor": 2, "Ador": 5}  # where each begins, in steps from C
CHORDS = (  # a chord a bar, in steps of the scale from its first note
    (0, 0, 3, 4, 0, 0, 4, 0),
    (0, 3, 0, 4, 0, 3, 4, 0),
    (0, 0, 4, 4, 0, 3, 4, 0),
    (0, 5, 3, 4, 0, 5, 4, 0),
    (0, 6, 0, 6, 0, 6, 4, 0),
)
LOWEST, HIGHEST = -2, 13  # steps from middle C: what a whistle or a fiddle plays with ease


class Dance(NamedTuple):
    name: str
    meter: str
    halves: tuple[tuple[int, ...], ...]  # rhythms of half a bar, in eighths
    close: tuple[int, ...]  # the rhythm of the last half


DANCES = (
    Dance("Jig", "6/8", ((1, 1, 1), (1, 1, 1), (2, 1), (1, 1, 1), (1, 2), (3,)), (3,)),
    Dance("Reel", "4/4", ((1, 1, 1, 1), (1, 1, 1, 1), (2, 1, 1), (1, 1, 2), (2, 2), (3, 1)), (4,)),
)
FIRST = ("Green", "Merry", "Old", "Wild", "Silver", "Lonely", "Crooked", "Early", "Long", "Blue")
SECOND = ("Hill", "Miller", "Harbour", "Meadow", "Lantern", "Ferry", "Thistle", "Orchard", "Drover", "Kettle")


def tunes() -> dict[str, list[tuple[str]]]:
    """One tune an example, by part; no two are alike."""
    chance = random.Random(SEED)
    order: dict[str, int] = {}
    while len(order) < sum(COUNTS.values()):
        order.setdefault(_make_tune(chance, len(order) + 1), len(order))
    rest, parts = iter(order), {}
    for part, count in COUNTS.items():
        parts[part] = [(next(rest),) for _ in range(count)]
    return parts


def _make_tune(chance: random.Random, number: int) -> str:
    dance, key = chance.choice(DANCES), chance.choice(list(KEYS))
    title = f"The {chance.choice(FIRST)} {chance.choice(SECOND)} {dance.name}"
    header = [f"X:{number}", f"T:{title}", f"M:{dance.meter}", "L:1/8", f"K:{key}"]
    return "\n".join([*header, *(_make_part(chance, dance, KEYS[key], high) for high in (0, 4))])


def _make_part(chance: random.Random, dance: Dance, tonic: int, high: int) -> str:
    """Eight bars on two lines, to be played twice. The fifth and sixth often say again what the first two said."""
    note, chords = tonic + high, chance.choice(CHORDS)
    bars: list[str] = []
    for place, chord in enumerate(chords):
        if place in (4, 5) and chords[place] == chords[place - 4] and chance.random() < 0.7:
            bars.append(bars[place - 4])
            continue
        text = []
        for half in range(2):
            last = place == 7 and half == 1
            rhythm = dance.close if last else chance.choice(dance.halves)
            for beat, length in enumerate(rhythm):
                note = (
                    _find_nearest(note, tonic + chord, (0,) if last else (0, 2, 4)) if not beat else _step(chance, note)
                )
                text.append(_format_note(note) + (str(length) if length > 1 else ""))
            text.append("" if half else " ")
        bars.append("".join(text))
    return f"|:{'|'.join(bars[:4])}|\n{'|'.join(bars[4:])}:|"


def _find_nearest(note: int, root: int, chord: tuple[int, ...]) -> int:
    """The note of the chord that is nearest and can be played."""
    there = [root + step + 7 * octave for step in chord for octave in (-2, -1, 0, 1)]
    return min((one for one in there if LOWEST <= one <= HIGHEST), key=lambda one: (abs(one - note), one))


def _step(chance: random.Random, note: int) -> int:
    return min(max(note + chance.choice((-2, -1, -1, 1, 1, 2)), LOWEST), HIGHEST)


def _format_note(note: int) -> str:
    letter = LETTERS[note % 7]
    if note < 0:
        return letter + ","
    return letter if note < 7 else letter.lower()
