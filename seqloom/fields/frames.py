"""Music as frames: which of a piano's keys sound at each step."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ..arguments import describe_value
from ..config.recipe import Data, Model, Recipe
from ..data.formats.chorales import HIGHEST, LOWEST
from ..data.frames import KEYS, Frame, FramePlaces
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..errors import DataError, RecipeError, RunError
from ..layers.embeddings import NoteEmbedding
from ..layers.heads import Bernoulli, Head
from .base import ArrayField, Body, as_array

BEFORE = 40  # frames that are read before one is asked for


class Frames(ArrayField):
    """Frames as they are: there is nothing to learn. Each key is predicted on its own, from all frames before."""

    kind = "frames"
    dtype = np.dtype(np.uint8)
    shape = (KEYS,)

    @classmethod
    def fit(cls, raws: Iterator[Raw], settings: Data) -> Self:
        return cls()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        if values.get("keys") != KEYS:
            raise RunError(f"the frames have {values.get('keys')!r:.20} keys, not {KEYS}")
        return cls()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "keys": KEYS}

    def __len__(self) -> int:
        return KEYS

    @classmethod
    def check(cls, raw: Raw) -> str:
        array = as_array(raw)
        if array is None or array.ndim != 2 or array.shape[1] != KEYS or not np.isin(array, (0, 1)).all():
            expected = f"an array of steps × {KEYS} keys, 1 where one sounds"
            return f"is {describe_value(raw)}, but frames were expected: {expected}"
        return ""

    def encode_many(self, raws: Sequence[Raw]) -> Ragged:
        return Ragged.stack(raws)

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        return [format_frame(frame) for frame in encoded]

    def prompt(self, raw: Raw) -> str:
        return "\n".join(map(format_frame, raw))

    def parse(self, text: str) -> Frame:
        return parse_frames(text)

    def beginnings(self, raw: Raw, at_most: int) -> Iterator[tuple[str, str]]:
        """The first half of a piece, and the frame that comes after it."""
        lines = [format_frame(frame) for frame in raw]
        half = len(lines) // 2
        yield "\n".join(lines[max(0, half - BEFORE) : half]), lines[half]

    def places(self, encoded: Ragged) -> FramePlaces:
        return FramePlaces(encoded)

    def embedding(self, model: Model, body: Body = "decoder") -> nn.Module:
        return NoteEmbedding(KEYS, model.embedding, model.side(body).dropout)

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        for name, value in (("model.tied", recipe.model.tied), ("train.label_smoothing", recipe.train.label_smoothing)):
            if value:
                raise RecipeError(f"{name} is for what chooses one of many, but here every key is predicted on its own")
        return Bernoulli(features, KEYS)


def format_frame(frame: NDArray[Any]) -> str:
    """A frame as a line of text: its pitches, or a dash."""
    return " ".join(str(LOWEST + key) for key in np.flatnonzero(frame)) or "-"


def parse_frames(text: str) -> Frame:
    """The frames of such lines; DataError if one is something else."""
    lines = text.strip().splitlines()
    frames = np.zeros((len(lines), KEYS), dtype=np.uint8)
    for number, line in enumerate(lines):
        for pitch in [] if line.strip() == "-" else line.split():
            if not pitch.isdecimal() or not LOWEST <= int(pitch) <= HIGHEST:
                expected = f"pitches from {LOWEST} to {HIGHEST}, or a dash for silence"
                raise DataError(f"line {number + 1}: {pitch[:20]!r} is none of what was expected: {expected}")
            frames[number, int(pitch) - LOWEST] = 1
    return frames
