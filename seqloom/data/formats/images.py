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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from seqloom.data.formats.lines import Fault
from seqloom.data.formats.tables import Reading, Skipped, kept, read_rows
from seqloom.errors import DataError, MissingExtra

if TYPE_CHECKING:
    from PIL import Image

Pixels = npt.NDArray[np.uint8]

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "PPM")
MOST_PIXELS = 50_000_000  # of an image: a good camera's; more is a trap for the memory
CAPTION_NUMBER = re.compile(r"#[0-9]$")  # 123.jpg#0, as Flickr's own tables have it


class Captioned(NamedTuple):
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


def read_captioned(table: str, folder: str, reading: ImageReading, skipped: Skipped) -> Iterator[Captioned]:
    """The images that a table names, in its order, each with all of its captions."""
    root = _folder(folder)
    captions = _captions(table, reading, skipped)
    found = (_captioned(name, line, texts, root, table, reading.size) for name, (line, texts) in captions.items())
    return kept(found, table, reading.skip, skipped, "images")


def read_sheets(
    index: str, captions: str, folder: str, tile: int, reading: ImageReading, skipped: Skipped, split: str = ""
) -> Iterator[Captioned]:
    """The cells of contact sheets, `tile` pixels wide and high, as an index says by sheet, row, col, image, split."""
    root = _folder(folder)
    texts = _captions(captions, reading, skipped)
    return kept(_cells(index, texts, root, tile, reading, skipped, split), index, reading.skip, skipped, "images")


def _folder(folder: str) -> Path:
    path = os.path.expanduser(folder)
    if not os.path.isdir(path):
        raise DataError("there is no such folder of images", folder)
    return Path(path).resolve()


def _captions(table: str, reading: ImageReading, skipped: Skipped) -> dict[str, tuple[int, list[str]]]:
    """Each image's line and captions; they need not stand together."""
    rows = Reading((reading.image, reading.caption), reading.format, "auto", reading.encoding, reading.skip)
    captions: dict[str, tuple[int, list[str]]] = {}
    for (name, caption), _, line in read_rows([table], rows, skipped):
        captions.setdefault(CAPTION_NUMBER.sub("", name), (line, []))[1].append(caption)
    return captions


def _captioned(
    name: str, line: int, captions: list[str], root: Path, table: str, size: tuple[int, int]
) -> Captioned | Fault:
    image = _opened(name, root, table, line)
    if isinstance(image, Fault):
        return image
    return Captioned(_resized(image, size), tuple(captions), name, line)


def _cells(
    index: str,
    captions: dict[str, tuple[int, list[str]]],
    root: Path,
    tile: int,
    reading: ImageReading,
    skipped: Skipped,
    split: str,
) -> Iterator[Captioned | Fault]:
    columns = ("sheet", "row", "col", reading.image) + (("split",) if split else ())
    rows = Reading(columns, reading.format, "auto", reading.encoding, reading.skip)
    sheet: Image.Image | Fault | None = None
    opened = ""  # one sheet at a time is in memory
    for (name, row, col, image, *part), _, line in read_rows([index], rows, skipped):
        if part and part[0] != split:
            continue
        if name != opened:
            sheet, opened = _opened(name, root, index, line), name
        assert sheet is not None
        cell = sheet if isinstance(sheet, Fault) else _cell(sheet, row, col, tile, index, line)
        if isinstance(cell, Fault):
            yield Fault(cell.reason, cell.sentence, index, line)
        elif image not in captions:
            yield Fault("no caption", f"the image {image[:60]!r} has no caption", index, line)
        else:
            yield Captioned(_resized(cell, reading.size), tuple(captions[image][1]), image, line)


def _cell(sheet: "Image.Image", row: str, col: str, tile: int, index: str, line: int) -> "Image.Image | Fault":
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


def _opened(name: str, root: Path, table: str, line: int) -> "Image.Image | Fault":
    """An image in three colors, or what is wrong with it."""
    path = Path(os.path.realpath(root / name))
    if not path.is_relative_to(root):
        return Fault("outside", f"the name {name[:60]!r} leads out of the folder of images", table, line)
    if not os.path.isfile(path):
        return Fault("no image", f"there is no image {name[:60]!r} in {root}", table, line)
    try:
        from PIL import Image, ImageOps
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
    except Exception as error:  # a damaged file raises nearly anything: struct.error, SyntaxError, EOFError …
        [reason, *_] = str(error).replace(str(root), "").splitlines() or ["it is damaged"]
        return Fault("no image", f"{name[:60]!r} cannot be read as an image ({reason[:100]})", table, line)


def open_image(path: Path, size: tuple[int, int]) -> Pixels | Fault:
    """One image file, cut and resized."""
    image = _opened(path.name, Path(os.path.realpath(path.parent)), str(path), 1)
    return image if isinstance(image, Fault) else _resized(image, size)


def _resized(image: "Image.Image", size: tuple[int, int]) -> Pixels:
    """Cut to the shape of `size` around the middle, then resize."""
    from PIL import Image, ImageOps

    height, width = size
    if image.size != (width, height):
        image = ImageOps.fit(image, (width, height), Image.Resampling.LANCZOS)
    return np.asarray(image, np.uint8)
