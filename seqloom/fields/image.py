"""Images that are read: kept as bytes, scaled as those of the training part are."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..arrays import Bytes
from ..config.recipe import Data, Model
from ..data.formats.folders import IMAGES
from ..data.formats.images import explain_no_image, fit_image, read_image, to_pixels
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..errors import DataError, RunError
from ..layers.embeddings import PatchEmbedding
from .base import ArrayField, Body, Rows


class ImageField(ArrayField):
    """A raw value is an image, (height, width, channels) of bytes, or with an axis of 1 in front."""

    is_image = True
    endings = IMAGES

    @classmethod
    def check(cls, raw: Raw) -> str:
        return explain_no_image(raw)

    @classmethod
    def convert(cls, value: Any) -> Raw:
        """An image of Pillow, or an array, as bytes with an axis of 1 in front."""
        value = np.asarray(value.convert("RGB")) if hasattr(value, "getbands") else value
        return value if cls.check(value) else to_pixels(value)[None]

    def describe(self, raw: Raw) -> str:
        return "a picture"

    def picture(self, raw: Raw) -> Bytes:
        return to_pixels(raw)


class Image(ImageField):
    """Images of one size; an example has one, as an element of shape (height, width, channels)."""

    kind = "image"
    dtype = np.dtype(np.uint8)

    def __init__(self, shape: Sequence[int], mean: Sequence[float], spread: Sequence[float]) -> None:
        height, width, channels = shape
        self.shape = (height, width, channels)
        self.mean, self.spread = (np.array(values, dtype=np.float32) for values in (mean, spread))  # of each channel

    @classmethod
    def fit(cls, raws: Iterator[Bytes], settings: Data) -> Self:
        shape: tuple[int, ...] = (1, 1, 1)
        count, total, squares = 0, np.zeros(1), np.zeros(1)
        for [image] in raws:
            shape, pixels = image.shape, image.reshape(-1, image.shape[-1]) / 255
            count, total, squares = count + len(pixels), total + pixels.sum(0), squares + (pixels**2).sum(0)
        mean = total / max(count, 1)
        spread = np.sqrt(np.maximum(squares / max(count, 1) - mean**2, 0))
        return cls(shape, mean.tolist(), np.where(spread > 1e-6, spread, 1).tolist())

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        shape, mean, spread = (values.get(key) for key in ("shape", "mean", "spread"))
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

    def accept(self, raw: Any) -> Bytes:
        """An image of any size: a file's name, an image of Pillow, an array of bytes or of fractions up to 1; cut and
        resized to those of training."""
        if not self.check(raw) and (pixels := to_pixels(raw)).shape == self.shape:
            return pixels[None]
        height, width, channels = self.shape
        return fit_image(read_image(raw), (height, width, channels))[None]

    def is_one(self, raw: Any) -> bool:
        """A list holds several, unless it is one of numbers."""
        if isinstance(raw, list) and raw and (hasattr(raw[0], "__array__") or isinstance(raw[0], str)):
            return False
        return hasattr(raw, "getbands") or not self.check(raw)

    def encode_many(self, raws: Sequence[Any]) -> Ragged:
        images = [self.picture(raw)[None] for raw in raws]
        for image in images:
            if image.shape[1:] != self.shape:
                size, expected = ("×".join(map(str, shape)) for shape in (image.shape[1:], self.shape))
                raise DataError(f"an image is {size}, but this model sees {expected}")
        return Ragged.stack(images) if images else Ragged(np.empty((0, *self.shape), np.uint8), np.zeros(1, np.int64))

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        return PatchEmbedding(len(self), model.patch, model.embedding)

    def lengths(self, encoded: Ragged, model: Model) -> NDArray[np.int64]:
        return np.full(len(encoded), self.patches(model), dtype=np.int64)

    def patches(self, model: Model) -> int:
        """How many patches an image has."""
        height, width, _ = self.shape
        return -(-height // model.patch) * -(-width // model.patch)

    def collate(self, encoded: Ragged, rows: Rows, model: Model) -> tuple[Tensor, Tensor]:
        images = torch.from_numpy(self.scale_values(encoded.pad(rows)[0][:, 0]))
        return images, torch.ones(len(images), self.patches(model), dtype=torch.bool)

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        """The extent of the image and of its values, scaled as the network sees them."""
        scaled = self.scale_values(encoded)
        extent = " × ".join(map(str, self.shape))
        return [f"{extent} numbers from {scaled.min():.2f} to {scaled.max():.2f}"]

    def scale_values(self, images: Bytes) -> NDArray[np.float32]:
        """Images (B, height, width, channels) as the network sees them: (B, channels, height, width)."""
        return np.moveaxis((images / np.float32(255) - self.mean) / self.spread, -1, 1).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        scale = {"mean": self.mean.tolist(), "spread": self.spread.tolist()}
        return {"kind": self.kind, "shape": list(self.shape)} | scale
