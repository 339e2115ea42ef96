"""Images as sequences: squares row by row, each the most alike of those that were learned.

So an image is written like a text, one symbol after the other, by whatever writes symbols. The squares are found by
k-means (Lloyd, 1982; begun as Arthur and Vassilvitskii say, 2007). Knows no network and no file.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Bytes, Singles
from ..config.recipe import Data, Recipe
from ..data.ragged import Ragged
from ..data.vocabulary import SPECIALS
from ..errors import DataError, RunError
from ..search import BannedTokens, Hypothesis
from .base import Limits, Prediction, SymbolField
from .image import ImageField

DEFAULT_SIZE = 256  # squares, where nobody says how many
IMAGES, DIFFERENT = 8192, 1 << 16  # images, and different squares of theirs, that are learned from
ROUNDS = 15  # of k-means: after them hardly a square moves
AT_ONCE = 1 << 12  # squares whose distances are held together
LARGEST = 1 << 26  # numbers of an image
SHADES = " ░▒▓█"  # from dark to bright


@dataclass(frozen=True)
class ImagePrediction(Prediction):
    """A drawing in five shades, and as numbers; the score is that of its squares, as of the tokens of a text."""

    squares: list[str]
    pixels: list[Any]  # rows of pixels from 0 to 255, or of their colors

    @property
    def exact(self) -> str:
        """The squares by number: five shades do not tell which they are."""
        return " ".join(self.squares)


class ImageTokens(SymbolField, ImageField):
    """Images of one size, (height, width, channels), as squares of `side` pixels; those at the edge may reach over."""

    kind = "image tokens"
    dtype = np.dtype(np.uint16)

    def __init__(self, size: Sequence[int], side: int, squares: Bytes) -> None:
        self.size, self.side = tuple(size), side
        self.squares = squares  # (K, side · side · channels), no two alike
        self.symbols = (*SPECIALS, *map(str, range(len(squares))))

    @classmethod
    def fit(cls, raws: Iterator[Bytes], settings: Data) -> Self:
        side, most = settings.square, settings.vocabulary_size
        kept = _sample(image for [image] in raws)
        assert kept, "there are training examples"
        cut = np.concatenate([cut_up(image[None], side)[0] for image in kept])
        return cls(kept[0].shape, side, choose_typical(cut, min(most or DEFAULT_SIZE, 1 << 15)))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        size, side, written = (values.get(key) for key in ("size", "side", "squares"))
        try:
            height, width, channels = size  # type: ignore[misc]
            squares = np.array([list(bytes.fromhex(square)) for square in written], dtype=np.uint8)  # type: ignore[union-attr]
            whole = squares.shape == (len(squares), side * side * channels) and len(squares) <= 1 << 15  # type: ignore[operator]
            fits = all(isinstance(n, int) and 0 < n < 10**5 for n in (height, width, channels, side))
            fits = fits and height * width * channels <= LARGEST
        except (TypeError, ValueError):
            fits = whole = False
        if not fits or not whole or not len(squares) or len(np.unique(squares, axis=0)) < len(squares):
            raise RunError("the image tokens are not a size, a side, and different squares of that side")
        assert isinstance(side, int)
        return cls((height, width, channels), side, squares)

    @property
    def grid(self) -> tuple[int, int]:
        """How many squares an image has, down and across."""
        height, width, _ = self.size
        return -(-height // self.side), -(-width // self.side)

    @property
    def count(self) -> int:
        down, across = self.grid
        return down * across

    def encode_many(self, raws: Sequence[Any]) -> Ragged:
        """Images (1, height, width, channels), or without the first axis."""
        images = [self.picture(raw) for raw in raws]
        for image in images:
            if image.shape != self.size:
                size, expected = ("×".join(map(str, shape)) for shape in (image.shape, self.size))
                raise DataError(f"an image is {size}, but this model draws {expected}")
        offsets = np.arange(len(images) + 1, dtype=np.int64) * self.count
        if not images:
            return Ragged(np.empty(0, dtype=np.int32), offsets)
        flat = np.concatenate(list(cut_up(np.stack(images), self.side)))
        return Ragged((nearest(flat, self.squares) + len(SPECIALS)).astype(np.int32), offsets)

    def decode(self, ids: Iterable[int]) -> Bytes:
        """The image (height, width, channels) of squares; those that are missing at the end are black."""
        numbers = np.fromiter(ids, np.int64) - len(SPECIALS)
        (down, across), side = self.grid, self.side
        flat = np.zeros((down * across, self.squares.shape[1]), dtype=np.uint8)
        flat[: len(numbers)] = np.where(numbers[:, None] >= 0, self.squares[numbers.clip(0)], 0)
        whole = flat.reshape(down, across, side, side, -1).swapaxes(1, 2).reshape(down * side, across * side, -1)
        return whole[: self.size[0], : self.size[1]]

    def names(self, ids: Iterable[int]) -> list[str]:
        return [self.symbols[number] for number in ids]

    def read_names(self, squares: Iterable[str]) -> Bytes:
        """The image (height, width, channels) of squares by name."""
        return self.decode(len(SPECIALS) + int(square) for square in squares)

    def restore(self, stored: Any) -> Bytes:
        """The image as its squares show it: nothing else is kept of it."""
        return self.decode(stored.tolist())[None]

    def describe(self, raw: Any) -> str:
        return "\n".join(to_shades(self.picture(raw)))

    def parse(self, text: str) -> Bytes:
        """The image of squares by number, or of lines of shades, as far as those tell it."""
        squares = text.split()
        if squares and set(squares) <= set(self.symbols[len(SPECIALS) :]):
            return self.read_names(squares[: self.count])
        return parse_shades(text, self.size)

    def limits(self, recipe: Recipe) -> Limits:
        """An image has its number of squares, and nothing else."""
        return Limits(self.count, None, [BannedTokens(range(len(SPECIALS)))])

    def read_hypothesis(self, hypothesis: Hypothesis, stop: Sequence[str] = (), seconds: float = 0.0) -> Prediction:
        image = self.decode(hypothesis.tokens)
        pixels = image[..., 0] if image.shape[-1] == 1 else image
        return ImagePrediction(
            "\n".join(to_shades(image)), hypothesis.score, self.names(hypothesis.tokens), pixels.tolist()
        )

    def to_json(self) -> dict[str, Any]:
        squares = [square.tobytes().hex() for square in self.squares]
        return {"kind": self.kind, "size": list(self.size), "side": self.side, "squares": squares}


def cut_up(images: Bytes, side: int) -> Bytes:
    """Images (N, height, width, channels) as squares (N, down · across, side · side · channels), filled up with 0."""
    count, height, width, channels = images.shape
    filled = np.pad(images, ((0, 0), (0, -height % side), (0, -width % side), (0, 0)))
    down, across = filled.shape[1] // side, filled.shape[2] // side
    squares = filled.reshape(count, down, side, across, side, channels).swapaxes(2, 3)
    return squares.reshape(count, down * across, side * side * channels)


def nearest(squares: Bytes, known: Bytes | Singles) -> NDArray[np.int64]:
    """For each square (N, D) the number of the known one (K, D) that differs least."""
    centers = known.astype(np.float32)
    lengths = (centers**2).sum(1)
    pieces = (squares[start : start + AT_ONCE] for start in range(0, len(squares), AT_ONCE))
    codes = [(lengths - 2 * piece.astype(np.float32) @ centers.T).argmin(1) for piece in pieces]
    return np.concatenate(codes) if codes else np.empty(0, dtype=np.int64)


def choose_typical(squares: Bytes, most: int) -> Bytes:
    """At most so many squares, no two alike, that all others are near to: the same every time."""
    different, counts = np.unique(squares, axis=0, return_counts=True)
    if len(different) <= most:
        return different
    chance = np.random.default_rng(0)
    if len(different) > DIFFERENT:
        kept = np.sort(chance.choice(len(different), DIFFERENT, replace=False, p=counts / counts.sum()))
        different, counts = different[kept], counts[kept]
    points, weights = different.astype(np.float32), counts.astype(np.float64)
    centers = _draw_scattered(points, weights, most, chance)
    for _ in range(ROUNDS):
        owner = nearest(different, centers)
        shares = np.bincount(owner, weights, most)
        for feature in range(points.shape[1]):
            sums = np.bincount(owner, weights * points[:, feature], most)
            centers[:, feature] = np.where(shares > 0, sums / np.maximum(shares, 1), centers[:, feature])
    return np.unique(centers.round().astype(np.uint8), axis=0)


def _draw_scattered(points: Singles, weights: NDArray[np.float64], most: int, chance: np.random.Generator) -> Singles:
    """Points far from one another: each drawn by its squared distance from those before."""
    chosen = [int(weights.argmax())]
    distance = ((points - points[chosen[0]]) ** 2).sum(1)
    while len(chosen) < most:
        shares = np.cumsum(distance * weights)
        chosen.append(int(np.searchsorted(shares, chance.random() * shares[-1])))
        np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(1), out=distance)
    return points[chosen]


def _sample(images: Iterable[Bytes]) -> list[Bytes]:
    """IMAGES of the images, each as likely as any other (a reservoir); all of them if they are fewer."""
    kept: list[Bytes] = []
    draw = random.Random(0)
    for seen, image in enumerate(images):
        place = seen if seen < IMAGES else int(draw.random() * (seen + 1))
        if place < IMAGES:
            kept[place : place + 1] = [image]
    return kept


def to_shades(image: Bytes) -> list[str]:
    """An image as lines of text: five shades, two characters a pixel, which is about square."""
    bright = image.mean(-1) / 256 * len(SHADES)
    return ["".join(2 * SHADES[int(shade)] for shade in row) for row in bright]


def parse_shades(text: str, size: Sequence[int]) -> Bytes:
    """The image that such lines show, as far as five shades tell; what they do not reach is black."""
    height, width, channels = size
    image = np.zeros((height, width, channels), dtype=np.uint8)
    for row, line in zip(image, text.split("\n"), strict=False):
        for pixel, shade in zip(row, line[::2], strict=False):
            pixel[:] = int((max(SHADES.find(shade), 0) + 0.5) * 256 / len(SHADES)) if shade.strip() else 0
    return image
