"""Attention drawn over the picture it went to, word by word: what the model saw while it wrote each word."""

import struct
import zlib
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..measures.attention import AttentionMap
from ..names import shown
from .base import altair, data, number, titled

if TYPE_CHECKING:
    import altair as alt

SHADE = 0.88  # how dark a place is that is not looked at
PANEL = 132  # pixels, the longer side of one picture
WORDS = 24  # pictures, at most


@dataclass(frozen=True)
class Picture:
    """A picture (height, width, channels) of bytes, and the side of the squares in which it is read, row by row."""

    pixels: NDArray[np.uint8]
    patch: int

    @property
    def grid(self) -> tuple[int, int]:
        height, width = self.pixels.shape[:2]
        return -(-height // self.patch), -(-width // self.patch)

    @property
    def url(self) -> str:
        return f"data:image/png;base64,{b64encode(png(self.pixels)).decode()}"


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture as a PNG file: gray, or the first three channels as red, green and blue."""
    height, width, channels = pixels.shape
    kept = np.ascontiguousarray(pixels[..., : 3 if channels >= 3 else 1])
    rows = b"".join(b"\0" + row.tobytes() for row in kept)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels >= 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND")


def _chunk(kind: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def picture_chart(
    found: AttentionMap, picture: Picture, title: str = "Where the model looked for each word"
) -> "alt.FacetChart":
    """A picture for each word: bright where it looked, dark where not. One map can be picked; at first the mean."""
    alt = altair()
    height, width = picture.pixels.shape[:2]
    scale = PANEL / max(height, width)
    down, across = picture.grid
    maps = {"mean of all": found.weights.mean(0)} | dict(zip(found.names, found.weights, strict=True))
    if len(found.names) == 1:
        maps = {found.names[0]: found.weights[0]}
    words = [f"{n + 1}. {shown(word)}" for n, word in enumerate(found.target[:WORDS])]
    rows = [
        {
            "word": words[n],
            "map": name,
            "place": place,
            "x": place % across * picture.patch * scale,
            "y": place // across * picture.patch * scale,
            "attention": number(float(share)),
            "shade": number(SHADE * (1 - float(share) / max(float(weights[n].max()), 1e-9))),
        }
        for name, weights in maps.items()
        for n in range(len(words))
        for place, share in enumerate(weights[n][: down * across])
    ]
    side = picture.patch * scale
    base = alt.Chart(data(rows))
    ground = (
        base.transform_filter("datum.place == 0")
        .mark_image(
            url=picture.url,
            width=width * scale,
            height=height * scale,
            align="left",
            baseline="top",
            smooth=scale < 1,  # the squares of a small one are to be seen
        )
        .encode(x=alt.value(0), y=alt.value(0))
    )
    shades = base.mark_rect(color="black", stroke=None).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width * scale], nice=False)),
        x2=alt.X2("right:Q"),
        y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height * scale, 0], nice=False)),
        y2=alt.Y2("bottom:Q"),
        opacity=alt.Opacity("shade:Q", scale=None),
        tooltip=["word:N", "place:Q", "attention:Q", "map:N"],
    )
    shades = shades.transform_calculate(
        right=f"min(datum.x + {side}, {width * scale})", bottom=f"min(datum.y + {side}, {height * scale})"
    )
    chart = alt.layer(ground, shades).properties(width=width * scale, height=height * scale)
    if len(maps) > 1:
        first = next(iter(maps))
        pick = alt.selection_point(
            name="map",
            fields=["map"],
            value=first,
            bind=alt.binding_select(options=list(maps), name="layer and head: "),
        )
        chart = chart.add_params(pick).transform_filter(pick)
    return (
        chart.facet(facet=alt.Facet("word:N", sort=words, title=None), columns=4)
        .properties(title=titled(title, f"{found.title}: bright where it looked; each picture has its own scale"))
        .resolve_scale(x="shared", y="shared")
    )
