"""Sound that is read: samples become log-mel frames, scaled as those of the training part are."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ..arguments import describe_value
from ..arrays import Singles
from ..config.recipe import Data, Model
from ..counts import format_count
from ..data.formats.lines import Fault
from ..data.formats.sounds import SOUNDS, SoundReading
from ..data.log_mel import LogMel, LogMelSettings
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..errors import DataError, RecipeError, RunError
from .base import ArrayField, Body, Rows, as_array
from .numbers import Numbers


class Sound(ArrayField):
    """A raw value is the samples (N,) of a sound at the rate of the recipe, or its frames (T, bands); only frames are
    kept. They are scaled as numbers are."""

    kind = "sound"
    endings = SOUNDS
    dtype = np.dtype(np.float32)

    def __init__(self, log_mel: LogMel, scale: Numbers) -> None:
        self.log_mel, self.scale = log_mel, scale
        self.shape = scale.shape

    @classmethod
    def fit(cls, raws: Iterator[Raw], settings: Data) -> Self:
        log_mel = LogMel(LogMelSettings.of(settings))
        return cls(log_mel, Numbers.fit((to_frames(raw, log_mel) for raw in raws), settings))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        scale, settings = Numbers.from_json(values), [values.get(name) for name in LogMelSettings._fields]
        if not all(isinstance(value, int | float) and 0 < value < 1e7 for value in settings) or settings[1] != len(
            scale
        ):
            raise RunError(
                "the frames of the source are not a rate, as many bands as the scale has, a length and a hop"
            )
        try:
            return cls(LogMel(LogMelSettings(*settings)), scale)  # type: ignore[arg-type]
        except RecipeError as error:
            raise RunError(f"the frames of the source do not fit: {error}") from None

    def to_json(self) -> dict[str, Any]:
        return {**self.scale.to_json(), "kind": self.kind, **self.log_mel.settings._asdict()}

    def __len__(self) -> int:
        return len(self.scale)

    @classmethod
    def check(cls, raw: Raw) -> str:
        array = as_array(raw)
        if array is None or array.ndim not in (1, 2):
            expected = "an array of samples, or of frames × bands"
            return f"is {describe_value(raw)}, but a sound was expected: {expected}; a table names files of sound"
        if array.ndim == 1 and not (np.abs(array) <= 1).all():
            return "is an array with samples that are not between -1 and 1, but a sound was expected"
        return "" if np.isfinite(array).all() else "holds something that is not a number"

    def accept(self, raw: Any) -> Singles:
        """A file's name, or an array of samples or frames."""
        if isinstance(raw, str | os.PathLike):
            path = Path(os.path.expanduser(raw))
            sound = SoundReading(self.log_mel, []).read(path.name, path.parent, str(path), 1)
            if isinstance(sound, Fault):
                raise DataError(f"an input is not a sound: {sound.sentence}")
            return sound
        return self.normalize(super().accept(raw))

    def is_one(self, raw: Any) -> bool:
        """A list of arrays or names holds several, as does an array of three axes."""
        if isinstance(raw, list) and raw and (hasattr(raw[0], "__array__") or isinstance(raw[0], str | Path)):
            return False
        array = as_array(raw)
        return array is not None and array.ndim < 3

    def normalize(self, raw: Raw) -> Singles:
        """Samples as frames; frames of another number of bands are refused."""
        frames = to_frames(raw, self.log_mel)
        if frames.shape[1] != len(self):
            raise DataError(
                f"a sound has frames of {format_count(frames.shape[1], 'band')}, but this model reads {len(self)}"
            )
        return frames

    def encode_many(self, raws: Sequence[Raw]) -> Ragged:
        return self.scale.encode_many([self.normalize(raw) for raw in raws])

    def describe(self, raw: Raw) -> str:
        settings, frames = self.log_mel.settings, len(self.normalize(raw))
        seconds = (settings.length + settings.hop * (frames - 1)) / 1000
        return f"{seconds:.2f} seconds of sound: {format_count(frames, 'frame')} of {format_count(len(self), 'band')}"

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        return self.scale.describe_encoded(encoded)

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        return self.scale.embedding(model, body)

    def features(self, model: Model) -> int:
        return self.scale.features(model)

    def collate(self, encoded: Ragged, rows: Rows, model: Model) -> tuple[Tensor, Tensor]:
        return self.scale.collate(encoded, rows, model)


def to_frames(raw: Raw, log_mel: LogMel) -> Singles:
    """The frames of samples; frames as they are."""
    array = np.asarray(raw, np.float32)
    return log_mel.frames(array) if array.ndim == 1 else array
