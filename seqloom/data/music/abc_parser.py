"""The music of an ABC tune as notes in bars: what the text means, not yet what is played.

Read are keys, accidentals (which last to the end of the bar, in every octave), octaves, lengths, broken rhythm,
tuplets, ties, chords, rests, bar lines with repeats and endings, fields on lines of their own and in brackets. Slurs,
grace notes, chord symbols, decorations and spacing are passed over. Lengths are fractions of a whole note.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from seqloom.data.formats.abc import FIELD, Tune
from seqloom.data.music.keys import ALTERATIONS, choose_default_unit, is_compound, parse_key, parse_meter, parse_unit
from seqloom.data.music.notation import Bar, BarLine, Note
from seqloom.errors import DataError

SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
MIDDLE_C = 60
LENGTH = r"(?P<times>[0-9]{0,3})(?P<slashes>/{0,6})(?P<parts>[0-9]{0,3})(?![0-9/])"
PITCH = re.compile(r"(\^\^|\^|__|_|=)?([A-Ga-g])([,']{0,5})")

# What can stand in a line of music, tried in this order.
TOKENS = [  # a chord is matched without going back, or a bracket that is never closed would take for ever
    ("field", re.compile(r"\[([A-Za-z]):([^\]\n]*)\]")),
    ("bar", re.compile(r"(:*)(\[\||\||(?<=:):|(?<!:)::)([|\]]*)(:*)(?:[ \t]*\[?([1-9](?:[,-][1-9])*)(?![0-9]))?")),
    ("ending", re.compile(r"\[([1-9](?:[,-][1-9])*)(?![0-9])")),
    (
        "ignored",
        re.compile(r'"[^"\n]*"|\{[^}\n]*\}|![A-Za-z0-9.+()<>]{1,20}!|\+[A-Za-z]{1,20}\+|[!\s`\\$~.HLMOPSTuv]|y[0-9]*'),
    ),
    ("tuplet", re.compile(r"\(([2-9])(?::([1-9]?)(?::([1-9]?))?)?")),
    ("ignored", re.compile(r"[()]")),
    (
        "chord",
        re.compile(r"\[((?:(?:\^\^|\^|__|_|=)?[A-Ga-g][,']{0,5}[0-9]{0,3}+/{0,6}+[0-9]{0,3}+-?\s*+)++)\]" + LENGTH),
    ),
    ("note", re.compile(r"(?P<pitch>(?:\^\^|\^|__|_|=)?[A-Ga-g][,']{0,5})" + LENGTH)),
    ("rest", re.compile(r"[zx]" + LENGTH)),
    ("bars", re.compile(r"[ZX]([0-9]{0,3})(?![0-9])")),
    ("tie", re.compile(r"-")),
    ("broken", re.compile(r"(>{1,3}|<{1,3})(?![<>])")),
]


@dataclass
class _State:
    """The state of the parser within a tune."""

    key: dict[str, int]
    meter_text: str
    meter: Fraction | None
    unit: Fraction
    unit_said: bool
    line: int
    bars: list[Bar] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    opening: BarLine = BarLine()
    bar_meter: Fraction | None = None
    bar_line: int = 0
    count: int = 1
    accidentals: dict[str, int] = field(default_factory=dict)  # of this bar, by letter
    held: dict[str, int] = field(default_factory=dict)  # pitches that a tie carries into this note, as written
    written: dict[str, int] = field(default_factory=dict)  # pitches of the last note, as written
    tuplet: tuple[Fraction, int] = (Fraction(1), 0)  # factor, and notes to come
    broken: Fraction | None = None  # factor of the next note


def parse_bars(tune: Tune) -> tuple[Bar, ...]:
    """The bars of a tune as written; DataError with the line if something cannot be read."""
    state: _State | None = None
    line = tune.line
    try:
        state = _make_state(tune)
        for text in tune.body.split("\n"):
            _read_line(state, text)
            state.line += 1
        state.line -= 1
        if state.broken is not None:
            raise ValueError("a broken rhythm has no note behind it")
        if state.notes:
            _close_bar(state, BarLine())
    except ValueError as error:
        raise DataError(str(error), tune.file, state.line if state else line) from None
    if not state.bars:
        raise DataError("the tune has no notes", tune.file, tune.line)
    return tuple(state.bars)


def _make_state(tune: Tune) -> _State:
    meter_text = tune.field("M")
    meter = parse_meter(meter_text)
    unit_text = tune.field("L")
    unit = parse_unit(unit_text) if unit_text else choose_default_unit(meter)
    return _State(parse_key(tune.field("K")), meter_text, meter, unit, bool(unit_text), tune.body_line, bar_meter=meter)


def _read_line(state: _State, text: str) -> None:
    text = text.partition("%")[0]
    if match := FIELD.fullmatch(text.rstrip()):
        _set_field(state, match[1], match[2])
        return
    if text.startswith("+:"):
        return
    place = 0
    while place < len(text):
        for name, pattern in TOKENS:
            if match := pattern.match(text, place):
                READERS[name](state, match)
                place = match.end()
                break
        else:
            raise ValueError(f"{text[place : place + 12]!r} cannot be read as music")


def _set_field(state: _State, letter: str, text: str) -> None:
    if letter == "K":
        state.key = parse_key(text)
    elif letter == "L":
        state.unit, state.unit_said = parse_unit(text), True
    elif letter == "M":
        state.meter_text, state.meter = text, parse_meter(text)
        if not state.unit_said:
            state.unit = choose_default_unit(state.meter)
        if not state.notes:
            state.bar_meter = state.meter


# --- bars --------------------------------------------------------------------------------------------------------


def _read_bar_line(state: _State, match: re.Match[str]) -> None:
    before, middle, behind, after, passes = match.groups()
    colons = middle == "::" or middle == ":"  # `::` without a stroke ends one repeat and begins the next
    line = BarLine(
        match[0].strip(),
        repeats=min(len(before) or int(colons), 8),
        opens=bool(after) or colons,
        endings=_parse_passes(passes or ""),
        double=bool(behind) or middle == "[|",
    )
    _close_bar(state, line)


def _read_ending(state: _State, match: re.Match[str]) -> None:
    _close_bar(state, BarLine(match[0], endings=_parse_passes(match[1])))


def _parse_passes(text: str) -> tuple[int, ...]:
    """1,3 or 1-3 as the numbers that are meant."""
    passes: set[int] = set()
    for part in text.split(",") if text else []:
        numbers = [int(number) for number in part.split("-")]
        passes.update(range(numbers[0], numbers[-1] + 1))
    return tuple(sorted(passes))


def _close_bar(state: _State, line: BarLine) -> None:
    """End the bar. Two bar lines with nothing between are one, as at the end of a line and the start of the next."""
    if state.broken is not None and line.text:
        raise ValueError("a broken rhythm has no note behind it")
    if not state.notes:
        line = _join_bar_lines(state.opening, line)
        if state.bars:
            state.bars[-1] = replace(state.bars[-1], closing=line)
    else:
        notes = tuple(state.notes)
        state.bars.append(Bar(notes, state.opening, line, state.bar_meter, state.count, state.bar_line))
    state.opening = line
    state.notes, state.count, state.bar_meter = [], 1, state.meter
    state.accidentals = {}


def _join_bar_lines(first: BarLine, second: BarLine) -> BarLine:
    return BarLine(
        f"{first.text}{second.text}",
        max(first.repeats, second.repeats),
        first.opens or second.opens,
        second.endings or first.endings,
        first.double or second.double,
    )


# --- notes -------------------------------------------------------------------------------------------------------


def _read_note(state: _State, match: re.Match[str]) -> None:
    written = {match["pitch"]: _parse_pitch(state, match["pitch"])}
    _add_note(state, written, state.unit * _parse_length(match))


def _read_chord(state: _State, match: re.Match[str]) -> None:
    """Notes at once; the first one's length is that of all, times what stands behind the bracket."""
    written: dict[str, int] = {}
    tied = "-" in match[1]
    inner: Fraction | None = None
    for pitch in re.finditer(r"(?P<pitch>(?:\^\^|\^|__|_|=)?[A-Ga-g][,']*)" + LENGTH, match[1]):
        inner = inner if inner is not None else _parse_length(pitch)
        written[pitch["pitch"]] = _parse_pitch(state, pitch["pitch"])
    assert inner is not None
    _add_note(state, written, state.unit * inner * _parse_length(match))
    if tied:
        _read_tie(state, match)


def _read_rest(state: _State, match: re.Match[str]) -> None:
    _add_note(state, {}, state.unit * _parse_length(match))


def _read_bar_rests(state: _State, match: re.Match[str]) -> None:
    if state.meter is None:
        raise ValueError("a rest of whole bars needs a meter")
    count = int(match[1] or 1)
    if state.notes or not count:
        raise ValueError(f"{match[0]!r} does not stand alone between bar lines")
    _add_note(state, {}, state.meter * count)
    state.count = count


def _add_note(state: _State, written: dict[str, int], length: Fraction) -> None:
    if not state.notes:
        state.bar_line = state.line
    factor, left = state.tuplet
    if left:
        length *= factor
        state.tuplet = (factor, left - 1)
    if state.broken is not None:
        length *= state.broken
        state.broken = None
    state.notes.append(Note(tuple(sorted(set(written.values()))), length, tied=False))
    state.written, state.held = written, {}


def _parse_length(match: re.Match[str]) -> Fraction:
    """`3`, `/2`, `3/4`, `/`, `//`: the number over the number, a bare stroke halving."""
    times = int(match["times"] or 1)
    strokes = len(match["slashes"])
    if match["parts"] and strokes != 1:
        raise ValueError(f"the length {match['slashes'] + match['parts']!r} cannot be read")
    parts = int(match["parts"]) if match["parts"] else 2**strokes
    if not times or not parts:
        raise ValueError("a note has no length")
    return Fraction(times, parts)


def _parse_pitch(state: _State, text: str) -> int:
    match = PITCH.fullmatch(text)
    assert match is not None
    sign, letter, marks = match.groups()
    name = letter.upper()
    if sign:
        state.accidentals[name] = ALTERATIONS[sign]
    elif text in state.held and name not in state.accidentals:
        return state.held[text]  # a tie carries an accidental over the bar line
    altered = state.accidentals.get(name, state.key.get(name, 0))
    octave = letter.islower() + marks.count("'") - marks.count(",")
    pitch = MIDDLE_C + SEMITONES[name] + altered + 12 * octave
    if not 0 <= pitch <= 127:
        raise ValueError(f"the note {text!r} is too high or too low to be played")
    return pitch


def _read_tuplet(state: _State, match: re.Match[str]) -> None:
    notes = int(match[1])
    usual = {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}.get(notes, 3 if is_compound(state.meter_text) else 2)
    time = int(match[2]) if match[2] else usual
    state.tuplet = (Fraction(time, notes), int(match[3]) if match[3] else notes)


def _read_tie(state: _State, match: re.Match[str]) -> None:
    """Tie the last note, which may be the last of the bar before."""
    if state.notes:
        state.notes[-1] = state.notes[-1]._replace(tied=True)
        bare = {text.lstrip("^_="): pitch for text, pitch in state.written.items()}
        state.held = bare
    elif state.bars:
        last = state.bars[-1]
        state.bars[-1] = replace(last, notes=(*last.notes[:-1], last.notes[-1]._replace(tied=True)))
    else:
        raise ValueError("a tie has no note before it")


def _read_broken_rhythm(state: _State, match: re.Match[str]) -> None:
    """Lengthen the last note by what the next one loses, or the other way round."""
    if not state.notes:
        raise ValueError("a broken rhythm has no note before it")
    short = Fraction(1, 2 ** len(match[1]))
    first, second = (2 - short, short) if ">" in match[1] else (short, 2 - short)
    state.notes[-1] = state.notes[-1]._replace(length=state.notes[-1].length * first)
    state.broken = second


def _ignore(state: _State, match: re.Match[str]) -> None:
    """Syntax that does not change the notes."""


READERS: dict[str, Callable[[_State, re.Match[str]], None]] = {
    "field": lambda state, match: _set_field(state, match[1], match[2]),
    "bar": _read_bar_line,
    "ending": _read_ending,
    "ignored": _ignore,
    "tuplet": _read_tuplet,
    "chord": _read_chord,
    "note": _read_note,
    "rest": _read_rest,
    "bars": _read_bar_rests,
    "tie": _read_tie,
    "broken": _read_broken_rhythm,
}
