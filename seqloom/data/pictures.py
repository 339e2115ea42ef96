"""Sources that are images: kept as bytes, scaled as those of the training part are."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.arrays import Bytes
from seqloom.data.codec import Codec
from seqloom.data.ragged import Ragged
from seqloom.errors import DataError, RunError


class Pictures(Codec):
    """Images of one size; an example has one, as an element of shape (height, width, channels)."""

    kind = "image"
    dtype = np.dtype(np.uint8)

    def __init__(self, shape: Sequence[int], mean: Sequence[float], spread: Sequence[float]) -> None:
        height, width, channels = shape
        self.shape = (height, width, channels)
        self.mean, self.spread = (np.array(values, dtype=np.float32) for values in (mean, spread))  # of each channel

    @classmethod
    def learn(cls, images: Iterator[Bytes]) -> "Pictures":
        shape: tuple[int, ...] = (1, 1, 1)
        count, total, squares = 0, np.zeros(1), np.zeros(1)
        for [image] in images:
            shape, pixels = image.shape, image.reshape(-1, image.shape[-1]) / 255
            count, total, squares = count + len(pixels), total + pixels.sum(0), squares + (pixels**2).sum(0)
        mean = total / max(count, 1)
        spread = np.sqrt(np.maximum(squares / max(count, 1) - mean**2, 0))
        return cls(shape, mean.tolist(), np.where(spread > 1e-6, spread, 1).tolist())

    @classmethod
    def read(cls, found: dict[str, Any]) -> "Pictures":
        shape, mean, spread = (found.get(key) for key in ("shape", "mean", "spread"))
        if (
            not (
                isinstance(shape, list) and len(shape) == 3 and all(isinstance(n, int) and 0 < n < 10**5 for n in shape)
            )
            or not (isinstance(mean, list) and isinstance(spread, list) and len(mean) == len(spread) == shape[2])
            or not all(isinstance(value, float) and abs(value) < 1e6 for value in (*mean, *spread))
            or not all(value > 0 for value in spread)
        ):
            raise RunError("the scale of the images is not a shape, and a mean and a spread above 0 for each channel")
        return cls(shape, mean, spread)

    def __len__(self) -> int:
        return self.shape[2]

    def encode_many(self, raws: Sequence[Any]) -> Ragged:
        images = [np.asarray(raw, dtype=np.uint8).reshape(1, *np.shape(raw)[-3:]) for raw in raws]
        for image in images:
            if image.shape[1:] != self.shape:
                size, wanted = ("×".join(map(str, shape)) for shape in (image.shape[1:], self.shape))
                raise DataError(f"an image is {size}, but this model sees {wanted}")
        return Ragged.stacked(images) if images else Ragged(np.empty((0, *self.shape), np.uint8), np.zeros(1, np.int64))

    def scaled(self, images: Bytes) -> NDArray[np.float32]:
        """Images (B, height, width, channels) as the network sees them: (B, channels, height, width)."""
        return np.moveaxis((images / np.float32(255) - self.mean) / self.spread, -1, 1).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        scale = {"mean": self.mean.tolist(), "spread": self.spread.tolist()}
        return {"kind": self.kind, "shape": list(self.shape)} | scale
