"""Sound files and their log-mel frames, held against torch.stft, closed formulas and the standard library."""

import wave
from functools import partial

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.data.datasets import open_dataset
from seqloom.data.formats import sounds
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.log_mel import FLOOR, LogMel, LogMelSettings, convert_from_mel, resample, to_mel
from seqloom.errors import DataError, RecipeError
from seqloom.tasks import declare
from tests.preparing import prepare_task

soundfile = pytest.importorskip("soundfile", reason="the extra sound is not installed")

RATE = 8000
SETTINGS = LogMelSettings(RATE, 20, 32.0, 10.0)
HOW = ("data.train=t.csv", "data.source_type=sound", "data.source=file", "data.target=said", f"data.sample_rate={RATE}")


def tone(frequency, seconds=0.2, rate=RATE):
    return 0.5 * np.sin(2 * np.pi * frequency * np.arange(int(seconds * rate)) / rate)


def rows_of(*more, task="seq2seq"):
    recipe, skipped = Recipe.of({"task": task}).override(*HOW, *more), SkippedRows()
    return list(open_dataset(declare(recipe).schema).read("train", skipped)), skipped


def refusal(*more, task="seq2seq"):
    with pytest.raises(DataError) as caught:
        rows_of(*more, task=task)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two tones of four files, named by a table."""
    monkeypatch.chdir(tmp_path)
    lines = ["file,said"]
    for number, frequency in enumerate((300, 900, 300, 900)):
        name = f"{number}.{'flac' if number % 2 else 'wav'}"
        soundfile.write(name, tone(frequency, 0.1 + 0.05 * number), RATE)
        lines.append(f"{name},{'high' if frequency > 500 else 'low'}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


# --- frames ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [SETTINGS, LogMelSettings(16000, 40, 25.0, 10.0), LogMelSettings(11025, 7, 9.0, 9.0)]
)
def test_frames_are_those_of_torch(settings):
    samples = np.random.default_rng(0).uniform(-1, 1, 3000)
    mel = LogMel(settings)
    window = torch.zeros(mel.bins, dtype=torch.float64)
    window[: mel.span] = torch.hann_window(mel.span, dtype=torch.float64)
    found = mel.frames(samples)
    padded = np.pad(samples, (0, mel.bins + mel.hop))
    theirs = torch.stft(
        *(torch.from_numpy(padded), mel.bins, mel.hop), window=window, center=False, return_complex=True
    )
    power = theirs.abs().numpy().T[: len(found)] ** 2 / float(window.sum()) ** 2
    np.testing.assert_allclose(found, np.log(power @ mel.filters + FLOOR), atol=1e-4)
    assert mel.hop * (len(found) - 1) + mel.span >= len(samples) > mel.hop * (len(found) - 2) + mel.span


@pytest.mark.parametrize("frequency", [150, 440, 1000, 2500, 3700])
def test_the_power_of_a_tone_is_in_the_band_that_contains_it(frequency):
    found = LogMel(SETTINGS).frames(tone(frequency)).mean(0).argmax()
    corners = convert_from_mel(np.linspace(0, to_mel(RATE / 2), SETTINGS.bands + 2))
    assert corners[found] < frequency < corners[found + 2]


def test_the_bands_between_the_first_and_the_last_share_every_frequency():
    mel = LogMel(SETTINGS)
    corners = convert_from_mel(np.linspace(0, to_mel(RATE / 2), SETTINGS.bands + 2))
    inside = (np.fft.rfftfreq(mel.bins, 1 / RATE) > corners[1]) & (np.fft.rfftfreq(mel.bins, 1 / RATE) < corners[-2])
    np.testing.assert_allclose(mel.filters[inside].sum(1), 1)


def test_a_sound_shorter_than_a_frame_is_one_frame_and_silence_has_the_floor():
    mel = LogMel(SETTINGS)
    assert mel.frames(np.ones(3)).shape == (1, 20)
    np.testing.assert_allclose(mel.frames(np.zeros(600)), np.log(FLOOR), rtol=1e-6)


@pytest.mark.parametrize(("rate", "wanted"), [(44100, 8000), (8000, 16000), (11025, 8000), (8001, 7999)])
def test_a_resampled_tone_is_the_tone_at_that_rate_and_what_is_too_high_for_it_is_gone(rate, wanted):
    found, true = resample(tone(700, 0.3, rate), rate, wanted), tone(700, 0.3, wanted)
    inner = slice(100, min(len(found), len(true)) - 100)
    np.testing.assert_allclose(found[inner], true[inner], atol=2e-3)
    assert abs(len(found) - len(true)) <= 1
    if rate > 2 * wanted:
        assert np.abs(resample(tone(wanted * 0.7, 0.3, rate), rate, wanted)[inner]).max() < 1e-2


def test_settings_that_make_no_frames_are_refused():
    with pytest.raises(RecipeError, match="more than a frame of 5 ms can tell apart"):
        LogMel(LogMelSettings(RATE, 100, 5.0, 5.0)).frames(np.zeros(100))
    with pytest.raises(RecipeError, match="fewer than 2 samples"):
        LogMel(LogMelSettings(100, 2, 1.0, 1.0))
    with pytest.raises(RecipeError, match="never be read"):
        Recipe.of({"task": "seq2seq"}).override("data.source_type=sound", "data.frame_hop=30")
    with pytest.raises(RecipeError, match='only .*data.source_type "sound"'):
        Recipe.of({"task": "classify"}).override("data.mel_bands=30")


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_waves_of_every_width_are_read_as_the_standard_library_wrote_them(tmp_path, width):
    whole = np.rint(tone(440) * (2 ** (8 * width - 1) - 1)).astype(np.int64)
    stored = whole + 128 if width == 1 else whole  # bytes are unsigned
    with wave.open(str(tmp_path / "a.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(width)
        out.setframerate(RATE)
        out.writeframes(stored.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes())
    samples, rate = sounds.read_samples(tmp_path / "a.wav")
    assert rate == RATE and samples.shape == (len(whole), 1)
    np.testing.assert_allclose(samples[:, 0], whole / 2 ** (8 * width - 1), atol=1e-6)


def test_a_table_names_wav_and_flac_files(folder):
    rows, skipped = rows_of()
    assert [said for _, said in rows] == ["low", "high", "low", "high"] and not skipped.notes
    for (frames, _), (frequency, seconds) in zip(rows, [(300, 0.1), (900, 0.15), (300, 0.2), (900, 0.25)], strict=True):
        expected = LogMel(LogMelSettings(RATE, 40, 25.0, 10.0)).frames(tone(frequency, seconds))
        np.testing.assert_allclose(frames.mean(0), expected.mean(0), atol=0.1)
    (folder / "elsewhere").mkdir()
    (folder / "t.csv").rename(folder / "elsewhere" / "t.csv")
    again, _ = rows_of("data.train=elsewhere/t.csv", f"data.sounds={folder}")
    np.testing.assert_array_equal(again[3][0], rows[3][0])


def test_channels_are_averaged_and_rates_changed_and_that_is_said(folder):
    both = np.stack([tone(300, 0.3, 16000), np.zeros(4800)], 1)
    soundfile.write("0.wav", both, 16000)
    rows, skipped = rows_of()
    half = LogMel(LogMelSettings(RATE, 40, 25.0, 10.0)).frames(tone(300, 0.3) / 2)
    assert np.abs(rows[0][0] - half)[2:-2, :20].max() < 0.2
    assert skipped.unique_notes() == (
        "sounds of 2 channels are read as their mean",
        "sounds of 16000 samples a second are resampled to 8000 (data.sample_rate)",
    )


def test_files_that_cannot_be_read_are_refused_with_their_line_or_counted(folder, monkeypatch):
    whole = (folder / "1.flac").read_bytes()
    faults = {
        "cannot be read as a sound": partial((folder / "1.flac").write_bytes, b"no sound at all"),
        "has 0 samples": partial(soundfile.write, "1.flac", np.zeros(0), RATE, format="WAV"),
        "holds AIFF": partial(soundfile.write, "1.flac", tone(300), RATE, format="AIFF"),
        "not numbers": partial(soundfile.write, "1.flac", np.full(9, np.nan), RATE, "FLOAT", format="WAV"),
        "there is no sound file '1.flac'": (folder / "1.flac").unlink,
    }
    for sentence, spoil in faults.items():
        spoil()
        assert sentence in (said := refusal()) and said.startswith("t.csv, line 3: ")
        rows, skipped = rows_of("data.on_bad_row=skip")
        assert len(rows) == 3 and skipped.counts.total() == 1
    (folder / "1.flac").write_bytes(whole[: len(whole) // 2])
    assert refusal().startswith("t.csv, line 3: '1.flac' ")
    (folder / "1.flac").write_bytes(whole)
    monkeypatch.setattr(sounds, "MOST_SECONDS", 0.12)
    assert "'1.flac' lasts 0 seconds, but sounds are read up to" in refusal()
    (folder / "t.csv").write_text("file,said\n../secret.wav,low\n")
    assert "leads out of the folder of sounds" in refusal()


def test_a_sound_file_that_changes_is_read_again(folder):
    recipe = Recipe.of({"task": "seq2seq"}).override(*HOW, "data.validation_share=0.25", "data.test_share=0.25")
    before = open_dataset(declare(recipe).schema).content()
    assert open_dataset(declare(recipe).schema).content() == before
    soundfile.write("2.wav", tone(500), RATE)
    assert open_dataset(declare(recipe).schema).content() != before


def test_folders_of_sounds_are_classes(folder):
    for label, number in (("low", 0), ("high", 1)):
        (folder / "tones" / label).mkdir(parents=True)
        name = f"{number}.{'flac' if number else 'wav'}"
        (folder / name).rename(folder / "tones" / label / name)
    how = ("data.train=tones", "data.source=source", "data.target=target")
    rows, _ = rows_of(*how, task="classify")
    assert [label for _, label in rows] == ["high", "low"]
    (folder / "tones" / "low" / "b.wav").write_bytes(b"nothing")
    assert "b.wav: 'b.wav' cannot be read as a sound" in refusal(*how, task="classify")
    recipe = Recipe.of({"task": "classify"}).override("data.train=tones")
    with pytest.raises(DataError, match="data.source_type=sound reads sounds"):
        list(open_dataset(declare(recipe).schema).read("train", SkippedRows()))


def test_sounds_are_no_texts_numbers_or_several_columns(folder):
    (folder / "p.ts").write_text("@univariate true\n@classLabel true a b\n@data\n1,2:a\n")
    assert "a table that names sound files" in refusal("data.train=p.ts")
    with pytest.raises(RecipeError, match="one column names the sound files"):
        rows_of("data.source=file,said2")


def test_too_long_sounds_are_dropped_and_counted(folder):
    parts = ("data.max_length=14", "data.validation=t.csv", "data.test=t.csv")
    recipe = Recipe.of({"task": "seq2seq"}).override(*HOW, *parts)
    _, prepared = prepare_task(recipe, note=lambda line: None)
    assert (prepared.report.splits["train"].examples, prepared.report.splits["train"].dropped) == (2, 2)
