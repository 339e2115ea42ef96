"""The header fields of ABC that say how notes are meant: key (K:), meter (M:), unit length (L:), tempo (Q:).

Each function takes the field's text and gives what it means, or raises ValueError with half a sentence.
"""

import re
from fractions import Fraction

MODES = {"": 0, "maj": 0, "ion": 0, "m": -3, "min": -3, "aeo": -3, "mix": -1, "dor": -2, "phr": -4, "lyd": 1, "loc": -5}
FIFTHS = {"F": -1, "C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5}
SHARPS = "FCGDAEB"  # in the order in which they are added; flats go the other way
ALTERATIONS = {"^^": 2, "^": 1, "=": 0, "_": -1, "__": -2}

KEY = re.compile(r"([A-G])([#b]?)\s*([A-Za-z]*)(.*)")
EXPLICIT = re.compile(r"(?<!\S)(\^\^|\^|__|_|=)([A-Ga-g])(?!\S)")
FRACTION = re.compile(r"([0-9]{1,3})\s*/\s*([0-9]{1,4})")
METER = re.compile(r"\(?([0-9]{1,2}(?:\s*\+\s*[0-9]{1,2})*)\)?\s*/\s*([0-9]{1,3})")
TEMPO = re.compile(r"(?:([0-9]{1,3}\s*/\s*[0-9]{1,4})\s*=\s*)?([0-9]{1,4})")


def parse_key(text: str) -> dict[str, int]:
    """How each letter is altered, in semitones; letters that are not, are not there."""
    text = text.strip()
    if text.startswith(("HP", "Hp")):  # Highland pipes
        return {"F": 1, "C": 1}
    if text.lower().startswith("none") or not text:
        return _parse_accidentals(text)
    match = KEY.fullmatch(text)
    if not match:
        raise ValueError(f"the key {text[:40]!r} cannot be read; D, Am, Bb or G Mixolydian are keys")
    tonic, sign, word, rest = match.groups()
    mode = word.lower() if word == "m" else word.lower()[:3]
    if mode == "exp":
        return _parse_accidentals(rest)
    if mode not in MODES:
        if mode in ("cle", "tre", "bas", "alt", "ten", "tra", "oct", "mid", "sta", "per"):  # a clef, not a mode
            mode = ""
        else:
            raise ValueError(f"there is no mode {word[:40]!r}; major, minor, dorian and mixolydian are some")
    fifths = FIFTHS[tonic] + {"#": 7, "b": -7, "": 0}[sign] + MODES[mode]
    if abs(fifths) > 7:
        raise ValueError(f"the key {text[:40]!r} has more than seven accidentals")
    altered = {letter: 1 for letter in SHARPS[: max(fifths, 0)]}
    altered |= {letter: -1 for letter in SHARPS[::-1][: max(-fifths, 0)]}
    return altered | _parse_accidentals(rest)


def _parse_accidentals(text: str) -> dict[str, int]:
    return {letter.upper(): ALTERATIONS[sign] for sign, letter in EXPLICIT.findall(text)}


def parse_meter(text: str) -> Fraction | None:
    """The length of a bar in whole notes; None if it is free."""
    text = text.strip()
    if text in ("none", ""):
        return None
    if text in ("C", "C|"):
        return Fraction(1)
    match = METER.fullmatch(text)
    beats = sum(map(int, match[1].split("+"))) if match else 0
    if not match or not beats or not int(match[2]):
        raise ValueError(f"the meter {text[:40]!r} cannot be read; 4/4, 6/8, C and none are meters")
    return Fraction(beats, int(match[2]))


def is_compound(text: str) -> bool:
    """Whether beats fall into three, so that five or seven notes in a bracket take the time of three."""
    return text.strip() in ("6/8", "9/8", "12/8")


def parse_unit(text: str) -> Fraction:
    """The length of a note without a number, in whole notes."""
    text = text.strip()
    match = FRACTION.fullmatch(text)
    if text == "1":
        return Fraction(1)
    if not match or not int(match[1]) or not int(match[2]):
        raise ValueError(f"the unit length {text[:40]!r} cannot be read; 1/8 is one")
    return Fraction(int(match[1]), int(match[2]))


def choose_default_unit(meter: Fraction | None) -> Fraction:
    """The unit length where L: does not say it."""
    return Fraction(1, 16) if meter is not None and meter < Fraction(3, 4) else Fraction(1, 8)


def parse_tempo(text: str, unit: Fraction) -> Fraction:
    """Whole notes a minute; without a number (nothing, or a word in quotes) 120 quarter notes."""
    match = TEMPO.search(re.sub(r'"[^"]*"', "", text))
    if not match or not int(match[2]):
        return Fraction(30)
    beat = parse_unit(match[1]) if match[1] else unit
    tempo = beat * int(match[2])
    if not 1 <= tempo <= 1000:
        raise ValueError(f"the tempo {text[:40]!r} cannot be played")
    return tempo
