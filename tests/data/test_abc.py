"""ABC music: collections, what notes mean, whether bars are full, what is played, and the files made of it."""

import gzip
import sys
import wave
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats.abc import parse_tune, read_abc
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.music.abc_parser import parse_bars
from seqloom.data.music.abc_playback import check_tune, list_sounds, make_piano_roll
from seqloom.data.music.sound import RATE, synthesize_tune, write_midi, write_wav
from seqloom.errors import DataError, MissingExtra


def tune(body: str, key: str = "C", meter: str = "4/4", unit: str = "1/8", more: str = ""):
    return parse_tune(f"X:1\nT:Test\n{more}M:{meter}\nL:{unit}\nK:{key}\n{body}\n")


def pitches(body: str, key: str = "C") -> list[int]:
    return [pitch for bar in parse_bars(tune(body, key)) for note in bar.notes for pitch in note.pitches]


def lengths(body: str, meter: str = "4/4", unit: str = "1/8") -> list[Fraction]:
    """In eighth notes."""
    return [8 * note.length for bar in parse_bars(tune(body, meter=meter, unit=unit)) for note in bar.notes]


def order(body: str) -> str:
    """The letters in the order in which they are played."""
    return "".join("CDEFGAB"["CDEFGAB".index(row["note"][0])] for row in make_piano_roll(tune(body, meter="none")))


# --- collections ---------------------------------------------------------------------------------------------------

BOOK = (
    "% a book\nsome text\n\nX:1\nT:One\nM:6/8\nK:G\nGAB|\nc3|\n\nmore\n\nX:2\nT:Two % really\nK:Am\nA|\nX:3\nK:\nz|\n"
)


def test_tunes_are_found_with_their_fields_body_and_line(tmp_path):
    (tmp_path / "b.abc.gz").write_bytes(gzip.compress(BOOK.encode()))
    one, two, three = read_abc(str(tmp_path / "b.abc.gz"), SkippedRows())
    assert one.fields == (("X", "1"), ("T", "One"), ("M", "6/8"), ("K", "G")) and one.body == "GAB|\nc3|"
    assert (one.line, one.body_line, two.line, three.line) == (4, 8, 13, 17)
    assert two.field("T") == "Two" and two.field("M") == "" and three.body == "z|"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        ("K:C\nABC|\n", "is empty"),
        ("X:1\nT:no key\n", "line 1: the tune has no line K:"),
        ("X:1\nK:C\n\nABC|\n", "line 1: the tune ends behind its header"),
        ("X:1\nABc|\nK:C\nA|\n", "line 2: a header field such as T: or K: was expected, not 'ABc|'"),
    ],
)
def test_what_is_no_tune_is_refused(text, part):
    with pytest.raises(DataError) as caught:
        parse_tune(text)
    assert part in str(caught.value)


# --- pitches -------------------------------------------------------------------------------------------------------

MAJOR = [2, 2, 1, 2, 2, 2, 1]
TURN = {
    "ion": 0,
    "Dorian": 1,
    "phr": 2,
    "lydian": 3,
    "Mix": 4,
    "mixolydian": 4,
    "min": 5,
    "m": 5,
    "Aeolian": 5,
    "loc": 6,
}


@pytest.mark.parametrize("mode", ["", " major", *(" " + mode if len(mode) > 1 else mode for mode in TURN)])
@pytest.mark.parametrize("tonic", ["C", "D", "E", "F", "G", "A", "B", "Bb", "Eb", "F#", "C#"])
def test_every_mode_on_every_tonic_has_its_steps(tonic, mode):
    turn = TURN.get(mode.strip(), 0)
    letters = "CDEFGAB"
    start = letters.index(tonic[0])
    notes = [letters[(start + step) % 7] + "'" * ((start + step) // 7) for step in range(8)]
    try:
        found = pitches("".join(notes) + "|", tonic + mode)
    except DataError as error:
        assert "more than seven accidentals" in str(error)
        return
    assert np.diff(found).tolist() == MAJOR[turn:] + MAJOR[:turn]
    assert found[0] == 60 + [0, 2, 4, 5, 7, 9, 11][start] + {"#": 1, "b": -1}.get(tonic[1:], 0)


def test_octaves():
    assert pitches("C,,C,Cc c'c''|A") == [36, 48, 60, 72, 84, 96, 69]


def test_accidentals_last_to_the_end_of_the_bar_in_every_octave():
    assert pitches("^FFf=FF|F ^^F __B =B|", "D") == [66, 66, 78, 65, 65, 66, 67, 69, 71]


def test_a_tie_carries_an_accidental_over_the_bar_line():
    assert pitches("^c-|cc|") == [73, 73, 72]


def test_a_key_may_be_altered_and_may_change():
    assert pitches("FBC|", "D phr ^f") == [66, 70, 60]
    assert pitches("FC|", "D exp ^f") == [66, 60]
    assert pitches("F[K:G]F|\nK:F\nB|") == [65, 66, 70]
    assert pitches("FC|", "HP") == [66, 61] and pitches("F|", "none") == [65] and pitches("F|", "G clef=bass") == [66]


# --- lengths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("A A2 A3/2 A/ A/2 A// A/4 A3/", [1, 2, 1.5, 0.5, 0.5, 0.25, 0.25, 1.5]),
        ("A>B A<B A>>B A<<<B", [1.5, 0.5, 0.5, 1.5, 1.75, 0.25, 0.125, 1.875]),
        ("A2>B2 A > B", [3, 1, 1.5, 0.5]),
        ("(3ABc d", [Fraction(2, 3)] * 3 + [1]),
        ("(2AB (4ABcd", [1.5, 1.5] + [0.75] * 4),
        ("(5ABcde (3:2:2AB c (3::2ABc", [0.4] * 5 + [Fraction(2, 3)] * 2 + [1] + [Fraction(2, 3)] * 2 + [1]),
        ("(3A2B2c2", [Fraction(4, 3)] * 3),
        ("[CEG]2 [C2E2] [C/E/G/]4", [2, 2, 2]),
        ("z x2|Z|Z2|", [1, 2, 8, 16]),
        ('"Am"A {gab}B !trill!c ~d .e +fermata+f (ab) `g y2 T$A\\', [1] * 10),
        ("A%comment 8 A\nB", [1, 1]),
    ],
)
def test_lengths(body, expected):
    assert [float(found) for found in lengths(body)] == pytest.approx([float(value) for value in expected])


@pytest.mark.parametrize(("meter", "unit"), [("2/4", "1/16"), ("6/8", "1/8"), ("C|", "1/8"), ("none", "1/8")])
def test_without_a_unit_the_meter_says_it(meter, unit):
    [bar] = parse_bars(parse_tune(f"X:1\nM:{meter}\nK:C\nA|"))
    assert bar.length == Fraction(unit)


def test_five_in_a_bracket_take_the_time_of_three_in_compound_meters():
    assert sum(lengths("(5ABcde", meter="6/8")) == 3 and sum(lengths("(5ABcde", meter="2/4")) == 2


def test_fields_within_the_music():
    assert lengths("A[L:1/4]A|[M:3/4]A3|\nL:1/16\nA|\nw:no music\n") == [1, 2, 6, 0.5]
    assert [bar.meter for bar in parse_bars(tune("A8|[M:3/4]A6|\nM:C|\nA8|"))] == [1, Fraction(3, 4), 1]


# --- bars, repeats, endings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("A|B|", "AB"),
        ("|:A|B:|C|", "ABABC"),
        ("A|B:|C|D:|", "ABABCDCD"),
        ("A|:B:|C|", "ABBC"),
        ("|:A::B:|", "AABB"),
        ("|:A:||:B:|", "AABB"),
        ("|:A:|\n|:B:|\n", "AABB"),
        ("|:A:|!\n|:B:|!\n", "AABB"),
        ("|:A|1B:|2C|]D|", "ABACD"),
        ("|:A|[1B:|[2C||D|", "ABACD"),
        ("|:A [1 B :| [2 C |]", "ABAC"),
        ("|:A|1B:|2C:|D|", "ABACD"),
        ("|:A|1,3B:|2C:|", "ABACAB"),
        ("|:A|1-2B:|3C|]", "ABABAC"),
        ("A||B:|", "ABB"),
        ("|:A||B:|", "ABAB"),
        ("|:A|1B:|2C||:D|1E:|2F|]", "ABACDEDF"),
        ("|::A::|B|", "AAAB"),
        ("|:A|1B:|2C||D:|E|", "ABACDDE"),
        ("|:A|1B:|C|", "ABAC"),
    ],
)
def test_repeats_and_endings_are_played(body, expected):
    assert order(body) == expected


def test_tied_notes_sound_once():
    sounds = list_sounds(tune("A2-A2 [CE]2-[C2G]|c4-|c4-d4|"))
    found = [(float(8 * sound.start), float(8 * sound.length), sound.pitch) for sound in sounds]
    assert found == [(0, 4, 69), (4, 4, 60), (4, 2, 64), (6, 2, 67), (8, 8, 72), (16, 4, 74)]


FULL = "A2B2c2d2|"


@pytest.mark.parametrize(
    "body",
    [
        FULL + "e8|]",
        "AB|" + FULL + "c6:|",
        "AB|" + FULL + "c6:|\ncd|" + FULL + "e6||",
        "|:" + FULL + "[1 A6:|[2 A8|]",
        FULL + "(3ABcd2>e2f2|Z2|" + FULL,
        "[M:3/4]A6|A6|",
        FULL + "A4||A4|" + FULL,
    ],
)
def test_full_bars_pass_and_so_do_short_ones_at_the_edges_of_sections(body):
    assert check_tune(tune(body)) == ()


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (FULL + "A7|" + FULL, "line 6: bar 2 is 7/8 long, but 1 was expected"),
        (FULL + "\n" + FULL + "A9|" + FULL, "line 7: bar 3 is 9/8 long"),
        (FULL + "A9:|", "bar 2 is 9/8"),
        (FULL + "A8", "line 6: the tune ends without a bar line"),
        (FULL + "?A7|", "'?A7|' cannot be read as music"),
        ("A>|B|", "a broken rhythm has no note behind it"),
        (">A|", "a broken rhythm has no note before it"),
        ("A>", "a broken rhythm has no note behind it"),
        ("-A|", "a tie has no note before it"),
        ("A0|", "a note has no length"),
        ("A//3|", "the length '//3' cannot be read"),
        ("A12345678|", "cannot be read as music"),
        ("A Z|", "does not stand alone"),
        ("c'''''|", "too high"),
        ("[M:x]A|", "the meter 'x' cannot be read"),
        ("[L:1/0]A|", "the unit length '1/0' cannot be read"),
        ("[K:H]A|", "the key 'H' cannot be read"),
        ("[K:C jolly]A|", "there is no mode 'jolly'"),
        ("||", "the tune has no notes"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(body, part):
    found = check_tune(tune(body))
    assert len(found) == 1 and part in found[0]


def test_a_bracket_that_is_never_closed_takes_no_time():
    assert "cannot be read" in check_tune(tune("[" + "A111" * 5000))[0]


@given(st.text("ABcdz|:[]()1234/>-<'^_=,\"!{}KML \n\\%", max_size=60))
def test_any_music_is_played_or_refused_in_a_sentence(body):
    text = "X:1\nM:4/4\nK:D\n" + body
    try:
        found = parse_tune(text)
    except DataError:
        return
    problems = check_tune(found)
    try:
        sounds = list_sounds(found)
    except DataError as error:
        assert problems == (str(error),)
        return
    assert all(sound.length > 0 and 0 <= sound.pitch <= 127 for sound in sounds)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_tunes_or_a_sentence(tmp_path_factory, raw, skip):
    path = tmp_path_factory.mktemp("abc") / "a.abc"
    path.write_bytes(b"X:1\nK:C\n" + raw)
    try:
        for found in read_abc(str(path), SkippedRows(), skip=skip):
            check_tune(found)
    except DataError as error:
        assert str(error).startswith(str(path))


def test_nearly_all_real_tunes_pass_and_those_that_do_not_are_wrong(shared_data):
    skipped = SkippedRows()
    tunes = list(read_abc(str(shared_data / "irish_abc/irish.abc.gz"), skipped, skip=True))
    assert len(tunes) == 802 and skipped.counts == {"no music": 2}
    passing = [not check_tune(found) for found in tunes]
    assert 0.97 <= np.mean(passing) < 0.99


# --- sound ---------------------------------------------------------------------------------------------------------


def test_midi_has_the_notes_at_their_times(tmp_path):
    import mido

    found = tune("|:[CE]2 z2 (3GAB c2:|", more="Q:1/4=90\n")
    write_midi(found, tmp_path / "a.mid")
    file = mido.MidiFile(tmp_path / "a.mid")
    now, starts, open_notes, rows = 0.0, {}, [], []
    for message in file:  # in seconds
        now += message.time
        if message.type == "note_on" and message.velocity:
            starts[message.note] = now
            open_notes.append(message.note)
        elif message.type in ("note_on", "note_off"):
            rows.append((starts.pop(message.note), now, message.note))
    quarter = 60 / 90
    expected = [(row["start"] * quarter, row["end"] * quarter, row["pitch"]) for row in make_piano_roll(found)]
    np.testing.assert_allclose(sorted(rows), sorted(expected), atol=2e-3)
    assert len(open_notes) == 12 and not starts


def test_a_wave_file_holds_the_pitch_that_is_written(tmp_path):
    found = tune("A8|", more="Q:1/4=60\n")
    write_wav(found, tmp_path / "a.wav")
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert 4 * RATE < len(samples) < 4.2 * RATE and 20000 < np.abs(samples).max() < 32767
    strongest = np.argmax(np.abs(np.fft.rfft(samples))) * RATE / len(samples)
    assert strongest == pytest.approx(440, abs=0.5)


def test_a_rest_is_silent_and_a_tune_of_hours_is_refused():
    samples = synthesize_tune(tune("A4 z4 A4|", more="Q:1/4=60\n"))
    assert np.abs(samples[int(2.2 * RATE) : int(3.9 * RATE)]).max() == 0 and np.abs(samples).max() <= 1
    with pytest.raises(DataError, match="would last"):
        synthesize_tune(tune("A8|Z999|A8|"))


def test_without_mido_the_command_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mido", None)
    with pytest.raises(MissingExtra, match="seqloom\\[music\\]"):
        write_midi(tune("A|"), tmp_path / "a.mid")
