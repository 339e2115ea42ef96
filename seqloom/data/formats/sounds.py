"""Sound files, .wav and .flac: read as one channel of samples at a chosen rate, and turned into frames."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.arrays import Doubles, Singles
from seqloom.data.formats.lines import Fault
from seqloom.data.log_mel import LogMel, resample
from seqloom.errors import DataError, MissingExtra

SOUNDS = frozenset([".wav", ".flac"])
FORMATS = ("WAV", "WAVEX", "RF64", "FLAC")  # by libsndfile's names
MOST_SECONDS = 3600  # of one file: more would not be one example
MOST_SAMPLES = 1 << 29  # of all channels: what memory a file may take


def is_sound(file: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is that of a sound."""
    return os.path.splitext(os.fspath(file))[1].lower() in SOUNDS


class SoundReading:
    """Reads sound files as frames. `notes` is told once of each thing that a file had to be changed in."""

    def __init__(self, log_mel: LogMel, notes: list[str]) -> None:
        self.log_mel, self.notes = log_mel, notes

    def read(self, name: str, root: Path, place: str, line: int) -> Singles | Fault:
        """The frames of a file that a table names, which lies in this folder."""
        path = Path(os.path.realpath(root / name))
        if not path.is_relative_to(os.path.realpath(root)):
            return Fault("outside", f"the name {name[:60]!r} leads out of the folder of sounds", place, line)
        if not path.is_file():
            return Fault("no sound", f"there is no sound file {name[:60]!r} in {root}", place, line)
        return self.read_file(path, place, line)

    def read_file(self, path: Path, place: str, line: int = 1) -> Singles | Fault:
        try:
            samples, rate = read_samples(path)
        except DataError as error:
            return Fault("no sound", f"{path.name[:60]!r} {error.sentence}", place, line)
        return self.log_mel.frames(self.unify(samples, rate))

    def unify(self, samples: NDArray[np.float32], rate: int) -> Doubles:
        """Samples (N, channels) as one channel of the wanted rate; what is changed is noted."""
        target_rate, channels = self.log_mel.settings.rate, samples.shape[1]
        if channels > 1:
            self.note(f"sounds of {channels} channels are read as their mean")
        if rate != target_rate:
            self.note(f"sounds of {rate} samples a second are resampled to {target_rate} (data.sample_rate)")
        return resample(samples.mean(1), rate, target_rate)

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def read_samples(path: Path) -> tuple[NDArray[np.float32], int]:
    """The samples (N, channels) of a file, between -1 and 1, and how many there are a second; a DataError ends a
    sentence that begins with the file's name."""
    try:
        import soundfile
    except ImportError:
        raise MissingExtra("soundfile", "sound") from None
    try:
        with soundfile.SoundFile(path) as file:
            rate, frames, channels = file.samplerate, file.frames, file.channels
            if file.format not in FORMATS:
                raise DataError(f"holds {file.format}, but WAV or FLAC was expected")
            if frames > MOST_SECONDS * rate or frames * channels > MOST_SAMPLES:
                raise DataError(
                    f"lasts {frames / rate:,.0f} seconds, but sounds are read up to {MOST_SECONDS:,} seconds and "
                    f"{MOST_SAMPLES:,} samples of all channels"
                )
            samples: Any = file.read(dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError, TypeError, ValueError) as error:
        reason = str(error).rpartition(": ")[2].strip(" .") or "it is damaged"  # what is before it names the file again
        raise DataError(f"cannot be read as a sound ({reason[:100]})") from None
    if not len(samples):
        raise DataError("holds no sound: it has 0 samples")
    if len(samples) < frames:
        raise DataError(f"is cut off: it says that it has {frames:,} samples, but there are {len(samples):,}")
    if not np.isfinite(samples).all():
        raise DataError("holds samples that are not numbers")
    return samples, rate
