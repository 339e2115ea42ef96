"""What the bars of an ABC tune amount to: whether they are full, and the notes as they are played."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from seqloom.data.formats.abc import Tune
from seqloom.data.music.abc_parser import parse_bars
from seqloom.data.music.keys import choose_default_unit, parse_meter, parse_tempo, parse_unit
from seqloom.data.music.notation import Bar
from seqloom.errors import DataError

MOST_PASSES = 9
LETTERS = ("C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B")


class SoundingNote(NamedTuple):
    start: Fraction  # in whole notes, as is the length
    length: Fraction
    pitch: int  # as MIDI counts them: 60 is middle C


def check_tune(tune: Tune) -> tuple[str, ...]:
    """What is wrong with a tune, a sentence each: it cannot be read, a bar is not full, the end has no bar line.

    A bar may be short, but not long, where a section begins or ends: pick-ups, repeats, endings, double bars.
    """
    try:
        bars = parse_bars(tune)
    except DataError as error:
        return (str(error),)
    faults: list[str] = []
    for number, bar in enumerate(bars, 1):
        expected = None if bar.meter is None else bar.meter * bar.count
        excused = bar.opening.boundary or bar.closing.boundary
        if expected is None or bar.length == expected or (excused and bar.length < expected):
            continue
        faults.append(f"{tune.file}, line {bar.line}: bar {number} is {bar.length} long, but {expected} was expected")
    if not bars[-1].closing.text:
        faults.append(f"{tune.file}, line {bars[-1].line}: the tune ends without a bar line")
    return tuple(faults)


def play_bars(bars: Sequence[Bar]) -> Iterator[Bar]:
    """Bars in the order in which they sound: repeats twice, endings in their pass.

    A repeat goes back to where it was opened, else to the repeat's end or the double bar before, else to the start.
    """
    place = start = 0
    opened = False
    turn = 1
    ending: tuple[int, ...] = ()
    while place < len(bars):
        bar = bars[place]
        if bar.opening.opens and place != start:
            start, turn, opened, ending = place, 1, True, ()
        elif bar.opening.opens:
            opened = True
        if bar.opening.endings:
            ending = bar.opening.endings
        sounds = not ending or turn in ending
        if sounds:
            yield bar
        place += 1
        if sounds and bar.closing.repeats:
            if turn < _count_repeats(bars, start, place, bar.closing.repeats):
                place, turn, ending = start, turn + 1, ()
            else:
                start, turn, opened, ending = place, 1, False, ()
        elif bar.closing.repeats:  # the end of an ending that belongs to another pass
            ending = ()
        elif sounds and bar.closing.double and (ending or not opened):
            start, turn, opened, ending = place, 1, False, ()


def _count_repeats(bars: Sequence[Bar], start: int, end: int, repeats: int) -> int:
    """How often the section from `start` is played: as often as it has endings, those behind `end` among them."""
    last = 0
    for place in range(start, len(bars)):
        opening = bars[place].opening
        if place >= end and (opening.opens or (opening.endings and opening.endings[0] <= last)):
            break
        last = max([last, *opening.endings])
    return min(max(last, repeats + 1), MOST_PASSES)


def list_sounds(tune: Tune) -> tuple[SoundingNote, ...]:
    """Every pitch with its time, repeats played, tied notes as one."""
    sounds: list[SoundingNote] = []
    tied: dict[int, int] = {}  # pitch to its place in `sounds`, for notes that the next one may go on
    now = Fraction(0)
    for bar in play_bars(parse_bars(tune)):
        for note in bar.notes:
            places: dict[int, int] = {}
            for pitch in note.pitches:
                place = tied.get(pitch)
                if place is None:
                    place = len(sounds)
                    sounds.append(SoundingNote(now, note.length, pitch))
                else:
                    sounds[place] = sounds[place]._replace(length=sounds[place].length + note.length)
                places[pitch] = place
            tied = places if note.tied else {}
            now += note.length
    return tuple(sounds)


def compute_whole_note_seconds(tune: Tune) -> float:
    """How long a whole note lasts by the header's tempo (Q:)."""
    try:
        unit = parse_unit(tune.field("L")) if tune.field("L") else choose_default_unit(parse_meter(tune.field("M")))
        return float(60 / parse_tempo(tune.field("Q"), unit))
    except ValueError as error:
        raise DataError(str(error), tune.file, tune.line) from None


def make_piano_roll(tune: Tune) -> list[dict[str, float | int | str]]:
    """A row a sound for a chart: start and end in quarter notes, the pitch, and what the note is called."""
    return [
        {
            "start": float(4 * sound.start),
            "end": float(4 * (sound.start + sound.length)),
            "pitch": sound.pitch,
            "note": f"{LETTERS[sound.pitch % 12]}{sound.pitch // 12 - 1}",
        }
        for sound in list_sounds(tune)
    ]
