"""Images with captions: a folder beside a table of names and captions, or contact sheets with an index of their cells.

Images come as uint8 (height, width, 3), cut to the asked shape around their middle and resized. They are opened one at
a time through Pillow, and only within their folder. Files may be hostile: formats are few, sizes are looked at first.
"""

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seqloom.arguments import describe_value
from seqloom.data.formats.lines import Fault
from seqloom.data.formats.tables import Reading, SkippedRows, drop_faults, read_rows
from seqloom.errors import DataError, MissingExtra

if TYPE_CHECKING:
    from PIL import Image

Pixels = npt.NDArray[np.uint8]

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "PPM")
MOST_PIXELS = 50_000_000  # of an image: a good camera's; more is a trap for the memory
EXIF_ORIENTATION = 0x0112  # a tag of a camera: from 5 on, height and width change places
CAPTION_NUMBER = re.compile(r"#[0-9]$")  # 123.jpg#0, as Flickr's own tables have it


class CaptionedImage(NamedTuple):
    image: Pixels  # (height, width, 3)
    captions: tuple[str, ...]
    name: str
    line: int  # in the table, where the image first occurs


@dataclass(frozen=True)
class ImageReading:
    """How images and their tables are read; columns by name, or by number from 1 if there is no header."""

    size: tuple[int, int] = (64, 64)  # height, width
    image: str = "image"
    caption: str = "caption"
    format: str = "guess"  # of the tables: csv, tsv …
    encoding: str = "utf-8"
    skip: bool = False


@dataclass
class Scaling:
    """Images are cut to the shape of `size` around their middle, then scaled; how many have to be is counted."""

    size: tuple[int, int]  # height, width
    images: int = 0
    scaled: int = 0
    first: tuple[int, int] = (0, 0)  # the size of the first that had to be, width first as Pillow has it

    def fit(self, image: "Image.Image") -> Pixels:
        self.see(image.size)
        return _resize(image, self.size)

    def see(self, size: tuple[int, int]) -> None:
        """Count an image of this width and height."""
        self.images += 1
        if size != self.size[::-1]:
            self.scaled += 1
            self.first = self.first if self.scaled > 1 else size

    def describe(self) -> list[str]:
        """A sentence, if there is something to say."""
        if not self.scaled:
            return []
        (width, height), (high, wide) = self.first, self.size
        to = f"{width} × {height} to {wide} × {high} pixels"
        if self.images == 1:
            return [f"the image was cut and scaled from {to} (data.image_size)"]
        example = "" if self.scaled == 1 else "for example "
        return [f"{self.scaled:,} of {self.images:,} images were cut and scaled, {example}from {to} (data.image_size)"]


def read_captioned(table: str, folder: str, reading: ImageReading, skipped: SkippedRows) -> Iterator[CaptionedImage]:
    """The images that a table names, in its order, each with all of its captions."""
    root, scaling = _check_folder(folder), Scaling(reading.size)
    captions = _read_captions(table, reading, skipped)
    images = (_make_captioned(name, line, texts, root, table, scaling) for name, (line, texts) in captions.items())
    yield from drop_faults(images, table, reading.skip, skipped, "image")
    skipped.notes += [f"{table}: {note}" for note in scaling.describe()]


def list_images(table: str, folder: str, reading: ImageReading) -> list[Path]:
    """The files of the images that a table names; none that lies outside of their folder, or is not there."""
    root = _check_folder(folder)
    paths = [Path(os.path.realpath(root / name)) for name in _read_captions(table, reading, SkippedRows())]
    return [path for path in paths if path.is_relative_to(root) and os.path.isfile(path)]


def read_sheets(
    index: str, captions: str, folder: str, tile: int, reading: ImageReading, skipped: SkippedRows, split: str = ""
) -> Iterator[CaptionedImage]:
    """The cells of contact sheets, `tile` pixels wide and high, as an index says by sheet, row, col, image, split."""
    root = _check_folder(folder)
    texts = _read_captions(captions, reading, skipped)
    return drop_faults(
        _read_cells(index, texts, root, tile, reading, skipped, split), index, reading.skip, skipped, "image"
    )


def _check_folder(folder: str) -> Path:
    path = os.path.expanduser(folder)
    if not os.path.isdir(path):
        raise DataError("there is no such folder of images", folder)
    return Path(path).resolve()


def _read_captions(table: str, reading: ImageReading, skipped: SkippedRows) -> dict[str, tuple[int, list[str]]]:
    """Each image's line and captions; they need not stand together."""
    rows = Reading((reading.image, reading.caption), reading.format, "auto", reading.encoding, reading.skip)
    captions: dict[str, tuple[int, list[str]]] = {}
    for (name, caption), _, line, _ in read_rows([table], rows, skipped):
        captions.setdefault(CAPTION_NUMBER.sub("", name), (line, []))[1].append(caption)
    return captions


def _make_captioned(
    name: str, line: int, captions: list[str], root: Path, table: str, scaling: Scaling
) -> CaptionedImage | Fault:
    image = _open(name, root, table, line)
    if isinstance(image, Fault):
        return image
    return CaptionedImage(scaling.fit(image), tuple(captions), name, line)


def _read_cells(
    index: str,
    captions: dict[str, tuple[int, list[str]]],
    root: Path,
    tile: int,
    reading: ImageReading,
    skipped: SkippedRows,
    split: str,
) -> Iterator[CaptionedImage | Fault]:
    columns = ("sheet", "row", "col", reading.image) + (("split",) if split else ())
    rows = Reading(columns, reading.format, "auto", reading.encoding, reading.skip)
    sheet: Image.Image | Fault | None = None
    sheet_name = ""  # one sheet at a time is in memory
    for (name, row, col, image, *part), _, line, _ in read_rows([index], rows, skipped):
        if part and part[0] != split:
            continue
        if name != sheet_name:
            sheet, sheet_name = _open(name, root, index, line), name
        assert sheet is not None
        cell = sheet if isinstance(sheet, Fault) else _cut_cell(sheet, row, col, tile, index, line)
        if isinstance(cell, Fault):
            yield Fault(cell.reason, cell.sentence, index, line)
        elif image not in captions:
            yield Fault("no caption", f"the image {image[:60]!r} has no caption", index, line)
        else:
            yield CaptionedImage(_resize(cell, reading.size), tuple(captions[image][1]), image, line)


def _cut_cell(sheet: "Image.Image", row: str, col: str, tile: int, index: str, line: int) -> "Image.Image | Fault":
    if not re.fullmatch("[0-9]{1,6}", row) or not re.fullmatch("[0-9]{1,6}", col):
        return Fault(
            "no cell", f"row and col are {row[:20]!r} and {col[:20]!r}, but numbers were expected", index, line
        )
    left, top = int(col) * tile, int(row) * tile
    if left + tile > sheet.width or top + tile > sheet.height:
        sentence = f"the cell {row}, {col} of {tile} pixels lies outside of the sheet's {sheet.width} × {sheet.height}"
        return Fault("no cell", sentence, index, line)
    return sheet.crop((left, top, left + tile, top + tile))


# --- Pillow ------------------------------------------------------------------------------------------------------


def _open(name: str, root: Path, table: str, line: int) -> "Image.Image | Fault":
    """An image in three colors, or what is wrong with it."""
    path = Path(os.path.realpath(root / name))
    if not path.is_relative_to(root):
        return Fault("outside", f"the name {name[:60]!r} leads out of the folder of images", table, line)
    if not os.path.isfile(path):
        return Fault("no image", f"there is no image {name[:60]!r} in {root}", table, line)
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise MissingExtra("pillow", "images") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd about a file, and does no harm
            with Image.open(path, formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    sentence = f"{name[:60]!r} has {image.width} × {image.height} pixels, more than {MOST_PIXELS:,}"
                    return Fault("too large", sentence, table, line)
                return ImageOps.exif_transpose(image).convert("RGB")
    except UnidentifiedImageError:
        sentence = f"{name[:60]!r} cannot be read as an image, that is, as one of {', '.join(FORMATS)}"
        return Fault("no image", sentence, table, line)
    except Exception as error:  # a damaged file raises nearly anything: struct.error, SyntaxError, EOFError …
        [reason, *_] = str(error).replace(str(root), "").splitlines() or ["it is damaged"]
        return Fault("no image", f"{name[:60]!r} cannot be read as an image ({reason[:100]})", table, line)


def open_image(path: Path, scaling: Scaling) -> Pixels | Fault:
    """One image file, cut and resized."""
    image = _open(path.name, Path(os.path.realpath(path.parent)), str(path), 0)
    return image if isinstance(image, Fault) else scaling.fit(image)


def measure_image(raw: Any) -> tuple[int, int]:
    """The width and height of an image of whatever sort `read_image` takes, without its pixels if it is a file."""
    from PIL import Image

    if not isinstance(raw, str | os.PathLike):
        return read_image(raw).size
    with Image.open(os.path.expanduser(raw), formats=FORMATS) as image:
        turned = image.getexif().get(EXIF_ORIENTATION, 1) >= 5
        return image.size[::-1] if turned else image.size


def read_image(raw: Any) -> "Image.Image":
    """An image of any size from Python: the name of a file, an image of Pillow, an array. DataError if it is none."""
    from PIL import Image

    if isinstance(raw, str | os.PathLike):
        path = Path(os.path.expanduser(raw))
        if not path.is_file():
            raise DataError("there is no such image file", path)
        image = _open(path.name, Path(os.path.realpath(path.parent)), str(path), 0)
        if isinstance(image, Fault):
            raise DataError(image.sentence.removeprefix(f"{path.name[:60]!r} "), path)
        return image
    if isinstance(raw, Image.Image):
        return raw
    if sentence := explain_no_image(raw):
        raise DataError(f"an input {sentence}")
    pixels = to_pixels(raw)
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def fit_image(image: "Image.Image", shape: tuple[int, int, int]) -> Pixels:
    """An image cut and resized to (height, width, channels), of which there are 1 or 3."""
    height, width, channels = shape
    mode = "L" if channels == 1 else "RGBA" if channels == 4 else "RGB"
    pixels = _resize(image.convert(mode), (height, width))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def explain_no_image(value: Any) -> str:
    """What is wrong with a value that is to be an image, as the end of a sentence; nothing if it is one."""
    array = as_numbers(value)
    ndim = -1 if array is None else array.ndim
    if array is None or ndim not in (2, 3, 4) or (ndim == 4 and len(array) != 1):
        return f"is {describe_value(value)}, but an image was expected: an array of height × width × channels"
    if ndim > 2 and not 1 <= array.shape[-1] <= 4:
        return f"is {describe_value(value)}, but an image has at most 4 channels, on its last axis"
    if not ((array >= 0) & (array <= 255)).all():
        return "is an array with values that are no bytes, but an image was expected, from 0 to 255 or from 0.0 to 1.0"
    return ""


def to_pixels(value: Any) -> Pixels:
    """The bytes (height, width, channels) of an array; fractions up to 1 are shares of 255."""
    array = np.asarray(value)
    if array.dtype == bool or (array.dtype.kind == "f" and array.max(initial=0) <= 1):
        array = np.rint(array * 255.0)
    array = array[..., None] if array.ndim == 2 else array.reshape(array.shape[-3:])
    return np.ascontiguousarray(array, np.uint8)


def as_numbers(value: Any) -> npt.NDArray[Any] | None:
    """The array that something is; None if it is none, or holds something that is not a number."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal lengths
        return None
    return array if array.dtype.kind in "biuf" and array.size else None


def _resize(image: "Image.Image", size: tuple[int, int]) -> Pixels:
    """Cut to the shape of `size` around the middle, then resize."""
    from PIL import Image, ImageOps

    height, width = size
    if image.size != (width, height):
        image = ImageOps.fit(image, (width, height), Image.Resampling.LANCZOS)
    return np.asarray(image, np.uint8)
